//! Text → expression with its types: kube-scheduler refuses an expression whose types do not fit, even where they would not
//! matter.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::functions::{FUNCTIONS, Function, Kind, Value};
use super::run::{Expr, Property};
use super::{Names, SelectorError, not_understood, pattern};

/// A longer text is not read: it could cost more than kube-scheduler lets a selector cost.
const LONGEST_TEXT: usize = 4096;

/// Deeper brackets are not read.
const DEEPEST: usize = 40;

/// An operator, how much it binds, and the orders of operands for which a comparison holds.
type Operator = (&'static str, u8, fn(Ordering) -> bool);

/// Operators between two operands, longer ones first. Those with a higher number bind more.
const OPERATORS: &[Operator] = &[
    ("||", 1, Ordering::is_eq),
    ("&&", 2, Ordering::is_eq),
    ("==", 3, Ordering::is_eq),
    ("!=", 3, Ordering::is_ne),
    ("<=", 3, Ordering::is_le),
    (">=", 3, Ordering::is_ge),
    ("<", 3, Ordering::is_lt),
    (">", 3, Ordering::is_gt),
    ("in", 3, Ordering::is_eq),
];

/// An expression and its type.
type Typed = (Expr, Kind);

/// Returns the condition that a text writes, and the names of the attributes and capacities that it looks at; None for any.
pub fn parse(text: &str) -> Result<(Expr, Names), SelectorError> {
    if text.len() > LONGEST_TEXT {
        return not_understood("so long a text");
    }
    let mut parser = Parser { rest: text, depth: 0, names: Some(BTreeSet::new()) };
    let expression = parser.expression(0)?;
    parser.skip();
    if parser.rest.is_empty() { Ok((*condition(expression)?, parser.names)) } else { parser.unexpected() }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
    names: Names,
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Returns an operand that may be true or false.
fn condition((expression, kind): Typed) -> Result<Box<Expr>, SelectorError> {
    if kind.fits(Kind::Flag) { Ok(Box::new(expression)) } else { not_understood("what is no condition") }
}

impl<'a> Parser<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
    }

    fn take(&mut self, symbol: &str) -> bool {
        self.skip();
        let after = self.rest.strip_prefix(symbol);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expect(&mut self, symbol: &str) -> Result<(), SelectorError> {
        if self.take(symbol) { Ok(()) } else { self.unexpected() }
    }

    /// Takes the letters of a name or a number; there may be none.
    fn word(&mut self) -> &'a str {
        self.skip();
        let (word, rest) = self.rest.split_at(self.rest.find(|letter| !is_of_name(letter)).unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn unexpected<T>(&mut self) -> Result<T, SelectorError> {
        match (self.word(), self.rest.chars().next()) {
            ("", None) => not_understood("an expression without an end"),
            ("", Some(letter)) => not_understood(letter),
            (word, _) => not_understood(word),
        }
    }

    /// An operand, and all operators behind it that bind no less.
    fn expression(&mut self, least: u8) -> Result<Typed, SelectorError> {
        let mut left = self.operand()?;
        while let Some((operator, binds, fits)) = self.operator(least) {
            left = match operator {
                "||" | "&&" => {
                    let operands = [condition(left)?, self.expression(binds + 1).and_then(condition)?];
                    (Expr::Logic { operands, decides: operator == "||" }, Kind::Flag)
                }
                "in" => (self.membership(left)?, Kind::Flag),
                _ => {
                    let ((left, kind), (right, other)) = (left, self.expression(binds + 1)?);
                    let is_equality = matches!(operator, "==" | "!=");
                    if !kind.fits(other) || !(is_equality || (kind.has_order() && other.has_order())) {
                        return not_understood(format!("{operator} of such values"));
                    }
                    (Expr::Compare { operands: Box::new([left, right]), is_equality, fits }, Kind::Flag)
                }
            };
        }
        Ok(left)
    }

    fn operator(&mut self, least: u8) -> Option<Operator> {
        self.skip();
        let found = OPERATORS.iter().find(|(operator, ..)| self.rest.starts_with(operator));
        let found = found.filter(|(_, binds, _)| *binds >= least);
        self.rest = found.and_then(|(operator, ..)| self.rest.strip_prefix(operator)).unwrap_or(self.rest);
        found.copied()
    }

    /// What stands behind `in`: a list that is written there, or a map of the device.
    fn membership(&mut self, (key, kind): Typed) -> Result<Expr, SelectorError> {
        if self.take("[") {
            let list = self.list("]")?;
            let Some((_, of)) = list.first().filter(|(_, first)| list.iter().all(|(_, kind)| kind == first)) else {
                return not_understood("an empty or mixed list");
            };
            if !kind.fits(*of) {
                return not_understood("in with values of another type");
            }
            return Ok(Expr::In(Box::new(key), list.into_iter().map(|(element, _)| element).collect()));
        }
        match (key, self.device()?.0.as_slice()) {
            (Expr::Literal(Value::Text(domain)), [map]) if &**map == "attributes" => {
                self.names = None;
                Ok(Expr::Has(Property::Domain(domain)))
            }
            (Expr::Literal(Value::Text(name)), [map, domain]) => {
                self.property(&[map.clone(), domain.clone(), name]).map(|(property, _)| Expr::Has(property))
            }
            _ => not_understood("in of what is no list"),
        }
    }

    fn operand(&mut self) -> Result<Typed, SelectorError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return not_understood("so deep an expression");
        }
        let mut operand =
            if self.take("!") { (Expr::Not(self.operand().and_then(condition)?), Kind::Flag) } else { self.primary()? };
        while self.take(".") {
            operand = match self.word() {
                "" => return self.unexpected(),
                name => self.call(&format!(".{name}"), Some(operand))?,
            };
        }
        self.depth -= 1;
        Ok(operand)
    }

    fn primary(&mut self) -> Result<Typed, SelectorError> {
        if self.take("(") {
            let inner = self.expression(0)?;
            return self.expect(")").map(|()| inner);
        }
        if let Some(text) = self.text()? {
            return Ok((Expr::Literal(Value::Text(text)), Kind::Text));
        }
        let sign = if self.take("-") { "-" } else { "" };
        match self.word() {
            digits if digits.starts_with(|digit: char| digit.is_ascii_digit()) => {
                let number = format!("{sign}{digits}{}", if self.take(".") { "." } else { "" });
                let read = number.parse().map(|number| (Expr::Literal(Value::Int(number)), Kind::Int));
                read.or_else(|_| not_understood(format!("the number {number}")))
            }
            _ if !sign.is_empty() => not_understood(sign),
            flag @ ("true" | "false") => Ok((Expr::Literal(Value::Flag(flag == "true")), Kind::Flag)),
            "device" => {
                let (fields, _) = self.fields()?;
                self.property(&fields).map(|(property, kind)| (Expr::Property(property), kind))
            }
            "has" => {
                self.expect("(")?;
                match self.device()? {
                    (fields, true) => {
                        self.expect(")")?;
                        self.property(&fields).map(|(property, _)| (Expr::Has(property), Kind::Flag))
                    }
                    _ => not_understood("has() of what is no field"),
                }
            }
            "" => self.unexpected(),
            name => self.call(name, None),
        }
    }

    /// A string.
    fn text(&mut self) -> Result<Option<Arc<str>>, SelectorError> {
        self.skip();
        let unprefixed = self.rest.strip_prefix(['r', 'R']).unwrap_or(self.rest);
        let is_raw = unprefixed.len() < self.rest.len();
        let mut letters = unprefixed.chars();
        let Some(quote @ ('\'' | '"')) = letters.next() else { return Ok(None) };
        let mut text = String::new();
        while let Some(letter) = letters.next() {
            match letter {
                _ if letter == quote => {
                    self.rest = letters.as_str();
                    return Ok(Some(text.into()));
                }
                '\\' if !is_raw => match letters.next() {
                    Some(escaped @ ('\\' | '\'' | '"')) => text.push(escaped),
                    _ => return not_understood("an escape of a string"),
                },
                '\n' | '\r' => break,
                _ => text.push(letter),
            }
        }
        not_understood("a string without an end")
    }

    fn device(&mut self) -> Result<(Vec<Arc<str>>, bool), SelectorError> {
        match self.word() {
            "device" => self.fields(),
            "" => self.unexpected(),
            word => not_understood(word),
        }
    }

    /// The fields behind `device`, at most that of an attribute, and whether the last is written `.field`.
    fn fields(&mut self) -> Result<(Vec<Arc<str>>, bool), SelectorError> {
        let (mut fields, mut is_field): (Vec<Arc<str>>, _) = (Vec::new(), false);
        while fields.len() < 3 && fields.first().is_none_or(|first| matches!(&**first, "attributes" | "capacity")) {
            is_field = self.take(".");
            if is_field {
                let name = self.word();
                match name {
                    "" | "in" | "true" | "false" | "null" => return self.unexpected(),
                    _ if self.take("(") => return not_understood(format!(".{name}")),
                    _ => fields.push(name.into()),
                }
            } else if !fields.is_empty() && self.take("[") {
                let Some(key) = self.text()? else { return not_understood("a key that is computed") };
                self.expect("]")?;
                fields.push(key);
            } else {
                break;
            }
        }
        Ok((fields, is_field))
    }

    fn property(&mut self, fields: &[Arc<str>]) -> Result<(Property, Kind), SelectorError> {
        let names: Vec<&str> = fields.iter().map(|field| &**field).collect();
        let [map @ ("attributes" | "capacity"), domain, name] = *names else {
            return match *names {
                ["driver"] => Ok((Property::Driver, Kind::Text)),
                ["allowMultipleAllocations"] => Ok((Property::AllowsMultiple, Kind::Flag)),
                _ => not_understood(format!("device.{}", names.join("."))),
            };
        };
        self.names.iter_mut().for_each(|names| _ = names.insert(name.into()));
        let qualified = format!("{domain}/{name}").into();
        Ok(match map {
            "attributes" => (Property::Attribute(qualified), Kind::Any),
            _ => (Property::Capacity(qualified), Kind::Quantity),
        })
    }

    /// A function or, with a point, a method of what stands before it.
    fn call(&mut self, name: &str, on: Option<Typed>) -> Result<Typed, SelectorError> {
        if !FUNCTIONS.iter().any(|function| function.name == name) || !self.take("(") {
            return not_understood(name);
        }
        let (with, kinds): (Vec<_>, Vec<_>) = on.into_iter().chain(self.list(")")?).unzip();
        let fits = |function: &&Function| {
            let takes = function.takes;
            function.name == name
                && takes.len() == kinds.len()
                && takes.iter().zip(&kinds).all(|(one, other)| one.fits(*other))
        };
        let functions: Vec<_> = FUNCTIONS.iter().filter(fits).collect();
        let Some(first) = functions.first() else { return not_understood(format!("{name}() of such values")) };
        let gives = first.gives;
        // A pattern that the text writes is compiled once.
        Ok(match (name, with.as_slice()) {
            (".matches", [text, Expr::Literal(Value::Text(pattern))]) => {
                (Expr::Matches(Box::new(text.clone()), pattern::compile(pattern)?), gives)
            }
            _ => (Expr::Call { functions, with }, gives),
        })
    }

    fn list(&mut self, end: &str) -> Result<Vec<Typed>, SelectorError> {
        let mut list = Vec::new();
        while !self.take(end) {
            if !list.is_empty() {
                self.expect(",")?;
            }
            list.push(self.expression(0)?);
        }
        Ok(list)
    }
}
