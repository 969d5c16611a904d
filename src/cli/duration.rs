//! Durations in words of units: `500ms`, `30s`, `10m`, `1h30m`.

use std::time::Duration;

use jiff::SignedDuration;

/// Reads a duration.
///
/// # Errors
///
/// When the text has no unit, or is negative.
pub fn parse(text: &str) -> Result<Duration, String> {
    let read = text.parse::<SignedDuration>().and_then(Duration::try_from);
    read.map_err(|_| format!("{text:?} is not a duration such as 500ms, 30s, 10m or 1h30m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        for wrong in ["", "10", "-1s", "1s ago", "1d", "s", "18446744073709551615h"] {
            let fault = format!("{wrong:?} is not a duration such as 500ms, 30s, 10m or 1h30m");
            assert_eq!(parse(wrong), Err(fault));
        }
    }
}
