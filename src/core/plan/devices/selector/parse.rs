//! Text → expression, by the grammar of CEL.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;

use super::SelectorError;
use super::functions::Function;
use super::value::Value;

/// A longer text is not read: it could cost more than kube-scheduler lets a selector cost.
const LONGEST_TEXT: usize = 4096;

/// More parts are not read: every part is a level of recursion at worst.
const MOST_PARTS: usize = 400;

/// Deeper brackets are not read.
const DEEPEST: usize = 40;

const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "in",
    "true",
    "false",
    "null",
];

/// Longer ones first.
const SYMBOLS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "[", "]", "(", ")", ".", ",", "?", ":", "!", "-", "+", "*", "/", "%", "<", ">",
];

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    Literal(Value),
    Name(Arc<str>),
    /// `of.field`, or `of.?field`.
    Select {
        of: Box<Expr>,
        field: Arc<str>,
        optional: bool,
    },
    /// `has(of.field)`
    Has {
        of: Box<Expr>,
        field: Arc<str>,
    },
    /// `of[key]`, or `of[?key]`.
    Index {
        of: Box<Expr>,
        key: Box<Expr>,
        optional: bool,
    },
    /// `a && b && c`, or with `||`: the answer that one operand alone decides is `decides`.
    Logic {
        operands: Vec<Expr>,
        decides: bool,
    },
    /// `condition ? yes : no`
    Choice {
        condition: Box<Expr>,
        yes: Box<Expr>,
        no: Box<Expr>,
    },
    /// `left == right`, or `!=`.
    Same {
        left: Box<Expr>,
        right: Box<Expr>,
        equal: bool,
    },
    /// `key in of`
    In {
        key: Box<Expr>,
        of: Box<Expr>,
    },
    List(Vec<Expr>),
    /// An operator, a function (without `on`) or a method; the functions with fitting types follow from the check.
    Call {
        name: String,
        on: Option<Box<Expr>>,
        with: Vec<Expr>,
        functions: Vec<&'static Function>,
    },
    /// `text.matches('pattern')`
    Matches {
        text: Box<Expr>,
        pattern: Regex,
    },
    /// `of.orValue(other)`
    OrValue {
        of: Box<Expr>,
        other: Box<Expr>,
    },
    /// `cel.bind(name, value, body)`
    Bind {
        name: Arc<str>,
        value: Box<Expr>,
        body: Box<Expr>,
    },
    /// `of.all(name, body)` and its kin.
    Fold {
        fold: Fold,
        of: Box<Expr>,
        name: Arc<str>,
        body: Box<Expr>,
    },
}

/// A macro that visits a list, or the keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl Fold {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "all" => Self::All,
            "exists" => Self::Exists,
            "exists_one" => Self::ExistsOne,
            "filter" => Self::Filter,
            "map" => Self::Map,
            _ => return None,
        })
    }
}

/// Returns the expression that a text writes.
pub fn parse(text: &str) -> Result<Expr, SelectorError> {
    if text.len() > LONGEST_TEXT {
        return Err(SelectorError::Syntax { what: "more text than is read".to_owned(), at: LONGEST_TEXT });
    }
    let mut parser = Parser { tokens: Lexer { text, at: 0 }.tokens()?, at: 0, depth: 0, parts: 0 };
    let expression = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected("the end")),
    }
}

/// Returns the words of a text, those within strings as the text writes them and as they read.
pub fn words(text: &str, expression: &Expr) -> BTreeSet<Arc<str>> {
    let mut texts = vec![Arc::from(text)];
    strings(expression, &mut texts);
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = texts.iter().flat_map(|text| text.split(|any| !letter(any)));
    // A number can be the start of what is a word in a string.
    words
        .map(|word| word.trim_start_matches(|first: char| first.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .map(Arc::from)
        .collect()
}

fn strings(expression: &Expr, texts: &mut Vec<Arc<str>>) {
    if let Expr::Literal(Value::Text(text)) = expression {
        texts.push(text.clone());
    }
    parts(expression).into_iter().for_each(|part| strings(part, texts));
}

fn parts(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Literal(_) | Expr::Name(_) => Vec::new(),
        Expr::Select { of, .. } | Expr::Has { of, .. } | Expr::Matches { text: of, .. } => vec![of],
        Expr::Index { of, key, .. } | Expr::In { key, of } => vec![of, key],
        Expr::Logic { operands, .. } | Expr::List(operands) => operands.iter().collect(),
        Expr::Choice { condition, yes, no } => vec![condition, yes, no],
        Expr::Same { left, right, .. } => vec![left, right],
        Expr::Call { on, with, .. } => on.as_deref().into_iter().chain(with).collect(),
        Expr::OrValue { of, other } => vec![of, other],
        Expr::Bind { value, body, .. } => vec![value, body],
        Expr::Fold { of, body, .. } => vec![of, body],
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(String),
    Symbol(&'static str),
    End,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn tokens(mut self) -> Result<Vec<(Token, usize)>, SelectorError> {
        let mut tokens = Vec::new();
        loop {
            self.skip();
            let at = self.at;
            let token = self.token()?;
            let end = token == Token::End;
            tokens.push((token, at));
            if end {
                return Ok(tokens);
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn first(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fault(&self, what: impl Into<String>) -> SelectorError {
        SelectorError::Syntax { what: what.into(), at: self.at + 1 }
    }

    /// Takes the letters that fit.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let (taken, _) = rest.split_at(rest.find(|letter| !fits(letter)).unwrap_or(rest.len()));
        self.at += taken.len();
        taken
    }

    fn take_prefix(&mut self, prefix: &str) -> bool {
        let is = self.rest().starts_with(prefix);
        self.at += if is { prefix.len() } else { 0 };
        is
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            self.take(|letter| matches!(letter, ' ' | '\t' | '\r' | '\n' | '\u{c}'));
            if !self.rest().starts_with("//") {
                return;
            }
            self.take(|letter| letter != '\n');
        }
    }

    fn token(&mut self) -> Result<Token, SelectorError> {
        let Some(first) = self.first() else { return Ok(Token::End) };
        let second = self.rest().chars().nth(1);
        if first.is_ascii_digit() || (first == '.' && second.is_some_and(|digit| digit.is_ascii_digit())) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            let quoted = matches!(self.first(), Some('\'' | '"'));
            return match name {
                "r" | "R" if quoted => self.string(true),
                _ if quoted => Err(self.fault("a prefix of a string that is not known")),
                _ => Ok(Token::Name(name.to_owned())),
            };
        }
        if first == '\'' || first == '"' {
            return self.string(false);
        }
        match SYMBOLS.iter().find(|symbol| self.take_prefix(symbol)) {
            Some(symbol) => Ok(Token::Symbol(symbol)),
            None => Err(self.fault(format!("{first:?} is not known"))),
        }
    }

    fn number(&mut self) -> Result<Token, SelectorError> {
        let start = self.at;
        if self.take_prefix("0x") {
            let digits = self.take(|digit| digit.is_ascii_hexdigit());
            let number = u64::from_str_radix(digits, 16).map_err(|_| self.fault("no number"))?;
            return Ok(if self.take_prefix("u") || self.take_prefix("U") {
                Token::Uint(number)
            } else {
                Token::Int(number)
            });
        }
        let digit = |digit: char| digit.is_ascii_digit();
        let whole = self.take(digit);
        let mut double = false;
        if self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(digit)) {
            double = true;
            self.at += 1;
            self.take(digit);
        }
        let exponent =
            self.rest().strip_prefix(['e', 'E']).map(|rest| (rest, rest.strip_prefix(['+', '-']).unwrap_or(rest)));
        if let Some((signed, digits)) = exponent.filter(|(_, digits)| digits.starts_with(digit)) {
            double = true;
            self.at += 1 + signed.len() - digits.len();
            self.take(digit);
        }
        if double {
            let number = self
                .text
                .get(start..self.at)
                .and_then(|text| text.parse::<f64>().ok())
                .filter(|number| number.is_finite());
            return number.map(Token::Double).ok_or_else(|| self.fault("no number"));
        }
        let number = whole.parse().map_err(|_| self.fault("a number too large"))?;
        Ok(if self.take_prefix("u") || self.take_prefix("U") { Token::Uint(number) } else { Token::Int(number) })
    }

    fn string(&mut self, raw: bool) -> Result<Token, SelectorError> {
        let quotes = ["'''", "\"\"\"", "'", "\""];
        let Some(quote) = quotes.into_iter().find(|quote| self.take_prefix(quote)) else {
            return Err(self.fault("expected a string"));
        };
        let mut string = String::new();
        loop {
            if self.take_prefix(quote) {
                return Ok(Token::Text(string));
            }
            match self.first() {
                Some('\\') if !raw => {
                    self.at += 1;
                    string.push(self.escaped()?);
                }
                Some('\n') if quote.len() == 1 => return Err(self.fault("a string without an end")),
                // Its end of line would be rewritten.
                Some('\r') => return Err(self.fault("a carriage return in a string")),
                Some(letter) => {
                    self.at += letter.len_utf8();
                    string.push(letter);
                }
                None => return Err(self.fault("a string without an end")),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, SelectorError> {
        let fault = self.fault("an escape that is not known");
        let letter = self.first().ok_or_else(|| fault.clone())?;
        let (prefix, length, radix) = match letter {
            'x' => (1, 2, 16),
            'u' => (1, 4, 16),
            'U' => (1, 8, 16),
            '0'..='3' => (0, 3, 8),
            _ => {
                self.at += letter.len_utf8();
                return Ok(match letter {
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    '\\' | '?' | '\'' | '"' | '`' => letter,
                    _ => return Err(fault),
                });
            }
        };
        let digits =
            self.rest().get(prefix..prefix + length).filter(|digits| digits.chars().all(|digit| digit.is_digit(radix)));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok()).and_then(char::from_u32);
        self.at += prefix + length;
        code.ok_or(fault)
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    parts: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(token, _)| token)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn fault(&self, what: impl Into<String>) -> SelectorError {
        let at = self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |(_, at)| *at);
        SelectorError::Syntax { what: what.into(), at: at + 1 }
    }

    fn unexpected(&self, wanted: &str) -> SelectorError {
        self.fault(format!("expected {wanted}"))
    }

    fn take(&mut self, symbol: &'static str) -> bool {
        let is = *self.peek() == Token::Symbol(symbol);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), SelectorError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(symbol)) }
    }

    /// Takes one of the operators.
    fn operator(&mut self, among: &[&'static str]) -> Option<&'static str> {
        let found = match self.peek() {
            Token::Symbol(symbol) => among.iter().find(|operator| *operator == symbol),
            Token::Name(name) => among.iter().find(|operator| *operator == name),
            _ => None,
        };
        self.at += usize::from(found.is_some());
        found.copied()
    }

    fn part(&mut self, expression: Expr) -> Result<Expr, SelectorError> {
        self.parts += 1;
        if self.parts > MOST_PARTS { Err(self.fault("more parts than are read")) } else { Ok(expression) }
    }

    fn call(&mut self, name: &str, on: Option<Expr>, with: Vec<Expr>) -> Result<Expr, SelectorError> {
        self.part(Expr::Call { name: name.to_owned(), on: on.map(Box::new), with, functions: Vec::new() })
    }

    fn expression(&mut self) -> Result<Expr, SelectorError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.fault("deeper brackets than are read"));
        }
        let condition = self.or()?;
        let expression = if self.take("?") {
            let yes = self.or()?;
            self.expect(":")?;
            let no = self.expression()?;
            self.part(Expr::Choice { condition: Box::new(condition), yes: Box::new(yes), no: Box::new(no) })?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn or(&mut self) -> Result<Expr, SelectorError> {
        self.logic("||", true, Self::and)
    }

    fn and(&mut self) -> Result<Expr, SelectorError> {
        self.logic("&&", false, Self::relation)
    }

    fn logic(
        &mut self,
        symbol: &'static str,
        decides: bool,
        operand: impl Fn(&mut Self) -> Result<Expr, SelectorError>,
    ) -> Result<Expr, SelectorError> {
        let first = operand(self)?;
        if *self.peek() != Token::Symbol(symbol) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take(symbol) {
            operands.push(operand(self)?);
        }
        self.part(Expr::Logic { operands, decides })
    }

    fn relation(&mut self) -> Result<Expr, SelectorError> {
        let mut left = self.sum()?;
        while let Some(operator) = self.operator(&["==", "!=", "<", "<=", ">", ">=", "in"]) {
            let right = self.sum()?;
            left = match operator {
                "==" | "!=" => {
                    let equal = operator == "==";
                    self.part(Expr::Same { left: Box::new(left), right: Box::new(right), equal })?
                }
                "in" => self.part(Expr::In { key: Box::new(left), of: Box::new(right) })?,
                _ => self.call(operator, None, vec![left, right])?,
            };
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, SelectorError> {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(&["+", "-"]) {
            let right = self.product()?;
            left = self.call(operator, None, vec![left, right])?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, SelectorError> {
        let mut left = self.unary()?;
        while let Some(operator) = self.operator(&["*", "/", "%"]) {
            let right = self.unary()?;
            left = self.call(operator, None, vec![left, right])?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, SelectorError> {
        let mut negations = 0;
        while self.take("!") {
            negations += 1;
        }
        if negations > 0 {
            let operand = self.signed()?;
            return if negations % 2 == 0 { Ok(operand) } else { self.call("!", None, vec![operand]) };
        }
        if *self.peek() == Token::Symbol("-") && !self.negative_number() {
            self.at += 1;
            let operand = self.member()?;
            return self.call("-", None, vec![operand]);
        }
        self.signed()
    }

    fn negative_number(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some((Token::Int(_) | Token::Double(_), _)))
    }

    /// A member, maybe of a negative number.
    fn signed(&mut self) -> Result<Expr, SelectorError> {
        if *self.peek() != Token::Symbol("-") || !self.negative_number() {
            return self.member();
        }
        self.at += 1;
        let number = match self.next() {
            Token::Int(number) => 0_i64.checked_sub_unsigned(number).map(Value::Int),
            Token::Double(number) => Some(Value::Double(-number)),
            _ => None,
        };
        let number = number.ok_or_else(|| self.fault("a number too small"))?;
        self.members(Expr::Literal(number))
    }

    fn member(&mut self) -> Result<Expr, SelectorError> {
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, primary: Expr) -> Result<Expr, SelectorError> {
        let mut member = primary;
        loop {
            if self.take(".") {
                let optional = self.take("?");
                let Token::Name(name) = self.peek().clone() else { return Err(self.unexpected("a name")) };
                if matches!(name.as_str(), "in" | "true" | "false" | "null") {
                    return Err(self.unexpected("a name"));
                }
                self.at += 1;
                member = if !optional && self.take("(") {
                    let with = self.list(")")?;
                    self.method(member, &name, with)?
                } else {
                    self.part(Expr::Select { of: Box::new(member), field: name.into(), optional })?
                };
            } else if self.take("[") {
                let optional = self.take("?");
                let key = Box::new(self.expression()?);
                self.expect("]")?;
                member = self.part(Expr::Index { of: Box::new(member), key, optional })?;
            } else {
                return Ok(member);
            }
        }
    }

    /// A method, a macro that looks like one, or a function with a name of two words.
    fn method(&mut self, on: Expr, name: &str, mut with: Vec<Expr>) -> Result<Expr, SelectorError> {
        match (&on, name, with.len()) {
            (Expr::Name(space), "bind", 3) if &**space == "cel" => {
                let (Some(body), Some(value), Some(Expr::Name(name))) = (with.pop(), with.pop(), with.pop()) else {
                    return Err(self.fault("a variable without a name"));
                };
                self.part(Expr::Bind { name, value: Box::new(value), body: Box::new(body) })
            }
            (Expr::Name(space), _, _)
                if matches!(&**space, "sets" | "optional" | "cel" | "math" | "lists" | "ip" | "cidr") =>
            {
                self.call(&format!("{space}.{name}"), None, with)
            }
            (_, _, 2) if Fold::named(name).is_some() => {
                let (Some(fold), Some(body), Some(Expr::Name(name))) = (Fold::named(name), with.pop(), with.pop())
                else {
                    return Err(self.fault("a variable without a name"));
                };
                self.part(Expr::Fold { fold, of: Box::new(on), name, body: Box::new(body) })
            }
            (_, "orValue", 1) => {
                let Some(other) = with.pop() else { return Err(self.unexpected("a value")) };
                self.part(Expr::OrValue { of: Box::new(on), other: Box::new(other) })
            }
            _ => self.call(name, Some(on), with),
        }
    }

    fn list(&mut self, end: &'static str) -> Result<Vec<Expr>, SelectorError> {
        let mut list = Vec::new();
        if self.take(end) {
            return Ok(list);
        }
        loop {
            list.push(self.expression()?);
            if self.take(end) {
                return Ok(list);
            }
            self.expect(",")?;
        }
    }

    fn primary(&mut self) -> Result<Expr, SelectorError> {
        let expression = match self.peek().clone() {
            Token::Symbol("(") => {
                self.at += 1;
                let expression = self.expression()?;
                self.expect(")")?;
                return Ok(expression);
            }
            Token::Symbol("[") => {
                self.at += 1;
                return self.list("]").and_then(|list| self.part(Expr::List(list)));
            }
            Token::Name(name) => return self.named(&name),
            Token::Int(number) => {
                let number = i64::try_from(number).map_err(|_| self.fault("a number too large"))?;
                Value::Int(number)
            }
            Token::Uint(number) => Value::Uint(number),
            Token::Double(number) => Value::Double(number),
            Token::Text(text) => Value::Text(text.into()),
            Token::Symbol(_) | Token::End => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        self.part(Expr::Literal(expression))
    }

    fn named(&mut self, name: &str) -> Result<Expr, SelectorError> {
        match name {
            "true" | "false" => {
                self.at += 1;
                return self.part(Expr::Literal(Value::Flag(name == "true")));
            }
            _ if RESERVED.contains(&name) => return Err(self.fault(format!("{name} is not known"))),
            _ => self.at += 1,
        }
        if !self.take("(") {
            return self.part(Expr::Name(name.into()));
        }
        let mut with = self.list(")")?;
        if name != "has" {
            return self.call(name, None, with);
        }
        match (with.pop(), with.len()) {
            (Some(Expr::Select { of, field, optional: false }), 0) => self.part(Expr::Has { of, field }),
            _ => Err(self.fault("has() of what is no field")),
        }
    }
}
