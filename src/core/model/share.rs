//! Shares of the replicas of a role.

use crate::api::IntOrString;

/// Replicas of a role that may be unavailable, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    Count(u32),
    /// A share of the desired replicas in percent, rounded down.
    Percent(u32),
}

impl Unavailable {
    /// Reads a number or a percentage; one replica if there is none.
    pub fn parse(written: Option<&IntOrString>) -> Self {
        match written {
            Some(IntOrString::Int(number)) => Self::Count(u32::try_from(*number).unwrap_or(1)),
            Some(text) => text.percent().map_or(Self::Count(1), Self::Percent),
            None => Self::Count(1),
        }
    }

    /// Returns the number for these desired replicas.
    pub fn of(self, desired: u32) -> u32 {
        let number = match self {
            Self::Count(number) => number,
            Self::Percent(percent) => share(percent, desired).0,
        };
        number.max(1)
    }
}

/// Returns the number of replicas that stay old if this share in percent does.
pub(super) fn kept_old(percent: u32, desired: u32) -> u32 {
    let (whole, rest) = share(percent, desired);
    let kept = whole + u32::from(rest > 0);
    if percent < 100 { kept.min(desired.saturating_sub(1)) } else { desired }
}

/// Returns a percentage of a number, rounded down, and the remainder in hundredths.
fn share(percent: u32, of: u32) -> (u32, u64) {
    let hundredfold = u64::from(percent) * u64::from(of);
    (u32::try_from(hundredfold / 100).unwrap_or(u32::MAX), hundredfold % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_one_replica_may_be_unavailable() {
        assert_eq!(Unavailable::Percent(5).of(200), 10);
        assert_eq!(Unavailable::Percent(5).of(19), 1);
        assert_eq!(Unavailable::Count(3).of(2), 3);
    }
}
