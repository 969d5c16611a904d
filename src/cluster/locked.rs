//! Shared states.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a state. A panic elsewhere leaves it whole: whoever holds it completes its change.
pub fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
