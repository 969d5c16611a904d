//! The policies of `policies/` (twins of rules, guard, hold), in words that a version of Kubernetes knows.

use serde_json::{Map, Value, json};

use super::ManifestsArgs;
use super::kubernetes::Minor;

/// A file of `policies/`.
pub struct Policy {
    /// Name of the file, without its ending.
    pub name: &'static str,
    /// Content of the file, in the words of the newest version.
    pub text: &'static str,
    /// First version that accepts it: the twins use comprehensions of two variables, the hold a MutatingAdmissionPolicy.
    since: Minor,
}

/// Returns the row of a file.
macro_rules! policy {
    ($name:literal, $since:literal) => {
        Policy { name: $name, text: include_str!(concat!("../../../policies/", $name, ".yaml")), since: Minor($since) }
    };
}

/// The files of `policies/`.
pub const POLICIES: &[Policy] = &[
    policy!("cluster-topology", 33),
    policy!("coordinated-policy", 33),
    policy!("groups", 33),
    policy!("grove", 33),
    policy!("hold-guard", 30),
    policy!("hold", 36),
    policy!("podgroup", 33),
];

/// First version whose CEL has the list functions that the files use. An API server accepts functions of the version
/// before its own only.
const LISTS: Minor = Minor(35);

/// What older versions read in place of a list function, in the order of replacement. Lists are joined by a character
/// that no field of these objects can hold; without `sort`, a message names its fields in any order.
const IN_OLDER_WORDS: &[(&str, &str)] = &[
    (
        "ofEntries.flatten()",
        "ofEntries.transformList(i, each, each.transformList(j, one, '%d|%d'.format([i, j]))).flatten()\
         .map(at, ofEntries[int(at.split('|')[0])][int(at.split('|')[1])])",
    ),
    (
        ".flatten()",
        ".filter(each, each.size() > 0).map(each, each.join('\\u0001')).join('\\u0001').split('\\u0001')\
         .filter(each, each != '')",
    ),
    ("all.distinct()", "all.transformList(i, one, all.indexOf(one) == i, one)"),
    (".sort()", ""),
];

/// The places of the files where the installation is named.
const NAMED: &[(&str, &str)] = &[
    ("name: rolegate\n", "name: \"{name}\"\n"),
    ("name: rolegate-uninstall\n", "name: \"{name}-uninstall\"\n"),
    ("namespace: rolegate-system\n", "namespace: \"{namespace}\"\n"),
    ("[kube-system, rolegate-system]", "[kube-system, \"{namespace}\"]"),
    ("\nmetadata:\n", "\nmetadata:\n  labels: {labels}\n"),
];

/// Returns the files that a version accepts, one after the other, and the names of those that need a newer one.
pub fn print(args: &ManifestsArgs, kubernetes: Minor) -> (String, Vec<(&'static str, Minor)>) {
    let (accepted, others): (Vec<_>, Vec<_>) = POLICIES.iter().partition(|policy| policy.since <= kubernetes);
    let text = accepted.into_iter().flat_map(|policy| ["---\n".to_owned(), policy.of(args, kubernetes)]).collect();
    (text, others.into_iter().map(|policy| (policy.name, policy.since)).collect())
}

impl Policy {
    fn of(&self, args: &ManifestsArgs, kubernetes: Minor) -> String {
        let ManifestsArgs { name, namespace, .. } = args;
        let labels = Value::from(args.own_labels()).to_string();
        let filled = |template: &str| {
            [("{name}", name), ("{namespace}", namespace), ("{labels}", &labels)]
                .into_iter()
                .fold(template.to_owned(), |text, (field, value)| text.replace(field, value))
        };
        let older = if kubernetes < LISTS { IN_OLDER_WORDS } else { &[] };
        let text = older.iter().fold(self.text.to_owned(), |text, (newer, older)| text.replace(newer, older));
        NAMED.iter().fold(text, |text, (ours, named)| text.replace(ours, &filled(named)))
    }
}

/// Returns what the template of the chart does with the files beside it: which version takes which, and what it replaces.
pub fn of_chart() -> Value {
    let since: Map<_, _> = POLICIES.iter().map(|policy| (policy.name.to_owned(), json!(policy.since.0))).collect();
    json!({ "since": since, "lists": LISTS.0, "older": IN_OLDER_WORDS, "named": NAMED })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_read_no_word_that_they_do_not_know() {
        let args = ManifestsArgs::default();
        let newer = [".flatten()", ".distinct()", ".sort()", ".slice(", ".first()", ".last()", "lists.range("];
        let (text, without) = print(&args, Minor(34));
        assert_eq!(newer.iter().find(|word| text.contains(**word)), None);
        assert_eq!(without, [("hold", Minor(36))]);
        let two_variables = [".transformList(", ".transformMap(", ".transformMapEntry("];
        let (text, without) = print(&args, Minor(32));
        assert_eq!(newer.iter().chain(&two_variables).find(|word| text.contains(**word)), None);
        assert_eq!(without.len(), POLICIES.len() - 1, "{without:?}");
    }

    #[test]
    fn the_installation_is_named_wherever_the_files_name_it() {
        let (name, namespace) = ("other".to_owned(), "gates".to_owned());
        let args = ManifestsArgs { namespace, name, ..ManifestsArgs::default() };
        let (text, without) = print(&args, Minor::default());
        assert!(without.is_empty());
        assert!(!text.contains("rolegate-system"));
        for account in ["other", "other-uninstall"] {
            assert!(text.contains(&format!("    name: \"{account}\"\n    namespace: \"gates\"\n")), "{account}");
        }
        assert_eq!(text.matches(r#"  labels: {"app.kubernetes.io/name":"other"}"#).count(), 16);
    }
}
