//! Points in time as Kubernetes writes them, to the second.

use jiff::Timestamp;

/// Seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub i64);

impl Moment {
    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self(text.parse::<Timestamp>().ok()?.as_second()))
    }

    /// Returns the moment after this time.
    #[must_use]
    pub fn after(self, time: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)))
    }

    /// Returns the time until a later moment; 0 if it is not later.
    pub fn until(self, later: Self) -> std::time::Duration {
        std::time::Duration::from_secs(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }

    /// Returns RFC 3339; empty for a time that it cannot express.
    pub fn text(self) -> String {
        let timestamp = Timestamp::from_second(self.0);
        timestamp.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["2026-01-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            assert_eq!(Moment::parse(text).unwrap().text(), text);
        }
        let fraction = Moment::parse("2026-01-01T00:00:00.9Z").unwrap();
        assert_eq!(fraction.after(std::time::Duration::from_millis(10_500)).text(), "2026-01-01T00:00:10Z");
        assert_eq!(Moment::parse("yesterday"), None);
        assert_eq!(Moment(i64::MAX).text(), "");
    }
}
