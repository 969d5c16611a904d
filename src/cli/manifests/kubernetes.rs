//! The version of Kubernetes that manifests are for.

use serde_json::Value;

/// A minor version, as 33 of 1.33.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minor(pub u16);

/// The oldest version: webhooks have no `matchConditions` before it.
const OLDEST: Minor = Minor(28);

/// Kinds that not every version serves, and the first that does.
const KINDS: &[(&str, Minor)] =
    &[("ValidatingAdmissionPolicy", Minor(30)), ("ValidatingAdmissionPolicyBinding", Minor(30))];

impl Default for Minor {
    /// Returns the newest version that is tested.
    fn default() -> Self {
        Self(37)
    }
}

impl std::fmt::Display for Minor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "1.{}", self.0)
    }
}

impl Minor {
    /// Reads a version, as 1.33, v1.33.2 or v1.33.2-gke.100.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.");
        let minor = rest.and_then(|rest| rest.split('.').next()?.trim_end_matches('+').parse().ok());
        let minor = minor.map(Self).ok_or("must be a version of Kubernetes, as 1.33")?;
        if minor < OLDEST { Err(format!("must be {OLDEST} or later")) } else { Ok(minor) }
    }

    /// Returns the kind of an object that API servers of this version do not serve, and the first version that does.
    pub fn lacks(self, object: &Value) -> Option<(&'static str, Self)> {
        KINDS.iter().copied().find(|(kind, since)| object["kind"] == *kind && self < *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_clusters_and_people_write_them() {
        for (text, minor) in [("1.33", 33), ("v1.30.14", 30), ("v1.35.2-gke.100", 35), ("1.34+", 34), ("1.28", 28)] {
            assert_eq!(Minor::parse(text), Ok(Minor(minor)), "{text}");
        }
        for text in ["", "33", "1", "1.", "1.x", "2.0", "1.27", "v1.33rc1"] {
            assert!(Minor::parse(text).is_err(), "{text}");
        }
    }
}
