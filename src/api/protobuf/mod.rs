//! From protobuf, as the API server sends its own kinds, to the JSON that every other reader here takes: only the fields that
//! are read. It costs the API server a fraction of JSON, and of what arrives nine tenths are passed over.

mod schemas;
mod wire;

use std::io::Write as _;

pub use wire::Malformed;
use wire::{Fields, Value};

use crate::api::json::write_text;

/// How objects that are sent in protobuf begin.
const MAGIC: &[u8] = b"k8s\0";

/// Seconds of the time that Go has where it has none.
const NO_TIME: i64 = -62_135_596_800;

/// Why something was not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is no protobuf, or not what this version takes for it.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// More bytes than anything has that is read.
    #[error("a frame of {0} bytes")]
    TooLarge(usize),
    /// It is of a kind that nothing is read of.
    #[error("there is no schema for {kind} of {api_version}")]
    Kind {
        /// Group and version.
        api_version: String,
        /// Kind.
        kind: String,
    },
}

/// What is read of a message: its fields in the order of their numbers.
#[derive(Debug)]
struct Message(&'static [Field]);

/// A field that is read.
#[derive(Debug)]
struct Field {
    /// Its number on the wire.
    number: u64,
    /// Its name in JSON.
    name: &'static str,
    kind: Kind,
}

/// What a field is. A singular text that is empty is left out, as the API server does in JSON.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    /// A number; on the wire it is there if it is there in JSON, or is a zero that is the default.
    Number,
    /// A number that JSON leaves out when it is zero.
    NotZero,
    Bool,
    /// Seconds since 1970; in JSON as RFC 3339.
    Time,
    Message(&'static Message),
    /// A message whose fields are in JSON those of the one around it.
    Inline(&'static Message),
    Texts,
    Messages(&'static Message),
    /// From text to text.
    TextMap,
    /// From text to `Quantity`.
    QuantityMap,
}

impl Kind {
    /// What stands around the entries, for those that may have several.
    fn brackets(self) -> Option<(u8, u8)> {
        match self {
            Self::Texts | Self::Messages(_) => Some((b'[', b']')),
            Self::TextMap | Self::QuantityMap => Some((b'{', b'}')),
            _ => None,
        }
    }

    /// True when JSON does not have the field.
    fn is_left_out(self, value: Value<'_>) -> Result<bool, Malformed> {
        Ok(match self {
            Self::Text => value.bytes()?.is_empty(),
            Self::NotZero => value.number()? == 0,
            Self::Time => matches!(seconds(value)?, None | Some(NO_TIME)),
            _ => false,
        })
    }
}

/// Writes a line of a watch in JSON, from a frame of one in protobuf (without its length).
///
/// # Errors
///
/// When the frame is no event of pods, of nodes, or of a failure.
pub fn write_event(out: &mut Vec<u8>, frame: &[u8]) -> Result<(), Unread> {
    let (mut kind, mut object) = ("", &[][..]);
    for field in Fields(frame) {
        match field? {
            (1, value) => kind = value.text()?,
            (2, value) => object = Fields(value.bytes()?).last(1)?.ok_or(Malformed)?.bytes()?,
            _ => {}
        }
    }
    out.extend_from_slice(br#"{"type":"#);
    write_text(out, kind);
    out.extend_from_slice(br#","object":"#);
    write_object(out, object)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// An object in JSON.
///
/// # Errors
///
/// When it is no pod, node or status in protobuf.
pub fn object(bytes: &[u8]) -> Result<Vec<u8>, Unread> {
    let mut out = Vec::new();
    write_object(&mut out, bytes)?;
    Ok(out)
}

fn write_object(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Unread> {
    let (mut type_meta, mut raw) = (Fields(&[]), &[][..]);
    for field in Fields(bytes.strip_prefix(MAGIC).ok_or(Malformed)?) {
        match field? {
            (1, value) => type_meta = Fields(value.bytes()?),
            (2, value) => raw = value.bytes()?,
            // Nothing is compressed within, and nothing of another type.
            (3 | 4, value) if !value.bytes()?.is_empty() => return Err(Malformed.into()),
            _ => {}
        }
    }
    let type_field = |number| type_meta.clone().last(number)?.map_or(Ok(""), Value::text);
    let (api_version, kind) = (type_field(1)?, type_field(2)?);
    let schema = match (api_version, kind) {
        ("v1", "Pod") => &schemas::POD,
        ("v1", "Node") => &schemas::NODE,
        ("v1", "Status") => &schemas::STATUS,
        _ => return Err(Unread::Kind { api_version: api_version.to_owned(), kind: kind.to_owned() }),
    };
    out.extend_from_slice(br#"{"apiVersion":"#);
    write_text(out, api_version);
    out.extend_from_slice(br#","kind":"#);
    write_text(out, kind);
    fields(out, schema, raw, &mut false)?;
    out.push(b'}');
    Ok(())
}

/// The fields of a message, without the brackets around them. The entries of one field follow each other.
fn fields(out: &mut Vec<u8>, schema: &Message, bytes: &[u8], is_first: &mut bool) -> Result<(), Malformed> {
    let (mut seen, mut open) = (0_u64, None);
    for field in Fields(bytes) {
        let (number, value) = field?;
        let Ok(row) = schema.0.binary_search_by_key(&number, |field| field.number) else { continue };
        let Some(Field { name, kind, .. }) = schema.0.get(row) else { continue };
        if open.is_some_and(|(last, _)| last == row) {
            out.push(b',');
            entry(out, *kind, value)?;
            continue;
        }
        if let Some((_, end)) = open.take() {
            out.push(end);
        }
        if seen & (1 << row) != 0 {
            return Err(Malformed);
        }
        seen |= 1 << row;
        if let Kind::Inline(inner) = kind {
            fields(out, inner, value.bytes()?, is_first)?;
            continue;
        }
        if kind.is_left_out(value)? {
            continue;
        }
        if !std::mem::take(is_first) {
            out.push(b',');
        }
        write_text(out, name);
        out.push(b':');
        if let Some((begin, end)) = kind.brackets() {
            out.push(begin);
            open = Some((row, end));
        }
        entry(out, *kind, value)?;
    }
    out.extend(open.map(|(_, end)| end));
    Ok(())
}

/// One value of a field.
fn entry(out: &mut Vec<u8>, kind: Kind, value: Value<'_>) -> Result<(), Malformed> {
    match kind {
        Kind::Text | Kind::Texts => write_text(out, value.text()?),
        Kind::Number | Kind::NotZero => write(out, value.number()?),
        Kind::Bool => write(out, value.number()? != 0),
        Kind::Time => {
            let time = jiff::Timestamp::from_second(seconds(value)?.unwrap_or_default()).map_err(|_| Malformed)?;
            write(out, format_args!("\"{time}\""));
        }
        Kind::Message(inner) | Kind::Messages(inner) | Kind::Inline(inner) => {
            out.push(b'{');
            fields(out, inner, value.bytes()?, &mut true)?;
            out.push(b'}');
        }
        Kind::TextMap | Kind::QuantityMap => {
            let (mut key, mut of_key) = ("", None);
            for field in Fields(value.bytes()?) {
                match field? {
                    (1, value) => key = value.text()?,
                    (2, value) => of_key = Some(value),
                    _ => {}
                }
            }
            let of_key = match (kind, of_key) {
                (Kind::QuantityMap, Some(quantity)) => Fields(quantity.bytes()?).last(1)?,
                (_, value) => value,
            };
            write_text(out, key);
            out.push(b':');
            write_text(out, of_key.map_or(Ok(""), Value::text)?);
        }
    }
    Ok(())
}

/// The seconds of a `Time`; `None` where there is none.
fn seconds(value: Value<'_>) -> Result<Option<i64>, Malformed> {
    Fields(value.bytes()?).last(1)?.map(Value::number).transpose()
}

fn write(out: &mut Vec<u8>, shown: impl std::fmt::Display) {
    // A vector takes whatever is written to it.
    _ = write!(out, "{shown}");
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
