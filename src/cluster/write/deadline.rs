//! The end of what would never end. The client waits for an answer for as long as the connection stays open, and a loop that
//! waits for a write that was accepted and never answered would wait for good.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

/// How long a write may take, with the reads that belong to it. Webhooks of others, which an API server asks first, are given
/// 10 s by default and answer within milliseconds; the API server itself gives up after 60 s, and for so long no group should
/// stand still. One that was done all the same is tried again, which does no harm: writes name the uid or the version that
/// they are meant for.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why something did not come to its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// A fault of ours, of which standard error tells more.
    #[error("it panicked")]
    Panic,
}

impl From<Unfinished> for kube::Error {
    fn from(unfinished: Unfinished) -> Self {
        Self::Service(Box::new(unfinished))
    }
}

/// Lets something go on for so long and no longer.
///
/// # Errors
///
/// Its own, or [`Unfinished`].
pub async fn within<T, E: From<Unfinished>>(time: Duration, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    // Whatever a panic leaves behind is dropped here, or guarded by locks that are taken all the same.
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
