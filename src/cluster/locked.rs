//! Shared states.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Locks a state. A panic elsewhere leaves it whole: whoever holds it completes its change.
pub fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands on a value to those who wait for another one.
pub fn tell<T: PartialEq>(values: &watch::Sender<T>, value: T) {
    values.send_if_modified(|known| {
        let is_news = *known != value;
        *known = value;
        is_news
    });
}
