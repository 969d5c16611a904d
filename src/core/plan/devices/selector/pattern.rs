//! Regular expressions of RE2, as far as they mean the same here.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

use super::SelectorError;

/// Go counts how often a pattern repeats in all.
const MOST_REPEATS: u32 = 1000;

/// Memory of a compiled pattern.
const LARGEST: usize = 1 << 20;

/// Compiles a pattern.
pub fn compile(pattern: &str) -> Result<Regex, SelectorError> {
    let unknown = || SelectorError::Unknown(format!("the pattern {pattern:?} is not known"));
    let mut reader = Reader { rest: pattern.chars().peekable(), out: String::new(), repeats: 1 };
    reader.pattern().ok_or_else(unknown)?;
    RegexBuilder::new(&reader.out).size_limit(LARGEST).build().map_err(|_| unknown())
}

/// What stood before in a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Nothing that can be repeated.
    Nothing,
    Item,
    Repeat,
    /// A repeat that takes as little as possible.
    Lazy,
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    repeats: u32,
}

impl Reader<'_> {
    fn pattern(&mut self) -> Option<()> {
        let mut before = Before::Nothing;
        while let Some(letter) = self.rest.next() {
            before = match letter {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '?' if before == Before::Repeat => {
                    self.out.push('?');
                    Before::Lazy
                }
                '*' | '+' | '?' => self.repeat(letter, before)?,
                '{' => {
                    let before = self.repeat(letter, before)?;
                    self.count()?;
                    before
                }
                '|' | '^' | '$' => {
                    self.out.push(letter);
                    Before::Nothing
                }
                '}' | ']' => return None,
                _ => {
                    self.out.push(letter);
                    Before::Item
                }
            };
        }
        Some(())
    }

    fn repeat(&mut self, letter: char, before: Before) -> Option<Before> {
        self.out.push(letter);
        (before == Before::Item).then_some(Before::Repeat)
    }

    /// `{2}`, `{2,}` or `{2,3}`.
    fn count(&mut self) -> Option<()> {
        let mut counts = vec![String::new()];
        loop {
            let letter = self.rest.next()?;
            self.out.push(letter);
            match letter {
                '}' => break,
                ',' => counts.push(String::new()),
                digit if digit.is_ascii_digit() => counts.last_mut()?.push(digit),
                _ => return None,
            }
        }
        let most = match counts.as_slice() {
            [count] => count.parse::<u32>().ok()?,
            [least, most] if most.is_empty() => least.parse().ok()?,
            [least, most] => most.parse().ok().filter(|most| least.parse::<u32>().is_ok_and(|least| least <= *most))?,
            _ => return None,
        };
        self.repeats = self.repeats.checked_mul(most.max(1)).filter(|repeats| *repeats <= MOST_REPEATS)?;
        Some(())
    }

    fn group(&mut self) -> Option<Before> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Some(Before::Nothing);
        }
        // `(?:` opens a group, `(?i)` at the start ignores case in all of the pattern.
        let start = self.out.len() == 1;
        match self.rest.next()? {
            ':' => self.out.push_str("?:"),
            'i' if start && self.rest.next()? == ')' => self.out.push_str("?i)"),
            _ => return None,
        }
        Some(Before::Nothing)
    }

    /// What follows a backslash, alone or in a class. The classes are those of ASCII.
    fn escape(&mut self, in_class: bool) -> Option<Before> {
        match self.rest.next()? {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str(r"[\t\n\f\r ]"),
            'S' => self.out.push_str(r"[^\t\n\f\r ]"),
            'b' if !in_class => {
                self.out.push_str(r"(?-u:\b)");
                return Some(Before::Nothing);
            }
            letter @ ('n' | 'r' | 't' | 'f') => self.out.extend(['\\', letter]),
            letter @ ('A' | 'z') if !in_class => {
                self.out.extend(['\\', letter]);
                return Some(Before::Nothing);
            }
            letter if letter.is_ascii_punctuation() && !matches!(letter, '<' | '>' | '_') => {
                self.out.extend(['\\', letter]);
            }
            _ => return None,
        }
        Some(Before::Item)
    }

    /// `[abc]`: letters, ranges and escapes, nothing that nests.
    fn class(&mut self) -> Option<Before> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut empty = true;
        // A letter with which a range can start.
        let mut start = None;
        loop {
            let letter = self.rest.next()?;
            match letter {
                ']' if empty => return None,
                ']' => {
                    self.out.push(']');
                    return Some(Before::Item);
                }
                '\\' => {
                    self.escape(true)?;
                    start = None;
                }
                '-' if empty || self.rest.peek() == Some(&']') => {
                    self.out.push_str(r"\-");
                    start = None;
                }
                '-' => {
                    let end = self.rest.next_if(char::is_ascii_alphanumeric)?;
                    start.filter(|start| *start <= end)?;
                    self.out.extend(['-', end]);
                    start = None;
                }
                '[' | '&' | '~' => return None,
                _ => {
                    self.out.push(letter);
                    start = Some(letter).filter(char::is_ascii_alphanumeric);
                }
            }
            empty = false;
        }
    }
}
