//! Other rolegates of a cluster, known by the names of their webhooks, and which namespaces they are for.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The webhook that holds pods, in the configuration of every rolegate.
pub const OF_PODS: &str = "pods.rolegate.dev";

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
