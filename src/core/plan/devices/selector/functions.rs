//! Operators, functions and methods: one row for each choice of types.

use std::cmp::Ordering;

use super::SelectorError;
use super::pattern;
use super::value::{Amount, Value, exact, failed};
use super::version::Version;
use crate::model::quantity;

/// Longer texts are not computed.
const LONGEST: usize = 4096;

/// The letters of quantities: whatever has another is none.
const QUANTITY_LETTERS: &str = "0123456789+-.eEinumkKMGTP";

/// What a function takes or gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Any,
    Flag,
    Int,
    Uint,
    Double,
    /// A number of any of the three types.
    Number,
    Text,
    Version,
    Quantity,
    List,
    /// A list of texts.
    Texts,
    Optional,
}

impl Kind {
    /// Whether the function takes the value.
    pub fn takes(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (Self::Any, _)
                | (Self::Flag, Value::Flag(_))
                | (Self::Int | Self::Number, Value::Int(_))
                | (Self::Uint | Self::Number, Value::Uint(_))
                | (Self::Double | Self::Number, Value::Double(_))
                | (Self::Text, Value::Text(_))
                | (Self::Version, Value::Version(_))
                | (Self::Quantity, Value::Quantity(_))
                | (Self::List | Self::Texts, Value::List(_))
                | (Self::Optional, Value::Optional(_))
        )
    }
}

type Apply = fn(&[Value]) -> Result<Value, SelectorError>;

/// A function for arguments of some types.
#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    /// It is a method: its first argument stands before it.
    pub method: bool,
    pub takes: &'static [Kind],
    pub gives: Kind,
    pub apply: Apply,
}

const fn operator(name: &'static str, takes: &'static [Kind], gives: Kind, apply: Apply) -> Function {
    Function { name, method: false, takes, gives, apply }
}

const fn method(name: &'static str, takes: &'static [Kind], gives: Kind, apply: Apply) -> Function {
    Function { name, method: true, takes, gives, apply }
}

use Kind::{Any, Double, Flag, Int, List, Number, Optional, Quantity, Text, Texts, Uint};

const VERSION: Kind = Kind::Version;

/// All functions. A function that is missing is an error, a row that is missing for types that values can have would be a
/// wrong answer.
pub static FUNCTIONS: &[Function] = &[
    operator("!", &[Flag], Flag, |with| Ok(Value::Flag(!flag(with, 0)?))),
    operator("-", &[Int], Int, |with| checked(0_i64.checked_sub(int(with, 0)?))),
    operator("-", &[Double], Double, |with| double(-number(with, 0)?)),
    operator("+", &[Int, Int], Int, |with| checked(int(with, 0)?.checked_add(int(with, 1)?))),
    operator("-", &[Int, Int], Int, |with| checked(int(with, 0)?.checked_sub(int(with, 1)?))),
    operator("*", &[Int, Int], Int, |with| checked(int(with, 0)?.checked_mul(int(with, 1)?))),
    operator("/", &[Int, Int], Int, |with| checked(int(with, 0)?.checked_div(int(with, 1)?))),
    operator("%", &[Int, Int], Int, |with| checked(int(with, 0)?.checked_rem(int(with, 1)?))),
    operator("+", &[Uint, Uint], Uint, |with| unsigned(uint(with, 0)?.checked_add(uint(with, 1)?))),
    operator("-", &[Uint, Uint], Uint, |with| unsigned(uint(with, 0)?.checked_sub(uint(with, 1)?))),
    operator("*", &[Uint, Uint], Uint, |with| unsigned(uint(with, 0)?.checked_mul(uint(with, 1)?))),
    operator("/", &[Uint, Uint], Uint, |with| unsigned(uint(with, 0)?.checked_div(uint(with, 1)?))),
    operator("%", &[Uint, Uint], Uint, |with| unsigned(uint(with, 0)?.checked_rem(uint(with, 1)?))),
    operator("+", &[Double, Double], Double, |with| double(number(with, 0)? + number(with, 1)?)),
    operator("-", &[Double, Double], Double, |with| double(number(with, 0)? - number(with, 1)?)),
    operator("*", &[Double, Double], Double, |with| double(number(with, 0)? * number(with, 1)?)),
    operator("/", &[Double, Double], Double, |with| double(number(with, 0)? / number(with, 1)?)),
    operator("+", &[Text, Text], Text, |with| computed([text(with, 0)?, text(with, 1)?].concat())),
    operator("<", &[Number, Number], Flag, |with| ordered(with, Ordering::is_lt)),
    operator("<=", &[Number, Number], Flag, |with| ordered(with, Ordering::is_le)),
    operator(">", &[Number, Number], Flag, |with| ordered(with, Ordering::is_gt)),
    operator(">=", &[Number, Number], Flag, |with| ordered(with, Ordering::is_ge)),
    operator("<", &[Text, Text], Flag, |with| ordered(with, Ordering::is_lt)),
    operator("<=", &[Text, Text], Flag, |with| ordered(with, Ordering::is_le)),
    operator(">", &[Text, Text], Flag, |with| ordered(with, Ordering::is_gt)),
    operator(">=", &[Text, Text], Flag, |with| ordered(with, Ordering::is_ge)),
    operator("<", &[Flag, Flag], Flag, |with| ordered(with, Ordering::is_lt)),
    operator("<=", &[Flag, Flag], Flag, |with| ordered(with, Ordering::is_le)),
    operator(">", &[Flag, Flag], Flag, |with| ordered(with, Ordering::is_gt)),
    operator(">=", &[Flag, Flag], Flag, |with| ordered(with, Ordering::is_ge)),
    operator("dyn", &[Any], Any, |with| argument(with, 0).cloned()),
    operator("int", &[Int], Int, |with| argument(with, 0).cloned()),
    operator("int", &[Uint], Int, |with| checked(i64::try_from(uint(with, 0)?).ok())),
    operator("int", &[Double], Int, |_| failed("a number that is rounded")),
    operator("int", &[Text], Int, |with| checked(text(with, 0)?.parse().ok())),
    operator("string", &[Text], Text, |with| argument(with, 0).cloned()),
    operator("string", &[Int], Text, |with| computed(int(with, 0)?.to_string())),
    operator("string", &[Uint], Text, |with| computed(uint(with, 0)?.to_string())),
    operator("string", &[Flag], Text, |with| computed(flag(with, 0)?.to_string())),
    operator("string", &[Double], Text, |_| failed("a number that is written as text")),
    operator("size", &[Text], Int, |with| length(text(with, 0)?.chars().count())),
    operator("size", &[List], Int, |with| length(list(with, 0)?.len())),
    method("size", &[Text], Int, |with| length(text(with, 0)?.chars().count())),
    method("size", &[List], Int, |with| length(list(with, 0)?.len())),
    operator("matches", &[Text, Text], Flag, matches),
    method("matches", &[Text, Text], Flag, matches),
    method("contains", &[Text, Text], Flag, |with| Ok(Value::Flag(text(with, 0)?.contains(text(with, 1)?)))),
    method("startsWith", &[Text, Text], Flag, |with| Ok(Value::Flag(text(with, 0)?.starts_with(text(with, 1)?)))),
    method("endsWith", &[Text, Text], Flag, |with| Ok(Value::Flag(text(with, 0)?.ends_with(text(with, 1)?)))),
    method("lowerAscii", &[Text], Text, |with| computed(text(with, 0)?.to_ascii_lowercase())),
    method("upperAscii", &[Text], Text, |with| computed(text(with, 0)?.to_ascii_uppercase())),
    method("trim", &[Text], Text, |with| computed(text(with, 0)?.trim().to_owned())),
    method("indexOf", &[Text, Text], Int, index_of),
    method("substring", &[Text, Int], Text, |with| substring(text(with, 0)?, int(with, 1)?, None)),
    method("substring", &[Text, Int, Int], Text, |with| substring(text(with, 0)?, int(with, 1)?, Some(int(with, 2)?))),
    method("replace", &[Text, Text, Text], Text, replace),
    method("split", &[Text, Text], Texts, split),
    operator("sets.contains", &[List, List], Flag, |with| Ok(Value::Flag(all_in(list(with, 1)?, list(with, 0)?)?))),
    operator("sets.intersects", &[List, List], Flag, |with| Ok(Value::Flag(any_in(list(with, 1)?, list(with, 0)?)?))),
    operator("sets.equivalent", &[List, List], Flag, |with| {
        let (one, other) = (list(with, 0)?, list(with, 1)?);
        Ok(Value::Flag(all_in(one, other)? && all_in(other, one)?))
    }),
    operator("semver", &[Text], VERSION, |with| semver(text(with, 0)?, false)),
    operator("semver", &[Text, Flag], VERSION, |with| semver(text(with, 0)?, flag(with, 1)?)),
    operator("isSemver", &[Text], Flag, |with| Ok(Value::Flag(semver(text(with, 0)?, false).is_ok()))),
    operator("isSemver", &[Text, Flag], Flag, |with| Ok(Value::Flag(semver(text(with, 0)?, flag(with, 1)?).is_ok()))),
    method("major", &[VERSION], Int, |with| part(with, 0)),
    method("minor", &[VERSION], Int, |with| part(with, 1)),
    method("patch", &[VERSION], Int, |with| part(with, 2)),
    method("isLessThan", &[VERSION, VERSION], Flag, |with| Ok(Value::Flag(versions(with)?.is_lt()))),
    method("isGreaterThan", &[VERSION, VERSION], Flag, |with| Ok(Value::Flag(versions(with)?.is_gt()))),
    method("compareTo", &[VERSION, VERSION], Int, |with| Ok(sign(versions(with)?))),
    operator("quantity", &[Text], Quantity, |with| amount_of(text(with, 0)?)),
    operator("isQuantity", &[Text], Flag, |with| is_quantity(text(with, 0)?)),
    method("isLessThan", &[Quantity, Quantity], Flag, |with| Ok(Value::Flag(amounts(with)?.is_lt()))),
    method("isGreaterThan", &[Quantity, Quantity], Flag, |with| Ok(Value::Flag(amounts(with)?.is_gt()))),
    method("compareTo", &[Quantity, Quantity], Int, |with| Ok(sign(amounts(with)?))),
    operator("sign", &[Quantity], Int, |with| Ok(sign(amount(with, 0)?.nanos.cmp(&0)))),
    method("add", &[Quantity, Quantity], Quantity, |with| sum(with, amount(with, 1)?.nanos)),
    method("add", &[Quantity, Int], Quantity, |with| sum(with, units(with)?)),
    method("sub", &[Quantity, Quantity], Quantity, |with| sum(with, -amount(with, 1)?.nanos)),
    method("sub", &[Quantity, Int], Quantity, |with| sum(with, -units(with)?)),
    method("isInteger", &[Quantity], Flag, |with| whole(with).map(|_| Value::Flag(true))),
    method("asInteger", &[Quantity], Int, |with| whole(with).map(Value::Int)),
    method("asApproximateFloat", &[Quantity], Double, |with| match exact(i128::from(whole(with)?)) {
        Some(number) => Ok(Value::Double(number)),
        None => failed("a number that is rounded"),
    }),
    method("hasValue", &[Optional], Flag, |with| match argument(with, 0)? {
        Value::Optional(value) => Ok(Value::Flag(value.is_some())),
        _ => failed("no such overload"),
    }),
];

fn argument(with: &[Value], at: usize) -> Result<&Value, SelectorError> {
    with.get(at).map_or_else(|| failed("no such overload"), Ok)
}

/// Declares a function that returns an argument of one type.
macro_rules! argument {
    ($name:ident, $variant:ident, $type:ty, $value:ident => $given:expr) => {
        fn $name(with: &[Value], at: usize) -> Result<$type, SelectorError> {
            match argument(with, at)? {
                Value::$variant($value) => Ok($given),
                _ => failed("no such overload"),
            }
        }
    };
}

argument!(flag, Flag, bool, value => *value);
argument!(int, Int, i64, value => *value);
argument!(uint, Uint, u64, value => *value);
argument!(number, Double, f64, value => *value);
argument!(text, Text, &str, value => value);
argument!(version, Version, &Version, value => value);
argument!(amount, Quantity, Amount, value => *value);
argument!(list, List, &[Value], value => value);

fn checked(number: Option<i64>) -> Result<Value, SelectorError> {
    number.map_or_else(|| failed("no such number"), |number| Ok(Value::Int(number)))
}

fn unsigned(number: Option<u64>) -> Result<Value, SelectorError> {
    number.map_or_else(|| failed("no such number"), |number| Ok(Value::Uint(number)))
}

fn double(number: f64) -> Result<Value, SelectorError> {
    if number.is_finite() { Ok(Value::Double(number)) } else { failed("a number too large") }
}

fn computed(text: String) -> Result<Value, SelectorError> {
    if text.len() <= LONGEST { Ok(Value::Text(text.into())) } else { failed("a text too long") }
}

fn length(length: usize) -> Result<Value, SelectorError> {
    checked(i64::try_from(length).ok())
}

fn sign(order: Ordering) -> Value {
    Value::Int(order as i64)
}

fn ordered(with: &[Value], fits: fn(Ordering) -> bool) -> Result<Value, SelectorError> {
    let (one, other) = (argument(with, 0)?, argument(with, 1)?);
    let order = match (one, other) {
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        (Value::Flag(one), Value::Flag(other)) => Some(one.cmp(other)),
        _ => one.order(other),
    };
    order.map_or_else(|| failed("a number that is rounded"), |order| Ok(Value::Flag(fits(order))))
}

fn matches(with: &[Value]) -> Result<Value, SelectorError> {
    Ok(Value::Flag(pattern::compile(text(with, 1)?)?.is_match(text(with, 0)?)))
}

fn index_of(with: &[Value]) -> Result<Value, SelectorError> {
    let text_before = text(with, 0)?.split_once(text(with, 1)?).map(|(before, _)| before.chars().count());
    text_before.map_or(Ok(Value::Int(-1)), length)
}

fn substring(text: &str, start: i64, end: Option<i64>) -> Result<Value, SelectorError> {
    let length = text.chars().count();
    let start = usize::try_from(start).ok();
    let end = end.map_or(Some(length), |end| usize::try_from(end).ok());
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= length => {
            computed(text.chars().skip(start).take(end - start).collect())
        }
        _ => failed("index out of range"),
    }
}

fn replace(with: &[Value]) -> Result<Value, SelectorError> {
    let (text, old, new) = (text(with, 0)?, text(with, 1)?, text(with, 2)?);
    if old.is_empty() || text.len() * (new.len() + 1) > LONGEST * LONGEST {
        return failed("a text that is not replaced");
    }
    computed(text.replace(old, new))
}

fn split(with: &[Value]) -> Result<Value, SelectorError> {
    match (text(with, 0)?, text(with, 1)?) {
        (_, "") => failed("a text that is not split"),
        (text, separator) => Ok(Value::List(text.split(separator).map(|part| Value::Text(part.into())).collect())),
    }
}

fn all_in(of: &[Value], list: &[Value]) -> Result<bool, SelectorError> {
    of.iter().try_fold(true, |all, value| Ok(contains(list, value)? && all))
}

fn any_in(of: &[Value], list: &[Value]) -> Result<bool, SelectorError> {
    of.iter().try_fold(false, |any, value| Ok(contains(list, value)? || any))
}

/// Whether a list has a value. Versions, quantities and lists are not looked for.
pub fn contains(list: &[Value], value: &Value) -> Result<bool, SelectorError> {
    if list
        .iter()
        .chain([value])
        .all(|value| matches!(value, Value::Text(_) | Value::Flag(_) | Value::Int(_) | Value::Uint(_)))
    {
        return list.iter().try_fold(false, |found, element| Ok(found || element.same(value)?));
    }
    failed("values that cannot be compared")
}

fn semver(text: &str, lenient: bool) -> Result<Value, SelectorError> {
    Version::parse(text, lenient).map_or_else(|| failed("no semantic version"), |version| Ok(Value::Version(version)))
}

fn part(with: &[Value], at: usize) -> Result<Value, SelectorError> {
    checked(version(with, 0)?.numbers.get(at).and_then(|number| i64::try_from(*number).ok()))
}

fn versions(with: &[Value]) -> Result<Ordering, SelectorError> {
    Ok(version(with, 0)?.cmp(version(with, 1)?))
}

fn amounts(with: &[Value]) -> Result<Ordering, SelectorError> {
    Ok(amount(with, 0)?.nanos.cmp(&amount(with, 1)?.nanos))
}

/// Returns the quantity that a text writes.
pub fn amount_of(text: &str) -> Result<Value, SelectorError> {
    match quantity::nanos(text) {
        Some(nanos) => Ok(Value::Quantity(Amount { nanos, whole: written_whole(text), computed: false })),
        None => failed("no quantity, or one that is rounded"),
    }
}

/// Whether kube-scheduler reads the quantity as a whole number: it does not try when it has a point or a negative exponent, or
/// many digits.
fn written_whole(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    let suffix = unsigned.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let most = match suffix {
        "" | "k" | "M" | "G" => 9,
        "Ki" | "Mi" => 6,
        "Gi" => 4,
        _ => return false,
    };
    unsigned.len() - suffix.len() <= most
}

fn is_quantity(text: &str) -> Result<Value, SelectorError> {
    match quantity::nanos(text) {
        Some(_) => Ok(Value::Flag(true)),
        None if text.is_empty() || text.contains(|letter| !QUANTITY_LETTERS.contains(letter)) => Ok(Value::Flag(false)),
        // kube-scheduler reads some that we do not, such as suffixes alone.
        None => failed("a quantity that is rounded, or none"),
    }
}

fn units(with: &[Value]) -> Result<i128, SelectorError> {
    Ok(i128::from(int(with, 1)?) * quantity::NANOS)
}

fn sum(with: &[Value], nanos: i128) -> Result<Value, SelectorError> {
    match amount(with, 0)?.nanos.checked_add(nanos) {
        Some(nanos) => Ok(Value::Quantity(Amount { nanos, whole: false, computed: true })),
        None => failed("a quantity too large"),
    }
}

fn whole(with: &[Value]) -> Result<i64, SelectorError> {
    let amount = amount(with, 0)?;
    match i64::try_from(amount.nanos / quantity::NANOS) {
        Ok(number) if amount.whole => Ok(number),
        _ => failed("a quantity that may be no whole number"),
    }
}
