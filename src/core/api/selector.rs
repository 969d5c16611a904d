//! `metav1.LabelSelector`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::null_default;

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements, all of which must hold.
    pub match_expressions: Vec<Requirement>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: String,
    /// Values for In and NotIn.
    pub values: Vec<String>,
}

/// Writes the selector as in the query of a list.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equal = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let required = self.match_expressions.iter().map(|Requirement { key, operator, values }| {
            let values = values.join(",");
            match operator.as_str() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.clone(),
            }
        });
        f.write_str(&equal.chain(required).collect::<Vec<_>>().join(","))
    }
}

impl LabelSelector {
    /// Reports whether the selector matches these labels. An unknown operator matches nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.holds(|key| labels.get(key).map(String::as_str))
    }

    /// Reports whether the selector matches labels that are kept in another form; `label` returns the value of a key.
    pub fn holds<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let listed = |requirement: &Requirement| {
            label(&requirement.key).is_some_and(|value| requirement.values.iter().any(|one| one == value))
        };
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| match requirement.operator.as_str() {
                "In" => listed(requirement),
                "NotIn" => !listed(requirement),
                "Exists" => label(&requirement.key).is_some(),
                "DoesNotExist" => label(&requirement.key).is_none(),
                _ => false,
            })
    }

    /// Returns the keys of all labels that the selector reads.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.match_labels.keys().chain(self.match_expressions.iter().map(|one| &one.key)).map(String::as_str)
    }
}
