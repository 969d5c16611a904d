//! Other rolegates of a cluster, known by the names of their webhooks, and which namespaces they are for.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::model::names;

/// The webhook that holds pods, in the configuration of every rolegate.
pub const OF_PODS: &str = "pods.rolegate.dev";

/// The label of a namespace that is its name.
const NAME: &str = "kubernetes.io/metadata.name";

/// A rolegate whose webhook configuration is there, whether it runs or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Installation {
    /// Name of its webhook configurations.
    pub name: String,
    namespaces: Option<LabelSelector>,
}

impl Installation {
    /// True when it holds pods of a namespace with these labels.
    pub fn serves(&self, labels: &BTreeMap<String, String>) -> bool {
        selects(self.namespaces.as_ref(), labels)
    }

    /// True when it looks at all namespaces and serves those with some labels: in the others it lets go of what is held.
    pub fn lets_go_elsewhere(&self) -> bool {
        let Some(selector) = &self.namespaces else { return false };
        let expressions = selector.match_expressions.iter().flatten();
        let mut keys =
            expressions.map(|one| &*one.key).chain(selector.match_labels.iter().flatten().map(|(key, _)| &**key));
        let lists = selector.match_expressions.iter().flatten().any(|one| one.key == NAME && one.operator == "In");
        !lists && keys.any(|key| key != NAME && key != names::IGNORE)
    }
}

/// All rolegates of the cluster.
pub fn installations(all: &[MutatingWebhookConfiguration]) -> Vec<Installation> {
    let of = |configuration: &MutatingWebhookConfiguration| {
        let hook = configuration.webhooks.iter().flatten().find(|hook| hook.name == OF_PODS)?;
        let name = configuration.metadata.name.clone().unwrap_or_default();
        Some(Installation { name, namespaces: hook.namespace_selector.clone() })
    };
    all.iter().filter_map(of).collect()
}

/// True when the selector takes an object with these labels; none at all takes everything.
pub fn selects(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    let Some(selector) = selector else { return true };
    let same = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    let expressions = selector.match_expressions.as_deref().unwrap_or_default();
    selector.match_labels.iter().flatten().all(same)
        && expressions.iter().all(|one| {
            let value = labels.get(&one.key);
            let listed = || value.is_some_and(|value| one.values.iter().flatten().any(|known| known == value));
            match one.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_selects_by_labels_looks_at_all_namespaces_and_who_names_them_does_not() {
        let excluded = json!({ "key": NAME, "operator": "NotIn", "values": ["kube-system"] });
        let ignored = json!({ "key": names::IGNORE, "operator": "DoesNotExist" });
        let named = json!({ "key": NAME, "operator": "In", "values": ["a"] });
        let labelled = json!({ "key": "team", "operator": "Exists" });
        for (expressions, labels, elsewhere) in [
            (json!([excluded, ignored]), json!({}), false),
            (json!([excluded, ignored, named]), json!({}), false),
            (json!([excluded, ignored, named, labelled]), json!({}), false),
            (json!([excluded, ignored, labelled]), json!({}), true),
            (json!([excluded, ignored]), json!({ "team": "a" }), true),
        ] {
            let selector = json!({ "matchExpressions": expressions, "matchLabels": labels });
            let one =
                Installation { name: "a".to_owned(), namespaces: serde_json::from_value(selector.clone()).unwrap() };
            assert_eq!(one.lets_go_elsewhere(), elsewhere, "{selector}");
        }
    }

    #[test]
    fn selectors_are_read_as_the_api_server_reads_them() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        for (selector, taken) in [
            (json!({}), true),
            (json!({ "matchLabels": { "a": "1" } }), true),
            (json!({ "matchLabels": { "a": "2" } }), false),
            (json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": ["1", "2"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "a", "operator": "NotIn", "values": ["1"] }] }), false),
            (json!({ "matchExpressions": [{ "key": "b", "operator": "NotIn", "values": ["1"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "b", "operator": "Exists" }] }), false),
            (json!({ "matchExpressions": [{ "key": "b", "operator": "DoesNotExist" }] }), true),
        ] {
            let read: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(selects(Some(&read), &labels), taken, "{selector}");
        }
        assert!(selects(None, &labels));
    }
}
