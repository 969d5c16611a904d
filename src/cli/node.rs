//! A YAML node with its position.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use crate::model::FieldPath;

/// Line and column, counted from 1; 0 when unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub line: u64,
    /// Column in characters.
    pub column: u64,
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        Self { line: location.line(), column: location.column() }
    }
}

impl Position {
    /// Returns the position in a file, for a part that begins at `start`; both are counted from 1.
    #[must_use]
    pub fn after(self, start: Self) -> Self {
        let column = if self.line == 1 { self.column + start.column.saturating_sub(1) } else { self.column };
        Self { line: self.line + start.line.saturating_sub(1), column }
    }
}

#[derive(Debug)]
pub struct Node {
    /// Position of its first character.
    pub at: Position,
    pub kind: Kind,
}

/// The content of a node.
#[derive(Debug)]
pub enum Kind {
    /// A scalar, as JSON.
    Scalar(Value),
    List(Vec<Node>),
    /// A map in the order of the document: position of the key, key, value.
    Map(Vec<(Position, String, Node)>),
}

impl Node {
    /// Returns the value of a map's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, node)| node)
    }

    fn entry(&self, key: &str) -> Option<(Position, &Node)> {
        let Kind::Map(entries) = &self.kind else { return None };
        entries.iter().find(|(_, name, _)| name == key).map(|(at, _, node)| (*at, node))
    }

    /// Returns the text of a scalar.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Kind::Map(entries) => {
                let entries = entries.iter().map(|(_, key, node)| (key.clone(), node.to_json()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns the position of a path: the key of its last step, or the closest existing ancestor.
    pub fn locate<'a>(&self, steps: impl IntoIterator<Item = &'a (bool, String)>) -> Position {
        let (mut node, mut at) = (self, self.at);
        for (is_index, step) in steps {
            let next = match &node.kind {
                Kind::List(nodes) if *is_index => {
                    step.parse::<usize>().ok().and_then(|index| nodes.get(index)).map(|node| (node.at, node))
                }
                _ => node.entry(step),
            };
            let Some((position, inner)) = next else { break };
            (at, node) = (position, inner);
        }
        at
    }

    /// Returns the position of the field with this path, or of the closest existing ancestor.
    pub fn locate_path(&self, path: &FieldPath) -> Position {
        let steps: Vec<_> = path.steps().map(|(is_index, step)| (is_index, step.into_owned())).collect();
        self.locate(&steps)
    }

    /// Returns the number of its values, itself included.
    pub fn values(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar(_) => 0,
            Kind::List(nodes) => nodes.iter().map(Self::values).sum(),
            Kind::Map(entries) => entries.iter().map(|(_, _, node)| node.values()).sum(),
        }
    }

    /// Moves every position to a document that begins at `start` of its file.
    pub fn shift(&mut self, start: Position) {
        self.at = self.at.after(start);
        match &mut self.kind {
            Kind::Scalar(_) => {}
            Kind::List(nodes) => nodes.iter_mut().for_each(|node| node.shift(start)),
            Kind::Map(entries) => {
                for (at, _, node) in entries {
                    *at = at.after(start);
                    node.shift(start);
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: kind, referenced, .. } = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Self { at: referenced.into(), kind })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::String(value.to_string())))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::String(value.to_string())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = access.next_element()? {
            nodes.push(node);
        }
        Ok(Kind::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Node>()? {
            let name = match key.kind {
                Kind::Scalar(Value::String(name)) => name,
                // JSON keys are strings: `1: x` is `"1": x`.
                Kind::Scalar(value) => value.to_string(),
                Kind::List(_) | Kind::Map(_) => return Err(de::Error::custom("a key must be a scalar")),
            };
            entries.push((key.at, name, access.next_value()?));
        }
        Ok(Kind::Map(entries))
    }
}
