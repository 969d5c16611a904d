//! Minimal handmade JSON Patches.

use std::collections::BTreeMap;

use json_patch::jsonptr::Token;
use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

use crate::api::json::{is_plain, write_text};

/// A JSON Patch (RFC 6902) of `add`, `replace` and `remove` operations, stored as its JSON text: most patches are written
/// once and sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// `[`, and the operations with commas between them; empty without operations.
    text: Vec<u8>,
}

#[derive(Serialize)]
struct Operation<'a, T> {
    op: &'static str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<T>,
}

/// Initial capacity in bytes: the length of a usual patch.
const USUAL: usize = 1 << 10;

impl Patch {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Sets the value at a path. A list index inserts; `-` appends to a list.
    pub fn add(&mut self, path: impl AsRef<str>, value: impl Serialize) {
        self.push(&Operation { op: "add", path: path.as_ref(), value: Some(value) });
    }

    /// Replaces the value at a path.
    pub fn replace(&mut self, path: impl AsRef<str>, value: impl Serialize) {
        self.push(&Operation { op: "replace", path: path.as_ref(), value: Some(value) });
    }

    /// Removes the value at a path. Later list entries move up: remove from the end.
    pub fn remove(&mut self, path: impl AsRef<str>) {
        self.push(&Operation::<()> { op: "remove", path: path.as_ref(), value: None });
    }

    /// Writes the text before an operation.
    fn begin(&mut self) {
        if self.text.is_empty() {
            self.text.reserve(USUAL);
        }
        self.text.push(if self.text.is_empty() { b'[' } else { b',' });
    }

    fn push(&mut self, operation: &Operation<'_, impl Serialize>) {
        let length = self.text.len();
        self.begin();
        // Only a map with non-string keys fails, and there is none.
        if serde_json::to_writer(&mut self.text, operation).is_err() {
            self.text.truncate(length);
        }
    }

    /// Appends the operations of another patch of the same object. The two must not change one path.
    pub fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
        } else if let Some((_, operations)) = other.text.split_first() {
            self.text.push(b',');
            self.text.extend_from_slice(operations);
        }
    }

    /// Sets entries of a map of strings. Skips equal entries. A map that is absent, `null` or empty is added whole, since
    /// `add` needs its parent.
    pub fn set_entries<'a, V: AsRef<str>>(
        &mut self,
        map_path: &str,
        present: &BTreeMap<String, String>,
        wanted: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        if present.is_empty() {
            let map: BTreeMap<_, _> = wanted.into_iter().collect();
            if !map.is_empty() {
                self.begin_add(map_path, None);
                for (number, (key, value)) in map.iter().enumerate() {
                    self.text.push(if number == 0 { b'{' } else { b',' });
                    self.write(key);
                    self.text.push(b':');
                    self.write(value.as_ref());
                }
                self.text.extend_from_slice(b"}}");
            }
            return;
        }
        for (key, value) in wanted {
            let value = value.as_ref();
            if present.get(key).is_none_or(|present| present != value) {
                self.begin_add(map_path, Some(key));
                self.write(value);
                self.text.push(b'}');
            }
        }
    }

    /// Writes an `add` operation up to its value, by hand: most patches consist of these.
    fn begin_add(&mut self, map_path: &str, key: Option<&str>) {
        self.begin();
        self.text.extend_from_slice(br#"{"op":"add","path":"#);
        match key {
            None => self.write(map_path),
            Some(key) if is_plain(map_path) && is_plain(key) => {
                self.text.push(b'"');
                self.text.extend_from_slice(map_path.as_bytes());
                self.text.push(b'/');
                // Escapes of RFC 6901.
                let mut rest = key.as_bytes();
                while let Some((before, [special, after @ ..])) =
                    rest.iter().position(|byte| matches!(byte, b'~' | b'/')).and_then(|at| rest.split_at_checked(at))
                {
                    self.text.extend_from_slice(before);
                    self.text.extend_from_slice(if *special == b'~' { b"~0" } else { b"~1" });
                    rest = after;
                }
                self.text.extend_from_slice(rest);
                self.text.push(b'"');
            }
            Some(key) => self.write(&format!("{map_path}/{}", Token::new(key).encoded())),
        }
        self.text.extend_from_slice(br#","value":"#);
    }

    /// Writes a text as a JSON string.
    fn write(&mut self, text: &str) {
        write_text(&mut self.text, text);
    }

    pub fn to_json(&self) -> String {
        // The text is always UTF-8.
        String::from_utf8(self.clone().into_bytes()).unwrap_or_default()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        let mut text = self.text;
        if text.is_empty() {
            text.push(b'[');
        }
        text.push(b']');
        text
    }
}

impl Serialize for Patch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_json()).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_and_values_may_have_any_characters() {
        let texts = ["a", "a/b~c~1", "\"quoted\"", "back\\slash/~", "line\n", "\u{1}", "\u{e4}/\u{1f600}", ""];
        let here = BTreeMap::from([("here".to_owned(), String::new())]);
        for text in texts {
            for present in [&here, &BTreeMap::new()] {
                let mut patch = Patch::default();
                patch.set_entries("/metadata/labels", present, [(text, text), ("last", "1")]);
                let mut pod = json!({ "metadata": { "labels": present } });
                let operations = serde_json::from_str::<json_patch::Patch>(&patch.to_json()).unwrap();
                json_patch::patch(&mut pod, &operations).unwrap();
                assert_eq!(
                    (&pod["metadata"]["labels"][text], &pod["metadata"]["labels"]["last"]),
                    (&json!(text), &json!("1"))
                );
                assert_eq!(pod["metadata"]["labels"].as_object().unwrap().len(), present.len() + 2);
            }
        }
        assert_eq!((Patch::default().to_json(), Patch::default().into_bytes()), ("[]".to_owned(), b"[]".to_vec()));
    }
}
