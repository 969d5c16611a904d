//! Durations as people write them: `500ms`, `30s`, `10m`, `1h`.

use std::time::Duration;

/// Units, the longer spelling first.
const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// Reads a duration.
///
/// # Errors
///
/// When the text is not a whole number with a unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    let fault = || format!("{text:?} is not a duration such as 500ms, 30s, 10m or 1h");
    let (number, millis) = UNITS
        .iter()
        .find_map(|(unit, millis)| Some((text.strip_suffix(unit)?.parse::<u64>().ok()?, *millis)))
        .ok_or_else(fault)?;
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10m"), Ok(Duration::from_secs(600)));
        assert!(parse("10").is_err());
        assert!(parse("-1s").is_err());
        assert!(parse("18446744073709551615h").is_err());
    }
}
