//! JSON Patch, built by hand and minimal.

use std::collections::BTreeMap;

use json_patch::jsonptr::Token;
use serde::Serialize;
use serde_json::Value;

/// A JSON Patch (RFC 6902) of `add`, `replace` and `remove` operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Patch(Vec<Operation>);

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Operation {
    op: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

impl Patch {
    /// True when nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the value at a path; an index inserts, `-` at the end of a list's path appends.
    pub fn add(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.0.push(Operation { op: "add", path: path.into(), value: Some(value.into()) });
    }

    /// Puts a value in the place of another.
    pub fn replace(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.0.push(Operation { op: "replace", path: path.into(), value: Some(value.into()) });
    }

    /// Removes what is at a path. What follows it in a list moves up: remove from the end.
    pub fn remove(&mut self, path: impl Into<String>) {
        self.0.push(Operation { op: "remove", path: path.into(), value: None });
    }

    /// Does what another patch of the same object does, afterwards. The two must not touch one place.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Sets entries of a map of strings. Entries that have the value already are left out; a map that is absent, `null`
    /// or empty is added whole, since `add` needs its parent.
    pub fn set_entries(&mut self, map_path: &str, present: &BTreeMap<String, String>, wanted: Vec<(&str, String)>) {
        if present.is_empty() {
            let map: serde_json::Map<_, _> =
                wanted.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
            if !map.is_empty() {
                self.add(map_path, map);
            }
            return;
        }
        for (key, value) in wanted {
            if present.get(key) != Some(&value) {
                self.add(format!("{map_path}/{}", Token::new(key).encoded()), value);
            }
        }
    }

    /// The patch as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_map_is_added_whole_and_equal_entries_are_left_out() {
        let mut patch = Patch::default();
        patch.set_entries("/metadata/labels", &BTreeMap::new(), vec![("x/y", "1".to_owned())]);
        patch.set_entries(
            "/metadata/labels",
            &BTreeMap::from([("x/y".to_owned(), "1".to_owned())]),
            vec![("x/y", "1".to_owned()), ("x/z", "2".to_owned())],
        );
        assert_eq!(
            patch.to_json(),
            r#"[{"op":"add","path":"/metadata/labels","value":{"x/y":"1"}},{"op":"add","path":"/metadata/labels/x~1z","value":"2"}]"#
        );
    }
}
