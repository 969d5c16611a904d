//! An expression with a device.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::functions::{Function, amount_of, contains};
use super::parse::{Expr, Fold};
use super::value::{Map, Value, failed};
use super::version::Version;
use super::{Attribute, DeviceFacts, SelectorError};

/// The steps after which an expression is given up, before kube-scheduler does. A step costs it less than ten of its own.
const MOST_STEPS: usize = 50_000;

type Answer = Result<Value, SelectorError>;

/// Returns the answer of an expression for a device.
pub fn run(expression: &Expr, device: &DeviceFacts) -> Result<bool, SelectorError> {
    // kube-scheduler reads all of them first.
    let faulty = |value: &Attribute| matches!(value, Attribute::Version(text) if Version::parse(text, false).is_none());
    if device.attributes.values().any(faulty) {
        return failed("an attribute is no semantic version");
    }
    match (Run { device, scope: Vec::new(), steps: 0 }).value(expression)? {
        Value::Flag(answer) => Ok(answer),
        _ => failed("the answer is neither true nor false"),
    }
}

struct Run<'a> {
    device: &'a DeviceFacts,
    scope: Vec<(Arc<str>, Answer)>,
    steps: usize,
}

impl Run<'_> {
    fn spend(&mut self, steps: usize) -> Result<(), SelectorError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS { failed("more steps than are taken") } else { Ok(()) }
    }

    fn value(&mut self, expression: &Expr) -> Answer {
        self.spend(1)?;
        match expression {
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Name(name) => match self.scope.iter().rfind(|(known, _)| known == name) {
                Some((_, value)) => value.clone(),
                None => Ok(Value::Device),
            },
            Expr::Select { of, field, optional } => {
                let of = self.value(of)?;
                self.found(of, &Value::Text(field.clone()), *optional)
            }
            Expr::Has { of, field } => {
                let of = self.value(of)?;
                self.find(&of, &Value::Text(field.clone())).map(|found| Value::Flag(found.is_some()))
            }
            Expr::Index { of, key, optional } => {
                let (of, key) = (self.value(of)?, self.value(key)?);
                self.found(of, &key, *optional)
            }
            Expr::Logic { operands, decides } => self.logic(operands.iter().map(|operand| (operand, None)), *decides),
            Expr::Choice { condition, yes, no } => match self.value(condition)? {
                Value::Flag(true) => self.value(yes),
                Value::Flag(false) => self.value(no),
                _ => failed("no such overload"),
            },
            Expr::Same { left, right, equal } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                Ok(Value::Flag(left.same(&right)? == *equal))
            }
            Expr::In { key, of } => {
                let (key, of) = (self.value(key)?, self.value(of)?);
                self.contains(&of, &key).map(Value::Flag)
            }
            Expr::List(elements) => {
                elements.iter().map(|element| self.value(element)).collect::<Result<_, _>>().map(Value::List)
            }
            Expr::Call { on, with, functions, .. } => {
                let with = on.as_deref().into_iter().chain(with);
                let with = with.map(|argument| self.value(argument)).collect::<Result<Vec<_>, _>>()?;
                self.call(functions, &with)
            }
            Expr::Matches { text, pattern } => match self.value(text)? {
                Value::Text(text) => {
                    self.spend(cost(text.len(), pattern.as_str().len()))?;
                    Ok(Value::Flag(pattern.is_match(&text)))
                }
                _ => failed("no such overload"),
            },
            Expr::OrValue { of, other } => match self.value(of)? {
                Value::Optional(Some(value)) => Ok(*value),
                Value::Optional(None) => self.value(other),
                _ => failed("no such overload"),
            },
            Expr::Bind { name, value, body } => {
                let value = self.value(value);
                self.with(name, value, body)
            }
            Expr::Fold { fold, of, name, body } => {
                let of = self.value(of)?;
                self.fold(*fold, &of, name, body)
            }
        }
    }

    fn with(&mut self, name: &Arc<str>, value: Answer, body: &Expr) -> Answer {
        self.scope.push((name.clone(), value));
        let given = self.value(body);
        self.scope.pop();
        given
    }

    fn call(&mut self, functions: &[&Function], with: &[Value]) -> Answer {
        let size = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::List(list) => list.len(),
            _ => 0,
        };
        let sizes: Vec<usize> = with.iter().map(size).collect();
        self.spend(match sizes.as_slice() {
            [one] => cost(*one, 1),
            [one, other, rest @ ..] => cost(*one, other + rest.iter().sum::<usize>()),
            [] => 0,
        })?;
        let fitting =
            functions.iter().find(|function| function.takes.iter().zip(with).all(|(kind, value)| kind.takes(value)));
        fitting.map_or_else(|| failed("no such overload"), |function| (function.apply)(with))
    }

    /// One operand that decides is enough, even when others fail.
    fn logic<'b>(
        &mut self,
        operands: impl Iterator<Item = (&'b Expr, Option<(&'b Arc<str>, Value)>)>,
        decides: bool,
    ) -> Answer {
        let mut answer = Ok(Value::Flag(!decides));
        for (operand, variable) in operands {
            let value = match variable {
                Some((name, value)) => self.with(name, Ok(value), operand),
                None => self.value(operand),
            };
            match value {
                Ok(Value::Flag(value)) if value == decides => return Ok(Value::Flag(decides)),
                Ok(Value::Flag(_)) => {}
                Ok(_) => answer = failed("no such overload"),
                Err(fault) => answer = Err(fault),
            }
        }
        answer
    }

    fn fold(&mut self, fold: Fold, of: &Value, name: &Arc<str>, body: &Expr) -> Answer {
        let elements = self.elements(of)?;
        if let Fold::All | Fold::Exists = fold {
            let each = elements.iter().map(|element| (body, Some((name, element.clone()))));
            return self.logic(each, fold == Fold::Exists);
        }
        let mut given = Vec::new();
        for element in elements.iter() {
            match (fold, self.with(name, Ok(element.clone()), body)?) {
                (Fold::Map, value) => given.push(value),
                (_, Value::Flag(true)) => given.push(element.clone()),
                (_, Value::Flag(false)) => {}
                _ => return failed("no such overload"),
            }
        }
        Ok(if fold == Fold::ExistsOne { Value::Flag(given.len() == 1) } else { Value::List(given.into()) })
    }

    /// The elements of a list, or the keys of a map.
    fn elements(&self, of: &Value) -> Result<Arc<[Value]>, SelectorError> {
        let keys: BTreeSet<&str> = match of {
            Value::List(elements) => return Ok(elements.clone()),
            Value::Domains(map) => self.names(*map).map(|(domain, _)| domain).collect(),
            Value::Domain(map, domain) => {
                self.names(*map).filter(|(of, _)| **of == **domain).map(|(_, name)| name).collect()
            }
            _ => return failed("no such overload"),
        };
        Ok(keys.into_iter().map(|key| Value::Text(key.into())).collect())
    }

    /// Domains and names of all attributes or capacities.
    fn names(&self, map: Map) -> impl Iterator<Item = (&str, &str)> {
        let (attributes, capacity) = (self.device.attributes.keys(), self.device.capacity.keys());
        let attributes = attributes.filter(move |_| map == Map::Attributes);
        attributes.chain(capacity.filter(move |_| map == Map::Capacity)).filter_map(|name| name.split_once('/'))
    }

    fn contains(&self, of: &Value, key: &Value) -> Result<bool, SelectorError> {
        match (of, key) {
            (Value::List(elements), _) => contains(elements, key),
            (Value::Domains(map), Value::Text(key)) => Ok(self.names(*map).any(|(domain, _)| *domain == **key)),
            (Value::Domain(..), Value::Text(_)) => Ok(self.find(of, key)?.is_some()),
            _ => failed("no such overload"),
        }
    }

    /// What is there, or fails.
    fn found(&self, of: Value, key: &Value, optional: bool) -> Answer {
        if let Value::Optional(of) = of {
            let found = of.map_or(Ok(None), |of| self.find(&of, key))?;
            return Ok(Value::Optional(found.map(Box::new)));
        }
        match self.find(&of, key)? {
            found if optional => Ok(Value::Optional(found.map(Box::new))),
            Some(value) => Ok(value),
            None => failed(&format!("no such key: {}", if let Value::Text(key) = key { key } else { "a number" })),
        }
    }

    fn find(&self, of: &Value, key: &Value) -> Result<Option<Value>, SelectorError> {
        Ok(match (of, key) {
            (Value::Device, Value::Text(field)) => Some(match &**field {
                "driver" => Value::Text(self.device.driver.clone()),
                "allowMultipleAllocations" => Value::Flag(self.device.allow_multiple),
                "attributes" => Value::Domains(Map::Attributes),
                "capacity" => Value::Domains(Map::Capacity),
                _ => return failed("no such field"),
            }),
            // A domain of which nothing is known has no attributes.
            (Value::Domains(map), Value::Text(domain)) => Some(Value::Domain(*map, domain.clone())),
            // No domain has a slash: it would take a part of the name for its own.
            (Value::Domain(_, domain), Value::Text(_)) if domain.contains('/') => None,
            (Value::Domain(map, domain), Value::Text(name)) => self.property(*map, &format!("{domain}/{name}"))?,
            (Value::List(elements), Value::Int(at)) => {
                match usize::try_from(*at).ok().and_then(|at| elements.get(at)) {
                    Some(element) => Some(element.clone()),
                    None => return failed("index out of range"),
                }
            }
            _ => return failed("no such overload"),
        })
    }

    fn property(&self, map: Map, name: &str) -> Result<Option<Value>, SelectorError> {
        if map == Map::Capacity {
            return self.device.capacity.get(name).map(|text| amount_of(text)).transpose();
        }
        Ok(match self.device.attributes.get(name) {
            Some(Attribute::Text(text)) => Some(Value::Text(text.clone())),
            Some(Attribute::Number(number)) => Some(Value::Int(*number)),
            Some(Attribute::Flag(flag)) => Some(Value::Flag(*flag)),
            Some(Attribute::Version(text)) => match Version::parse(text, false) {
                Some(version) => Some(Value::Version(version)),
                None => return failed("an attribute is no semantic version"),
            },
            None => None,
        })
    }
}

/// The steps of a function of a text and a pattern or other text.
fn cost(one: usize, other: usize) -> usize {
    one.saturating_mul(other) / 64
}
