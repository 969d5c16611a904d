//! The policies of `policies/` (twins of rules, guard, hold), in words that a version of Kubernetes knows.

use serde_json::json;

use super::kubernetes::Minor;
use super::settings::Settings;

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
pub fn print(settings: &Settings, kubernetes: Minor) -> (String, Vec<(&'static str, Minor)>) {
    let (accepted, others): (Vec<_>, Vec<_>) = POLICIES.iter().partition(|policy| policy.since <= kubernetes);
    let text = accepted.into_iter().flat_map(|policy| ["---\n".to_owned(), policy.of(settings, kubernetes)]).collect();
    (text, others.into_iter().map(|policy| (policy.name, policy.since)).collect())
}

impl Policy {
    fn of(&self, settings: &Settings, kubernetes: Minor) -> String {
        let Settings { name, namespace, .. } = settings;
        let mut labels = settings.common_labels.clone();
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(super::OWN_LABEL.to_owned(), json!(name));
        }
        let labels = labels.to_string();
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

/// Returns the template of the chart: the files beside it, as the version of the cluster accepts them.
pub fn template() -> String {
    let since: Vec<_> = POLICIES.iter().map(|policy| format!("{:?} {}", policy.name, policy.since.0)).collect();
    let older = IN_OLDER_WORDS
        .iter()
        .map(|(newer, older)| format!("{{{{- $text = $text | replace `{newer}` `{older}` }}}}\n"))
        .collect::<Vec<_>>()
        .concat();
    let filled = r#"| replace "{name}" $name | replace "{namespace}" $.Release.Namespace | replace "{labels}" $labels"#;
    let named = NAMED
        .iter()
        .map(|(ours, named)| format!("{{{{- $text = $text | replace {ours:?} ({named:?} {filled}) }}}}\n"))
        .collect::<Vec<_>>()
        .concat();
    format!(
        r#"{{{{- if .Values.policies.enabled }}}}
{{{{- $minor := int (semver .Capabilities.KubeVersion.Version).Minor }}}}
{{{{- $name := include "rolegate.fullname" . }}}}
{{{{- $labels := merge (dict {own:?} $name) .Values.commonLabels | toJson }}}}
{{{{- range $file, $since := dict {since} }}}}
{{{{- if ge $minor $since }}}}
{{{{- $text := $.Files.Get (printf "policies/%s.yaml" $file) }}}}
{{{{- if lt $minor {lists} }}}}
{older}{{{{- end }}}}
{named}---
{{{{ $text }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end }}}}
"#,
        own = super::OWN_LABEL,
        since = since.join(" "),
        lists = LISTS.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_read_no_word_that_they_do_not_know() {
        let settings = Settings::default();
        let newer = [".flatten()", ".distinct()", ".sort()", ".slice(", ".first()", ".last()", "lists.range("];
        let (text, without) = print(&settings, Minor(34));
        assert_eq!(newer.iter().find(|word| text.contains(**word)), None);
        assert_eq!(without, [("hold", Minor(36))]);
        let two_variables = [".transformList(", ".transformMap(", ".transformMapEntry("];
        let (text, without) = print(&settings, Minor(32));
        assert_eq!(newer.iter().chain(&two_variables).find(|word| text.contains(**word)), None);
        assert_eq!(without.len(), POLICIES.len() - 1, "{without:?}");
    }

    #[test]
    fn the_installation_is_named_wherever_the_files_name_it() {
        let (name, namespace) = ("other".to_owned(), "gates".to_owned());
        let settings = Settings { name, namespace, common_labels: json!({}), ..Settings::default() };
        let (text, without) = print(&settings, Minor::default());
        assert!(without.is_empty());
        assert!(!text.contains("rolegate-system"));
        for account in ["other", "other-uninstall"] {
            assert!(text.contains(&format!("    name: \"{account}\"\n    namespace: \"gates\"\n")), "{account}");
        }
        assert_eq!(text.matches(r#"  labels: {"app.kubernetes.io/name":"other"}"#).count(), 16);
    }
}
