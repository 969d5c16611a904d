//! The committed placement of a PodGroup, as its annotation stores it:
//! `{"workers":{"pods":4,"within":{"example.com/rack":"r1"}}}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Placements by leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Placement(pub BTreeMap<String, LeafPlacement>);

/// Released pods of one leaf, and their domains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeafPlacement {
    /// Number of pods that may run.
    pub pods: u32,
    /// Node labels and values that the pods share.
    pub within: BTreeMap<String, String>,
}

impl Placement {
    /// Reads the annotation; an unreadable one counts as empty.
    pub fn read(annotation: Option<&str>) -> Self {
        annotation.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Returns the value of the annotation.
    pub fn text(&self) -> String {
        // Maps with text keys always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn of(&self, leaf: &str) -> Option<&LeafPlacement> {
        self.0.get(leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_garbage_says_nothing() {
        let within = BTreeMap::from([("rack".to_owned(), "r1".to_owned())]);
        let placement = Placement(BTreeMap::from([("workers".to_owned(), LeafPlacement { pods: 4, within })]));
        assert_eq!(placement.text(), r#"{"workers":{"pods":4,"within":{"rack":"r1"}}}"#);
        assert_eq!(Placement::read(Some(&placement.text())), placement);
        for garbage in [None, Some(""), Some("{"), Some("[]"), Some(r#"{"a":1}"#), Some(r#"{"a":{"pods":-1}}"#)] {
            assert_eq!(Placement::read(garbage), Placement::default(), "{garbage:?}");
        }
    }
}
