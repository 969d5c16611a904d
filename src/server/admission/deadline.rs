//! The deadline of an answer, from the timeout in the query of each call (`?timeout=3s`).

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

/// Time limit, from the first byte, of a review without a timeout in its query. The rest of the webhook's 3 s is for the network.
const UNSAID: Duration = Duration::from_millis(2250);
/// Longest timeout that a webhook configuration may have.
const LONGEST: Duration = Duration::from_secs(30);
/// Margin for the network: a tenth of the timeout, within these limits.
const LEAST_MARGIN: Duration = Duration::from_millis(50);
const MOST_MARGIN: Duration = Duration::from_millis(500);

/// Returns the deadline of a request with this query that begins to arrive now.
pub(super) fn deadline(query: Option<&str>) -> Instant {
    Instant::now() + time_for(query)
}

fn time_for(query: Option<&str>) -> Duration {
    let parameters = query.unwrap_or_default().split('&');
    let said = parameters.filter_map(|parameter| parameter.strip_prefix("timeout=")).find_map(go_duration);
    // A timeout of 0 means no limit.
    let said = said.filter(|timeout| !timeout.is_zero()).map(|timeout| timeout.min(LONGEST));
    said.map_or(UNSAID, |timeout| timeout.saturating_sub((timeout / 10).clamp(LEAST_MARGIN, MOST_MARGIN)))
}

/// Parses a Go duration: decimal numbers, each with its unit, as in `1m30s`, `1.5s` or `500ms`. jiff reads these, and more.
fn go_duration(text: &str) -> Option<Duration> {
    let is_go = text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_alphanumeric() || c == '.');
    let said = text.parse::<SignedDuration>().ok().filter(|_| is_go)?;
    Duration::try_from(said).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let milliseconds = |text| go_duration(text).map(|time| time.as_millis());
        for (text, time) in
            [("3s", 3000), ("1m30s", 90_000), ("500ms", 500), ("1.5s", 1500), ("0s", 0), ("1h", 3_600_000)]
        {
            assert_eq!(milliseconds(text), Some(time), "{text}");
        }
        assert_eq!(go_duration("1\u{b5}s"), Some(Duration::from_micros(1)));
        for wrong in ["", "3", "s", "-3s", "+3s", "3 s", "3sm", "1..5s", "1e9s", "3d", "99999999999999999999h", "infs"]
        {
            assert_eq!(go_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_tenth_of_what_the_caller_waits_is_left_for_the_way() {
        for (query, time) in [
            ("timeout=3s", 2700),
            ("timeout=1s", 900),
            ("timeout=200ms", 150),
            ("timeout=10ms", 0),
            ("timeout=10s", 9500),
            ("timeout=9h", 29_500),
            ("dryRun=All&timeout=1m0s", 29_500),
            ("timeout=soon", 2250),
            ("timeout=soon&timeout=1s", 900),
            ("timeout=0s", 2250),
            ("", 2250),
        ] {
            assert_eq!(time_for(Some(query)), Duration::from_millis(time), "{query}");
        }
        assert_eq!(time_for(None), UNSAID);
    }
}
