//! Waiting for what must come, and watching over what must not.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// For what takes a second when nothing else runs.
pub const PATIENT: Duration = Duration::from_secs(120);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// Tries again until it works, and returns what came of it. What an attempt says when it fails is shown when time is up:
/// let it be the state that was found.
pub async fn eventually<T, S: Display>(
    deadline: Duration,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, S>,
) -> T {
    let start = Instant::now();
    loop {
        match attempt().await {
            Ok(result) => return result,
            Err(state) if start.elapsed() > deadline => panic!("not within {deadline:?}: {what}\nfound: {state}"),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Looks again and again for some time: it must hold at every look. For what must not happen there is nothing to wait for.
pub async fn always<S: Display>(time: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<(), S>) {
    let start = Instant::now();
    while start.elapsed() < time {
        if let Err(state) = look().await {
            panic!("after {:?}, no longer: {what}\nfound: {state}", start.elapsed());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
