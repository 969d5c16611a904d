//! Pauses before a write is tried again.

use std::time::Duration;

/// The pause after the first failure of a write; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause between attempts of one write.
const LONGEST: Duration = Duration::from_secs(30);

/// Returns the pause after this many failures in a row.
pub(in crate::plan) fn pause(failures: u32) -> Duration {
    FIRST.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST)
}
