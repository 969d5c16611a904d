//! Large reviews, judged outside the serving threads, where a long one would delay all others.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio::time::Instant;

/// Largest body that is judged in place. Nearly all reviews of pods and groups are smaller.
pub(super) const LIGHT: usize = 64 << 10;

/// Permits for threads of large reviews: half as many as processors.
#[derive(Clone, Debug)]
pub struct Beside(Arc<Semaphore>);

impl Default for Beside {
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, |all| (all.get() / 2).max(1));
        Self(Arc::new(Semaphore::new(threads)))
    }
}

impl Beside {
    /// Runs `work` when a permit is free; `None` when the permit or the result does not come in time. Late work goes on and
    /// keeps its permit. Panics if `work` panics.
    pub(super) async fn run<T, F>(&self, deadline: Instant, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let turn = tokio::time::timeout_at(deadline, self.0.clone().acquire_owned()).await.ok()?.ok()?;
        let runtime = Handle::current();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            runtime.block_on(work)
        });
        let done = tokio::time::timeout_at(deadline, done).await.ok()?;
        match done.map_err(JoinError::try_into_panic) {
            Ok(done) => Some(done),
            Err(Ok(panic)) => resume_unwind(panic),
            Err(Err(_)) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_is_beside_takes_no_thread_of_the_runtime_and_is_bounded() {
        let beside = Beside(Arc::new(Semaphore::new(1)));
        let soon = || Instant::now() + Duration::from_millis(20);
        let (started, has_started) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let first = tokio::spawn({
            let beside = beside.clone();
            async move {
                let work = async move {
                    started.send(()).unwrap();
                    // Like rules with long computations: this runtime has only one thread.
                    ended.recv().unwrap();
                    1
                };
                beside.run(Instant::now() + Duration::from_secs(60), work).await
            }
        });
        tokio::task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
        assert_eq!(beside.run(soon(), async { 2 }).await, None, "no turn in time");
        end.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Some(1));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let slow = async move { ended.recv().is_ok() };
        assert_eq!(beside.run(soon(), slow).await, None, "not done in time");
        assert_eq!(beside.run(soon(), async { 2 }).await, None, "it still has its turn");
        drop(end);
        let later = Instant::now() + Duration::from_secs(60);
        assert_eq!(beside.run(later, async { 3 }).await, Some(3));
    }
}
