//! Types, before any device is seen: kube-scheduler refuses an expression whose types do not fit, even where they would not
//! matter.

use std::sync::Arc;

use super::functions::{FUNCTIONS, Kind};
use super::parse::{Expr, Fold};
use super::value::Value;
use super::{SelectorError, pattern};

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Type {
    /// Known with the value only: an attribute's.
    Any,
    Flag,
    Int,
    Uint,
    Double,
    Text,
    Version,
    Quantity,
    List(Box<Type>),
    /// From texts.
    Map(Box<Type>),
    Optional(Box<Type>),
    Device,
}

/// Names of types, which are values as well.
const TYPE_NAMES: &[&str] =
    &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "type", "null_type", "dyn"];

/// Checks an expression and finds the functions that its calls may mean. Returns whether it may look at any attribute.
pub fn check(expression: &mut Expr) -> Result<bool, SelectorError> {
    let mut checker = Checker { scope: Vec::new(), open: false };
    match checker.check(expression)? {
        Type::Flag | Type::Any => Ok(checker.open),
        _ => unknown("the expression is no condition"),
    }
}

fn unknown<T>(what: impl Into<String>) -> Result<T, SelectorError> {
    Err(SelectorError::Unknown(what.into()))
}

struct Checker {
    scope: Vec<(Arc<str>, Type)>,
    open: bool,
}

impl Checker {
    fn check(&mut self, expression: &mut Expr) -> Result<Type, SelectorError> {
        match expression {
            Expr::Literal(value) => literal(value),
            Expr::Name(name) => self.named(name),
            Expr::Select { of, field, optional } => {
                let given = field_of(self.check(of)?, field)?;
                Ok(if *optional { optional_of(given) } else { given })
            }
            Expr::Has { of, field } => match field_of(self.check(of)?, field)? {
                Type::Optional(_) => unknown("has() of what may not be there"),
                _ => Ok(Type::Flag),
            },
            Expr::Index { of, key, optional } => {
                let of = self.check(of)?;
                let given = self.element(of, key)?;
                Ok(if *optional { optional_of(given) } else { given })
            }
            Expr::Logic { operands, .. } => {
                operands.iter_mut().try_for_each(|operand| self.condition(operand))?;
                Ok(Type::Flag)
            }
            Expr::Choice { condition, yes, no } => {
                self.condition(condition)?;
                let (yes, no) = (self.check(yes)?, self.check(no)?);
                join(yes, no)
            }
            Expr::Same { left, right, .. } => {
                let (left, right) = (self.check(left)?, self.check(right)?);
                join(left, right).map(|_| Type::Flag)
            }
            Expr::In { key, of } => self.membership(key, of),
            Expr::List(elements) => self.list(elements),
            Expr::Call { .. } => self.call(expression),
            Expr::Matches { .. } => Ok(Type::Flag),
            Expr::OrValue { of, other } => match (self.check(of)?, self.check(other)?) {
                (Type::Optional(of), other) => join(*of, other),
                _ => unknown("orValue() of what is always there"),
            },
            Expr::Bind { name, value, body } => {
                let value = self.check(value)?;
                self.with(name, value, body)
            }
            Expr::Fold { fold, of, name, body } => self.fold(*fold, of, name, body),
        }
    }

    fn named(&self, name: &Arc<str>) -> Result<Type, SelectorError> {
        match self.scope.iter().rfind(|(known, _)| known == name) {
            Some((_, known)) => Ok(known.clone()),
            None if &**name == "device" => Ok(Type::Device),
            None => unknown(format!("{name} is not known")),
        }
    }

    fn with(&mut self, name: &Arc<str>, value: Type, body: &mut Expr) -> Result<Type, SelectorError> {
        if TYPE_NAMES.contains(&&**name) {
            return unknown(format!("{name} is the name of a type"));
        }
        self.scope.push((name.clone(), value));
        let given = self.check(body);
        self.scope.pop();
        given
    }

    fn condition(&mut self, expression: &mut Expr) -> Result<(), SelectorError> {
        match self.check(expression)? {
            Type::Flag | Type::Any => Ok(()),
            _ => unknown("an operand is no condition"),
        }
    }

    /// The type of what stands in a list or map.
    fn element(&mut self, of: Type, key: &mut Expr) -> Result<Type, SelectorError> {
        let key_type = self.check(key)?;
        match (of, key_type) {
            (Type::Map(of), Type::Text | Type::Any) => {
                self.open |= !matches!(key, Expr::Literal(_));
                Ok(*of)
            }
            (Type::List(of), Type::Int | Type::Any) => Ok(*of),
            (Type::Optional(of), _) => self.element(*of, key).map(optional_of),
            _ => unknown("[] of what is no list or map"),
        }
    }

    fn membership(&mut self, key: &mut Expr, of: &mut Expr) -> Result<Type, SelectorError> {
        match (self.check(key)?, self.check(of)?) {
            (key, Type::List(of)) => join(key, *of).map(|_| Type::Flag),
            (Type::Text | Type::Any, Type::Map(of)) => {
                // A domain is there when any attribute of it is.
                self.open |= !matches!(key, Expr::Literal(_)) || matches!(*of, Type::Map(_));
                Ok(Type::Flag)
            }
            _ => unknown("in with what is no list or map"),
        }
    }

    fn list(&mut self, elements: &mut [Expr]) -> Result<Type, SelectorError> {
        let mut of: Option<Type> = None;
        for element in elements {
            let element = self.check(element)?;
            if of.get_or_insert_with(|| element.clone()) != &element {
                return unknown("a list with elements of different types");
            }
        }
        // The type of an empty list follows from where it is used.
        of.map_or_else(|| unknown("an empty list"), |of| Ok(Type::List(Box::new(of))))
    }

    fn call(&mut self, expression: &mut Expr) -> Result<Type, SelectorError> {
        let Expr::Call { name, on, with, functions } = expression else { return unknown("no call") };
        let mut types = Vec::new();
        for argument in on.as_deref_mut().into_iter().chain(with.iter_mut()) {
            types.push(self.check(argument)?);
        }
        let fitting = FUNCTIONS.iter().filter(|function| {
            function.name == *name
                && function.method == on.is_some()
                && function.takes.len() == types.len()
                && function.takes.iter().zip(&types).all(|(kind, given)| fits(*kind, given))
        });
        *functions = fitting.collect();
        let given: Vec<Type> = functions.iter().map(|function| type_of(function.gives)).collect();
        let Some((first, others)) = given.split_first() else {
            return unknown(format!("{name} is not known, or not for such arguments"));
        };
        let given = if others.iter().all(|other| other == first) { first.clone() } else { Type::Any };
        if name.starts_with("sets.") {
            types.into_iter().reduce(|one, other| join(one, other).unwrap_or(Type::Device)).map_or(
                Ok(given),
                |joined| match joined {
                    Type::Device => unknown("sets of different types"),
                    _ => Ok(Type::Flag),
                },
            )
        } else {
            compile_pattern(expression)?;
            Ok(given)
        }
    }

    fn fold(&mut self, fold: Fold, of: &mut Expr, name: &Arc<str>, body: &mut Expr) -> Result<Type, SelectorError> {
        let element = match (self.check(of)?, fold) {
            (Type::List(element), _) => *element,
            (Type::Map(_), Fold::All | Fold::Exists | Fold::ExistsOne) => {
                self.open = true;
                Type::Text
            }
            _ => return unknown("a macro on what is no list or map"),
        };
        let list = Type::List(Box::new(element.clone()));
        let given = self.with(name, element, body)?;
        match (fold, given) {
            (Fold::Map, given) => Ok(Type::List(Box::new(given))),
            (Fold::Filter, Type::Flag | Type::Any) => Ok(list),
            (Fold::All | Fold::Exists | Fold::ExistsOne, Type::Flag | Type::Any) => Ok(Type::Flag),
            _ => unknown("a macro with what is no condition"),
        }
    }
}

/// A pattern that the text writes is compiled once.
fn compile_pattern(expression: &mut Expr) -> Result<(), SelectorError> {
    let Expr::Call { name, on, with, .. } = expression else { return Ok(()) };
    let Some(Expr::Literal(Value::Text(text))) = with.last().filter(|_| name == "matches") else { return Ok(()) };
    let pattern = pattern::compile(text)?;
    let text = on.take().map(|on| *on).or_else(|| with.drain(..).next());
    if let Some(text) = text {
        *expression = Expr::Matches { text: Box::new(text), pattern };
    }
    Ok(())
}

fn literal(value: &Value) -> Result<Type, SelectorError> {
    Ok(match value {
        Value::Flag(_) => Type::Flag,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::Text(_) => Type::Text,
        _ => return unknown("a literal that is not known"),
    })
}

fn optional_of(given: Type) -> Type {
    match given {
        Type::Optional(_) => given,
        _ => Type::Optional(Box::new(given)),
    }
}

fn field_of(of: Type, field: &str) -> Result<Type, SelectorError> {
    let map = |of| Type::Map(Box::new(Type::Map(Box::new(of))));
    Ok(match of {
        Type::Any => Type::Any,
        Type::Map(of) => *of,
        Type::Optional(of) => optional_of(field_of(*of, field)?),
        Type::Device => match field {
            "driver" => Type::Text,
            "allowMultipleAllocations" => Type::Flag,
            "attributes" => map(Type::Any),
            "capacity" => map(Type::Quantity),
            _ => return unknown(format!("device.{field} is not known")),
        },
        _ => return unknown(format!("{field} of what has no fields")),
    })
}

/// The more general of two types, when one is as general as the other.
fn join(one: Type, other: Type) -> Result<Type, SelectorError> {
    let boxed = |one: Box<Type>, other: Box<Type>| join(*one, *other).map(Box::new);
    match (one, other) {
        (Type::Any, _) | (_, Type::Any) => Ok(Type::Any),
        (Type::List(one), Type::List(other)) => boxed(one, other).map(Type::List),
        (Type::Map(one), Type::Map(other)) => boxed(one, other).map(Type::Map),
        (Type::Optional(one), Type::Optional(other)) => boxed(one, other).map(Type::Optional),
        (one, other) if one == other => Ok(one),
        _ => unknown("values of different types"),
    }
}

fn fits(kind: Kind, given: &Type) -> bool {
    match (kind, given) {
        (Kind::Any, _)
        | (_, Type::Any)
        | (Kind::Number, Type::Int | Type::Uint | Type::Double)
        | (Kind::List, Type::List(_))
        | (Kind::Optional, Type::Optional(_)) => true,
        _ => type_of(kind) == *given,
    }
}

fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Any | Kind::Number => Type::Any,
        Kind::Flag => Type::Flag,
        Kind::Int => Type::Int,
        Kind::Uint => Type::Uint,
        Kind::Double => Type::Double,
        Kind::Text => Type::Text,
        Kind::Version => Type::Version,
        Kind::Quantity => Type::Quantity,
        Kind::List => Type::List(Box::new(Type::Any)),
        Kind::Texts => Type::List(Box::new(Type::Text)),
        Kind::Optional => Type::Optional(Box::new(Type::Any)),
    }
}
