//! Conversion of the API server's protobuf to the JSON that all other readers here take, limited to the fields that are read.
//! Protobuf costs the API server a fraction of JSON, and nine tenths of the received bytes are skipped.

mod schemas;
mod wire;

use std::io::Write as _;

pub use wire::Malformed;
use wire::{Fields, Value};

use crate::api::json::write_text;

/// Prefix of objects in protobuf.
const MAGIC: &[u8] = b"k8s\0";

/// Go's zero time, in seconds since 1970.
const NO_TIME: i64 = -62_135_596_800;

/// An error in reading a protobuf object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// The bytes are not protobuf, or not in the form that this version expects.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The frame is longer than any object that is read.
    #[error("a frame of {0} bytes")]
    TooLarge(usize),
    /// The kind has no schema.
    #[error("there is no schema for {kind} of {api_version}")]
    Kind {
        /// Group and version.
        api_version: String,
        kind: String,
    },
}

/// The fields of a message that are read, ordered by number.
#[derive(Debug)]
struct Message(&'static [Field]);

#[derive(Debug)]
struct Field {
    /// Field number on the wire.
    number: u64,
    /// Field name in JSON.
    name: &'static str,
    kind: Kind,
}

/// Type of a field. An empty singular text is left out, as in the API server's JSON.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    /// A number. When it is on the wire, JSON has it too, or it is 0 and 0 is the default.
    Number,
    /// A number that JSON leaves out when it is 0.
    NotZero,
    Bool,
    /// Seconds since 1970; in JSON as RFC 3339.
    Time,
    Message(&'static Message),
    /// A message whose fields JSON merges into the enclosing message.
    Inline(&'static Message),
    Texts,
    Messages(&'static Message),
    /// A map from text to text.
    TextMap,
    /// A map from text to `Quantity`.
    QuantityMap,
}

impl Kind {
    /// Returns the brackets around the entries of a repeated field.
    fn brackets(self) -> Option<(u8, u8)> {
        match self {
            Self::Texts | Self::Messages(_) => Some((b'[', b']')),
            Self::TextMap | Self::QuantityMap => Some((b'{', b'}')),
            _ => None,
        }
    }

    /// Reports whether JSON leaves out the field.
    fn is_left_out(self, value: Value<'_>) -> Result<bool, Malformed> {
        Ok(match self {
            Self::Text => value.bytes()?.is_empty(),
            Self::NotZero => value.number()? == 0,
            Self::Time => matches!(seconds(value)?, None | Some(NO_TIME)),
            _ => false,
        })
    }
}

/// Writes a watch event as a line of JSON, from a protobuf frame without its length.
///
/// # Errors
///
/// When the frame is not an event of a pod, a node or a status.
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

/// Converts an object to JSON.
///
/// # Errors
///
/// When the object is not a pod, a node or a status in protobuf.
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
            // Compressed objects and other content types are not supported.
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

/// Writes the fields of a message without the surrounding brackets. Entries of a repeated field must be adjacent.
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

/// Writes one value of a field.
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

/// Returns the seconds of a `Time`; `None` when it has none.
fn seconds(value: Value<'_>) -> Result<Option<i64>, Malformed> {
    Fields(value.bytes()?).last(1)?.map(Value::number).transpose()
}

fn write(out: &mut Vec<u8>, shown: impl std::fmt::Display) {
    // Writing to a vector cannot fail.
    _ = write!(out, "{shown}");
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
