//! Values, and when two are the same.

use std::cmp::Ordering;
use std::sync::Arc;

use super::SelectorError;
use super::version::Version;

/// A value while an expression is evaluated.
#[derive(Clone, Debug)]
pub enum Value {
    Flag(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Version(Version),
    Quantity(Amount),
    List(Arc<[Value]>),
    Device,
    /// `device.attributes` or `device.capacity`: domains by name.
    Domains(Map),
    /// One of the domains.
    Domain(Map, Arc<str>),
    Optional(Option<Box<Value>>),
}

/// A map of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    Attributes,
    Capacity,
}

/// A quantity.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// In parts, a thousand millions of a unit.
    pub nanos: i128,
    /// It is a whole number by how it was written: then kube-scheduler knows it as one.
    pub whole: bool,
    /// It was computed: nothing that was not is compared with it.
    pub computed: bool,
}

/// Larger whole numbers are not all of them fractional numbers.
const EXACT: u64 = 1 << 53;

/// A failure.
pub fn failed<T>(what: &str) -> Result<T, SelectorError> {
    Err(SelectorError::Failed(what.to_owned()))
}

impl Value {
    /// Whether a number is less, equal or greater. None unless both are numbers, and when kube-scheduler would round.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Double(_), _) | (_, Self::Double(_)) => self.rounded()?.partial_cmp(&other.rounded()?),
            _ => Some(self.integer()?.cmp(&other.integer()?)),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(i128::from(*number)),
            Self::Uint(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    fn rounded(&self) -> Option<f64> {
        match self {
            Self::Double(number) => Some(*number),
            _ => exact(self.integer()?),
        }
    }

    /// Whether the value is the same as another.
    pub fn same(&self, other: &Self) -> Result<bool, SelectorError> {
        match (self, other) {
            (Self::Int(_) | Self::Uint(_) | Self::Double(_), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => self
                .order(other)
                .map(Ordering::is_eq)
                .ok_or_else(|| SelectorError::Failed("a number too large".to_owned())),
            (Self::Text(one), Self::Text(other)) => Ok(one == other),
            (Self::Flag(one), Self::Flag(other)) => Ok(one == other),
            (Self::Version(one), Self::Version(other)) => Ok(one.cmp(other).is_eq()),
            (Self::Quantity(one), Self::Quantity(other)) if !other.computed => Ok(one.nanos == other.nanos),
            (Self::List(one), Self::List(other)) if one.len() == other.len() => {
                one.iter().zip(other.iter()).try_fold(true, |same, (one, other)| Ok(same && one.same(other)?))
            }
            (Self::List(_), Self::List(_))
            | (
                Self::Text(_) | Self::Flag(_) | Self::Int(_),
                Self::Text(_) | Self::Flag(_) | Self::Int(_) | Self::Version(_),
            ) => Ok(false),
            _ => failed("values that cannot be compared"),
        }
    }
}

/// Returns the number when no digit is lost.
#[allow(clippy::cast_precision_loss, reason = "larger numbers are left out")]
pub fn exact(number: i128) -> Option<f64> {
    (number.unsigned_abs() <= u128::from(EXACT)).then_some(number as f64)
}
