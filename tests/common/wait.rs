//! Waits for expected states, and checks that unexpected ones do not occur.

use std::fmt::{Debug, Display};
use std::time::{Duration, Instant};

/// Deadline for events that take a second on an idle machine.
pub const PATIENT: Duration = Duration::from_secs(120);

/// The first interval of attempts; each is half as long again as the one before, up to [`LONGEST`]: a busy machine is not
/// made busier by those who wait.
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST: Duration = Duration::from_millis(200);

/// Retries until an attempt succeeds, and returns its result. On timeout, the last error is printed; it should
/// describe the observed state.
pub async fn eventually<T, S: Display>(
    deadline: Duration,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, S>,
) -> T {
    let (start, mut pause) = (Instant::now(), PAUSE);
    loop {
        match attempt().await {
            Ok(result) => return result,
            Err(state) if start.elapsed() > deadline => panic!("not within {deadline:?}: {what}\nfound: {state}"),
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = LONGEST.min(pause * 3 / 2);
    }
}

/// Looks until the result passes a test, and returns it.
pub async fn until_found<T: Debug>(what: &str, mut look: impl AsyncFnMut() -> T, test: impl Fn(&T) -> bool) -> T {
    eventually(PATIENT, what, async || {
        let found = look().await;
        if test(&found) { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await
}

/// Looks until this is found, and returns it.
pub async fn until_is<T: Debug + PartialEq<E>, E>(what: &str, look: impl AsyncFnMut() -> T, expected: E) -> T {
    until_found(what, look, |found| *found == expected).await
}

/// Looks until a text has this part, and returns it.
pub async fn until_says(part: &str, look: impl AsyncFnMut() -> String) -> String {
    until_found(part, look, |text| text.contains(part)).await
}

/// Checks for some time that this is found.
pub async fn stays<T: Debug + PartialEq<E>, E>(time: Duration, what: &str, look: impl AsyncFnMut() -> T, expected: E) {
    holds(time, what, look, |found| *found == expected).await;
}

/// Checks for some time that what is found passes a test.
pub async fn holds<T: Debug>(time: Duration, what: &str, mut look: impl AsyncFnMut() -> T, test: impl Fn(&T) -> bool) {
    always(time, what, async || {
        let found = look().await;
        if test(&found) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Checks a condition repeatedly for some time.
pub async fn always<S: Display>(time: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<(), S>) {
    let start = Instant::now();
    while start.elapsed() < time {
        if let Err(state) = look().await {
            panic!("after {:?}, no longer: {what}\nfound: {state}", start.elapsed());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
