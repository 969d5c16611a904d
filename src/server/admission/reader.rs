//! A reader of JSON for reviews, of which most is passed over: `managedFields`, volumes, tolerations.
//!
//! It finds its way through brackets and plain strings; a number, and a string with escapes, it hands to serde_json as a
//! piece. What it does not take it gives back without a word, and serde_json reads the whole again and has the words. So it may
//! take less than serde_json does, and never more: what it passes over is held against the grammar as well.

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Number;

/// Reads a whole text; `None` when serde_json has to look at it.
pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = T::deserialize(&mut reader).ok()?;
    (reader.next_byte().is_none() && reader.at == text.len()).then_some(value)
}

/// Deepest nesting of what is read, as in serde_json.
const MAX_DEPTH: u16 = 127;
/// Deepest nesting of all, with what is passed over.
pub(super) const MAX_PASSED: u16 = 512;

/// By which name serde_json's `RawValue` asks for the text of a value.
const RAW: &str = "$serde_json::private::RawValue";

/// How many bytes stand before the first quote, backslash or control character; 8 when there is none.
#[inline]
fn first_special(bytes: [u8; 8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    // The highest bit of each byte that is smaller than `limit`, and maybe of some after the first of these.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let found = is(b'"') | is(b'\\') | below(word, 0x20);
    (found.trailing_zeros() / 8) as usize
}

/// Why it was not read; nobody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unread;

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not read")
    }
}

impl std::error::Error for Unread {}

impl de::Error for Unread {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u16,
}

impl<'a> Reader<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no white space; it is still to be read.
    #[inline]
    fn next_byte(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                byte => return byte,
            }
        }
    }

    fn eat(&mut self, wanted: u8) -> Result<(), Unread> {
        if self.next_byte() != Some(wanted) {
            return Err(Unread);
        }
        self.at += 1;
        Ok(())
    }

    fn since(&self, start: usize) -> Result<&'a str, Unread> {
        self.text.get(start..self.at).ok_or(Unread)
    }

    /// Passes over a string, of which the opening quote is next; true when there are escapes in it. Bytes that need no second
    /// look are passed over eight at a time.
    #[inline]
    fn string(&mut self) -> Result<bool, Unread> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return Err(Unread);
        }
        self.at += 1;
        while let Some(word) = bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let found = first_special(*word);
            self.at += found;
            if found < 8 {
                break;
            }
        }
        if bytes.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.rest_of_string()
    }

    /// The same from anywhere within a string.
    #[cold]
    #[inline(never)]
    fn rest_of_string(&mut self) -> Result<bool, Unread> {
        let mut has_escapes = false;
        loop {
            let byte = self.byte();
            self.at += 1;
            match byte {
                Some(b'"') => return Ok(has_escapes),
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                Some(0x20..) => {}
                _ => return Err(Unread),
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<(), Unread> {
        let byte = self.byte();
        self.at += 1;
        match byte {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => {
                let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or(Unread)?;
                self.at += 4;
                if digits.iter().all(u8::is_ascii_hexdigit) { Ok(()) } else { Err(Unread) }
            }
            _ => Err(Unread),
        }
    }

    fn digits(&mut self) -> Result<(), Unread> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Unread) }
    }

    /// Passes over a number.
    fn number(&mut self) -> Result<(), Unread> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        // Nothing follows a 0 that would make it longer; what does is refused as what stands after the value.
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Unread> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += word.len();
        if rest.starts_with(word.as_bytes()) { Ok(()) } else { Err(Unread) }
    }

    /// Passes over a value within so many brackets.
    fn pass(&mut self, depth: u16) -> Result<(), Unread> {
        match self.next_byte() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'{') => self.pass_entries(b'}', depth, |reader| {
                reader.string()?;
                reader.eat(b':')?;
                reader.pass(depth + 1)
            }),
            Some(b'[') => self.pass_entries(b']', depth, |reader| reader.pass(depth + 1)),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.number(),
        }
    }

    fn pass_entries(
        &mut self,
        end: u8,
        depth: u16,
        entry: impl Fn(&mut Self) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        if depth >= MAX_PASSED {
            return Err(Unread);
        }
        self.at += 1;
        if self.next_byte() == Some(end) {
            self.at += 1;
            return Ok(());
        }
        loop {
            entry(self)?;
            let next = self.next_byte();
            self.at += 1;
            match next {
                Some(b',') => _ = self.next_byte(),
                next if next == Some(end) => return Ok(()),
                _ => return Err(Unread),
            }
        }
    }

    /// Reads a string, of which the opening quote is next.
    fn text<V: Visitor<'a>>(&mut self, visitor: V) -> Result<V::Value, Unread> {
        let start = self.at;
        if self.string()? {
            return visitor.visit_string(serde_json::from_str(self.since(start)?).map_err(|_| Unread)?);
        }
        visitor.visit_borrowed_str(self.text.get(start + 1..self.at - 1).ok_or(Unread)?)
    }

    /// Reads what stands between brackets.
    fn between<T>(
        &mut self,
        end: u8,
        visit: impl FnOnce(&mut Entries<'_, 'a>) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        if self.depth == MAX_DEPTH {
            return Err(Unread);
        }
        self.depth += 1;
        self.at += 1;
        let mut entries = Entries { reader: self, end, is_first: true };
        let value = visit(&mut entries)?;
        self.depth -= 1;
        self.eat(end)?;
        Ok(value)
    }
}

/// The entries of a list or an object, of which the end is still to be read.
struct Entries<'r, 'a> {
    reader: &'r mut Reader<'a>,
    end: u8,
    is_first: bool,
}

impl Entries<'_, '_> {
    /// True when there is one more.
    #[inline]
    fn go_on(&mut self) -> Result<bool, Unread> {
        let next = self.reader.next_byte();
        if next == Some(self.end) {
            return Ok(false);
        }
        if !std::mem::replace(&mut self.is_first, false) {
            self.reader.eat(b',')?;
            self.reader.next_byte();
        }
        Ok(true)
    }
}

impl<'a> MapAccess<'a> for &mut Entries<'_, 'a> {
    type Error = Unread;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Unread> {
        if self.go_on()? { seed.deserialize(Key(self.reader)).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Unread> {
        self.reader.eat(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

impl<'a> SeqAccess<'a> for &mut Entries<'_, 'a> {
    type Error = Unread;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Unread> {
        if self.go_on()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

/// The key of an entry.
struct Key<'r, 'a>(&'r mut Reader<'a>);

impl<'a> Deserializer<'a> for Key<'_, 'a> {
    type Error = Unread;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.0.text(visitor)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'a> Deserializer<'a> for &mut Reader<'a> {
    type Error = Unread;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Unread> {
        match self.next_byte() {
            Some(b'"') => self.text(visitor),
            Some(b'{') => self.between(b'}', |entries| visitor.visit_map(entries)),
            Some(b'[') => self.between(b']', |entries| visitor.visit_seq(entries)),
            Some(b't') => self.word("true").and_then(|()| visitor.visit_bool(true)),
            Some(b'f') => self.word("false").and_then(|()| visitor.visit_bool(false)),
            Some(b'n') => self.word("null").and_then(|()| visitor.visit_unit()),
            _ => {
                let start = self.at;
                self.number()?;
                let number: Number = self.since(start)?.parse().map_err(|_| Unread)?;
                match (number.as_u64(), number.as_i64(), number.as_f64()) {
                    (Some(number), _, _) => visitor.visit_u64(number),
                    (_, Some(number), _) => visitor.visit_i64(number),
                    (_, _, Some(number)) => visitor.visit_f64(number),
                    _ => Err(Unread),
                }
            }
        }
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Unread> {
        if self.next_byte() == Some(b'n') {
            self.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, name: &'static str, visitor: V) -> Result<V::Value, Unread> {
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        self.next_byte();
        let start = self.at;
        self.pass(self.depth)?;
        visitor.visit_map(Raw(Some(self.since(start)?)))
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.pass(self.depth)?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// The text of a value, as serde_json's `RawValue` takes it.
struct Raw<'a>(Option<&'a str>);

impl<'a> MapAccess<'a> for Raw<'a> {
    type Error = Unread;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Unread> {
        if self.0.is_none() {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new(RAW)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Unread> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0.take().ok_or(Unread)?))
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
