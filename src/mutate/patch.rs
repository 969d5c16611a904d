//! JSON Patch, built by hand and minimal.

use std::collections::BTreeMap;

use json_patch::jsonptr::Token;
use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

/// A JSON Patch (RFC 6902) of `add`, `replace` and `remove` operations. Kept as the text that it becomes: most patches are
/// written once, sent and forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// `[`, and the operations with commas between them; empty without any.
    text: Vec<u8>,
}

#[derive(Serialize)]
struct Operation<'a, T> {
    op: &'static str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<T>,
}

impl Patch {
    /// True when nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Sets the value at a path; an index inserts, `-` at the end of a list's path appends.
    pub fn add(&mut self, path: impl AsRef<str>, value: impl Serialize) {
        self.push(&Operation { op: "add", path: path.as_ref(), value: Some(value) });
    }

    /// Puts a value in the place of another.
    pub fn replace(&mut self, path: impl AsRef<str>, value: impl Serialize) {
        self.push(&Operation { op: "replace", path: path.as_ref(), value: Some(value) });
    }

    /// Removes what is at a path. What follows it in a list moves up: remove from the end.
    pub fn remove(&mut self, path: impl AsRef<str>) {
        self.push(&Operation::<()> { op: "remove", path: path.as_ref(), value: None });
    }

    fn push(&mut self, operation: &Operation<'_, impl Serialize>) {
        let length = self.text.len();
        self.text.push(if length == 0 { b'[' } else { b',' });
        // Only a map whose keys are no strings cannot be written, and there is none.
        if serde_json::to_writer(&mut self.text, operation).is_err() {
            self.text.truncate(length);
        }
    }

    /// Does what another patch of the same object does, afterwards. The two must not touch one place.
    pub fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
        } else if let Some((_, operations)) = other.text.split_first() {
            self.text.push(b',');
            self.text.extend_from_slice(operations);
        }
    }

    /// Sets entries of a map of strings. Entries that have the value already are left out; a map that is absent, `null`
    /// or empty is added whole, since `add` needs its parent.
    pub fn set_entries<'a, V: AsRef<str> + Serialize>(
        &mut self,
        map_path: &str,
        present: &BTreeMap<String, String>,
        wanted: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        if present.is_empty() {
            let map: BTreeMap<_, _> = wanted.into_iter().collect();
            if !map.is_empty() {
                self.add(map_path, map);
            }
            return;
        }
        let mut path = format!("{map_path}/");
        for (key, value) in wanted {
            if present.get(key).is_none_or(|present| present != value.as_ref()) {
                path.truncate(map_path.len() + 1);
                path.push_str(Token::new(key).encoded());
                self.add(&path, value);
            }
        }
    }

    /// The patch as JSON text.
    pub fn to_json(&self) -> String {
        let mut text = if self.is_empty() { vec![b'['] } else { self.text.clone() };
        text.push(b']');
        // What serde_json writes is UTF-8.
        String::from_utf8(text).unwrap_or_default()
    }
}

impl Serialize for Patch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_json()).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_map_is_added_whole_and_equal_entries_are_left_out() {
        let mut patch = Patch::default();
        patch.set_entries("/metadata/labels", &BTreeMap::new(), [("x/y", "1")]);
        patch.set_entries(
            "/metadata/labels",
            &BTreeMap::from([("x/y".to_owned(), "1".to_owned())]),
            [("x/y", "1"), ("x/z", "2")],
        );
        assert_eq!(
            patch.to_json(),
            r#"[{"op":"add","path":"/metadata/labels","value":{"x/y":"1"}},{"op":"add","path":"/metadata/labels/x~1z","value":"2"}]"#
        );
    }
}
