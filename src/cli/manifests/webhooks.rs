//! The webhook configurations, from the table that the server dispatches on.

use serde_json::{Value, json};

use super::settings::{PodValues, Settings};
use crate::server::admission::registration::{Reach, Registration};

/// Both configurations. Whoever keeps the certificates fills in their `caBundle`.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let registration = Registration {
        name: settings.name.clone(),
        reach: Reach::Service { namespace: settings.namespace.clone(), name: settings.name.clone() },
        own_namespace: settings.namespace.clone(),
        namespaces: settings.namespaces.clone(),
        selector: settings.selector.clone(),
        mode: settings.mode,
    };
    let metadata = json!({
        "name": settings.name,
        "labels": super::labels(settings),
        "?annotations": "cert-manager",
        "annotations": { "cert-manager.io/inject-ca-from": format!("{}/{}", settings.namespace, settings.name) },
    });
    [serde_json::to_value(registration.validating(None)), serde_json::to_value(registration.mutating(None))]
        .into_iter()
        .flatten()
        .map(|mut configuration| {
            if let Some(fields) = configuration.as_object_mut() {
                fields.insert("metadata".to_owned(), metadata.clone());
            }
            left_to_helm(&mut configuration, &settings.more);
            configuration
        })
        .collect()
}

/// What the chart's values say of every webhook.
fn left_to_helm(configuration: &mut Value, values: &PodValues) {
    let webhooks = configuration.pointer_mut("/webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten().filter(|_| !values.failure_policy.is_null()) {
        let Some(fields) = webhook.as_object_mut() else { continue };
        fields.insert("failurePolicy".to_owned(), values.failure_policy.clone());
        if let Some(selector) = fields.get_mut("namespaceSelector").and_then(Value::as_object_mut) {
            selector.insert("matchLabels".to_owned(), values.namespace_labels.clone());
        }
        if let Some(all) = webhook.pointer_mut("/namespaceSelector/matchExpressions").and_then(Value::as_array_mut) {
            all.push(values.namespace_expressions.clone());
        }
    }
}
