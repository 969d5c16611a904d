//! A time limit for writes. The client waits for an answer as long as the connection stays open, so the loop would wait for
//! ever for a write that was accepted and never answered.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

/// Time limit of a write and its reads. Webhooks of others, which the API server calls first, have a timeout of 10 s by
/// default and answer within milliseconds. The API server itself gives up after 60 s, and no group should stand still for so
/// long. A late write is repeated, which does no harm: writes name the uid or the version that they apply to.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason for which work did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// A bug of rolegate; standard error tells more.
    #[error("it panicked")]
    Panic,
}

impl From<Unfinished> for kube::Error {
    fn from(unfinished: Unfinished) -> Self {
        Self::Service(Box::new(unfinished))
    }
}

/// Runs `work` for at most `time`.
pub async fn within<T, E: From<Unfinished>>(time: Duration, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    // The state behind a panic is dropped here, or guarded by locks that ignore poisoning.
    match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(Unfinished::Panic.into()),
        Err(_) => Err(Unfinished::Timeout(time).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_panics_or_does_not_end_is_told_from_what_fails() {
        let time = Duration::from_secs(1);
        let done = within(time, async { Ok::<_, Unfinished>(1) });
        assert_eq!(done.await, Ok(1));
        let panics = within(time, async { if time.is_zero() { Ok(1) } else { panic!("on purpose") } });
        assert_eq!(panics.await, Err(Unfinished::Panic));
        let hangs = within(time, std::future::pending::<Result<u32, Unfinished>>());
        assert_eq!(hangs.await, Err(Unfinished::Timeout(time)));
    }
}
