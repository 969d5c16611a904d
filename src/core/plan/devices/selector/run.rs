//! An expression with a device.

use std::cmp::Ordering;
use std::sync::Arc;

use regex::Regex;

use super::functions::{Function, Value};
use super::version::Version;
use super::{Attribute, DeviceFacts, SelectorError};
use crate::model::quantity;

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    Literal(Value),
    Property(Property),
    Has(Property),
    Not(Box<Expr>),
    /// `a && b`, or with `||`: the answer that one operand alone decides is `decides`.
    Logic {
        operands: [Box<Expr>; 2],
        decides: bool,
    },
    Compare {
        operands: Box<[Expr; 2]>,
        is_equality: bool,
        fits: fn(Ordering) -> bool,
    },
    /// `key in [a, b]`
    In(Box<Expr>, Vec<Expr>),
    /// The functions are those whose types may fit.
    Call {
        functions: Vec<&'static Function>,
        with: Vec<Expr>,
    },
    /// `text.matches('pattern')`
    Matches(Box<Expr>, Regex),
}

/// A property of a device, by `domain/name` where there are several.
#[derive(Clone, Debug)]
pub enum Property {
    Driver,
    AllowsMultiple,
    Attribute(Arc<str>),
    Capacity(Arc<str>),
    /// Any attribute of a domain.
    Domain(Arc<str>),
}

fn failed(what: impl Into<String>) -> SelectorError {
    SelectorError::Failed(what.into())
}

impl Expr {
    /// Whether the condition holds for a device.
    pub fn holds(&self, device: &DeviceFacts) -> Result<bool, SelectorError> {
        match self.value(device)? {
            Value::Flag(answer) => Ok(answer),
            _ => Err(failed("neither true nor false")),
        }
    }

    fn value(&self, device: &DeviceFacts) -> Result<Value, SelectorError> {
        let all = |list: &[Self]| list.iter().map(|one| one.value(device)).collect::<Result<Vec<_>, _>>();
        let answer = match self {
            Self::Literal(value) => return Ok(value.clone()),
            Self::Property(property) => {
                return property.of(device)?.ok_or_else(|| failed(format!("no such property: {}", property.name())));
            }
            Self::Has(property) => property.of(device)?.is_some(),
            Self::Not(operand) => !operand.holds(device)?,
            // One operand that decides is enough, even when the other fails.
            Self::Logic { operands: [left, right], decides } => match left.holds(device) {
                Ok(answer) if answer == *decides => answer,
                left => match right.holds(device)? {
                    answer if answer == *decides => answer,
                    _ => left?,
                },
            },
            Self::Compare { operands, is_equality, fits } => {
                let [left, right] = &**operands;
                let (left, right) = (left.value(device)?, right.value(device)?);
                let order = if *is_equality {
                    left.same(&right).map(|same| if same { Ordering::Equal } else { Ordering::Less })
                } else {
                    left.order(&right)
                };
                fits(order.ok_or_else(|| failed("values that cannot be compared"))?)
            }
            Self::In(key, list) => {
                let key = key.value(device)?;
                key.is_in(&all(list)?).ok_or_else(|| failed("values that cannot be compared"))?
            }
            Self::Call { functions, with } => {
                let with = all(with)?;
                let given = functions.iter().find_map(|function| (function.apply)(&with));
                let name = functions.first().map_or("", |function| function.name);
                return given.ok_or_else(|| failed(format!("{name}() of such values")));
            }
            Self::Matches(text, pattern) => match text.value(device)? {
                Value::Text(text) => pattern.is_match(&text),
                _ => return Err(failed("matches() of what is no string")),
            },
        };
        Ok(Value::Flag(answer))
    }
}

impl Property {
    fn name(&self) -> &str {
        match self {
            Self::Driver => "driver",
            Self::AllowsMultiple => "allowMultipleAllocations",
            Self::Attribute(name) | Self::Capacity(name) | Self::Domain(name) => name,
        }
    }

    /// Returns the value that a device has.
    fn of(&self, device: &DeviceFacts) -> Result<Option<Value>, SelectorError> {
        Ok(match self {
            Self::Driver => Some(Value::Text(device.driver.clone())),
            Self::AllowsMultiple => Some(Value::Flag(device.allow_multiple)),
            Self::Attribute(name) => device.attributes.get(name).map(value_of).transpose()?,
            Self::Capacity(name) => {
                let read = |text: &Arc<str>| quantity::nanos(text).map(Value::Quantity);
                let read = device
                    .capacity
                    .get(name)
                    .map(|text| read(text).ok_or_else(|| failed("a quantity that is rounded")));
                read.transpose()?
            }
            Self::Domain(domain) => {
                let mut names = device.attributes.keys();
                let is_there = names.any(|name| name.split_once('/').is_some_and(|(of, _)| *of == **domain));
                is_there.then_some(Value::Flag(true))
            }
        })
    }
}

fn value_of(attribute: &Attribute) -> Result<Value, SelectorError> {
    Ok(match attribute {
        Attribute::Text(text) => Value::Text(text.clone()),
        Attribute::Number(number) => Value::Int(*number),
        Attribute::Flag(flag) => Value::Flag(*flag),
        Attribute::Version(text) => {
            Value::Version(Version::parse(text).ok_or_else(|| failed("an attribute is no semantic version"))?)
        }
    })
}
