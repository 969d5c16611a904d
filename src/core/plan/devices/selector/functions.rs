//! Values, and the functions that take them.

use std::cmp::Ordering;
use std::mem::discriminant;
use std::sync::Arc;

use super::pattern;
use super::version::Version;
use crate::model::quantity;

/// A value while an expression is evaluated.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Value {
    Flag(bool),
    Int(i64),
    Text(Arc<str>),
    Version(Version),
    /// In thousand-millionths of a unit.
    Quantity(i128),
}

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Known with the value only: an attribute's.
    Any,
    Flag,
    Int,
    Text,
    Version,
    Quantity,
}

impl Kind {
    /// Whether values of both types may be of one.
    pub fn fits(self, other: Self) -> bool {
        self == other || self == Self::Any || other == Self::Any
    }

    /// Whether `<` and its kin may take the type.
    pub fn has_order(self) -> bool {
        !matches!(self, Self::Version | Self::Quantity)
    }
}

impl Value {
    /// A string, number or boolean: what can be compared with all others, and has an order.
    fn is_plain(&self) -> bool {
        matches!(self, Self::Flag(_) | Self::Int(_) | Self::Text(_))
    }

    /// Whether the value is the same as another. None where kube-scheduler fails: the left one decides.
    pub fn same(&self, other: &Self) -> Option<bool> {
        if discriminant(self) == discriminant(other) { Some(self == other) } else { self.is_plain().then_some(false) }
    }

    /// Whether the value is less, equal or greater. None for values without an order, or of two types.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        let has_order = self.is_plain() && discriminant(self) == discriminant(other);
        if has_order { self.partial_cmp(other) } else { None }
    }

    /// Whether a list has the value. Versions and quantities are not looked for.
    pub fn is_in(&self, list: &[Self]) -> Option<bool> {
        let is_known = self.is_plain() && list.iter().all(Self::is_plain);
        is_known.then(|| list.contains(self))
    }
}

/// A function for arguments of some types.
#[derive(Debug)]
pub struct Function {
    /// A method's starts with a point: its first argument stands before it.
    pub name: &'static str,
    pub takes: &'static [Kind],
    pub gives: Kind,
    /// Returns None for arguments of other types, and where the function fails.
    pub apply: fn(&[Value]) -> Option<Value>,
}

macro_rules! functions {
    ($($name:literal ($($argument:ident: $takes:ident),+) $gives:ident => $given:expr;)+) => {
        &[$(Function {
            name: $name,
            takes: &[$(Kind::$takes),+],
            gives: Kind::$gives,
            apply: |with| match with {
                [$(Value::$takes($argument)),+] => Some(Value::$gives($given)),
                _ => None,
            },
        }),+]
    };
}

/// All functions. A row that is missing for types that values can have would be a wrong answer.
pub static FUNCTIONS: &[Function] = functions! {
    "int" (number: Int) Int => *number;
    "int" (text: Text) Int => text.parse().ok()?;
    "size" (text: Text) Int => length(text)?;
    ".size" (text: Text) Int => length(text)?;
    ".matches" (text: Text, pattern: Text) Flag => pattern::compile(pattern).ok()?.is_match(text);
    ".contains" (text: Text, part: Text) Flag => text.contains(&**part);
    ".startsWith" (text: Text, start: Text) Flag => text.starts_with(&**start);
    ".endsWith" (text: Text, end: Text) Flag => text.ends_with(&**end);
    ".lowerAscii" (text: Text) Text => text.to_ascii_lowercase().into();
    ".upperAscii" (text: Text) Text => text.to_ascii_uppercase().into();
    ".trim" (text: Text) Text => text.trim().into();
    ".indexOf" (text: Text, part: Text) Int => text.split_once(&**part).map_or(Some(-1), |(before, _)| length(before))?;
    ".substring" (text: Text, start: Int) Text => substring(text, *start, length(text)?)?;
    ".substring" (text: Text, start: Int, end: Int) Text => substring(text, *start, *end)?;
    "semver" (text: Text) Version => Version::parse(text)?;
    ".major" (version: Version) Int => version.number(0)?;
    ".minor" (version: Version) Int => version.number(1)?;
    ".patch" (version: Version) Int => version.number(2)?;
    ".isLessThan" (one: Version, other: Version) Flag => one < other;
    ".isGreaterThan" (one: Version, other: Version) Flag => one > other;
    ".compareTo" (one: Version, other: Version) Int => one.cmp(other) as i64;
    "quantity" (text: Text) Quantity => quantity::nanos(text)?;
    ".isLessThan" (one: Quantity, other: Quantity) Flag => one < other;
    ".isGreaterThan" (one: Quantity, other: Quantity) Flag => one > other;
    ".compareTo" (one: Quantity, other: Quantity) Int => one.cmp(other) as i64;
};

fn length(text: &str) -> Option<i64> {
    i64::try_from(text.chars().count()).ok()
}

fn substring(text: &str, start: i64, end: i64) -> Option<Arc<str>> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    let fits = start <= end && end <= text.chars().count();
    fits.then(|| text.chars().take(end).skip(start).collect::<String>().into())
}
