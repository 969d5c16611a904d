//! Pauses before a write is tried again.

use std::time::Duration;

/// The pause after the first failure of a write; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause between attempts of one write.
const LONGEST: Duration = Duration::from_secs(30);

/// The pause after the first write that is not answered in time; it doubles up to [`LONGEST_LATE`].
const FIRST_LATE: Duration = Duration::from_secs(10);
/// The longest such pause.
const LONGEST_LATE: Duration = Duration::from_secs(300);

/// Returns the pause after this many writes in a row that were not answered in time. Each costs the API server as much as one that
/// lands, so it must be rare.
pub(in crate::plan) fn late_pause(late: u32) -> Duration {
    FIRST_LATE.saturating_mul(1 << late.saturating_sub(1).min(10)).min(LONGEST_LATE)
}

/// Returns the pause after this many failures in a row.
pub(in crate::plan) fn pause(failures: u32) -> Duration {
    FIRST.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST)
}
