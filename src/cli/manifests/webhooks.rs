//! The webhook configurations, from the table that the server dispatches on.

use serde_json::{Value, json};

use super::settings::{PodValues, Settings};
use crate::cluster::registration::{KAI_PODS, Reach, Registration, SERVICE_PORT};

/// Returns both configurations, without the `caBundle`, which is filled in later.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let registration = Registration {
        name: settings.name.clone(),
        reach: Reach::Service {
            namespace: settings.namespace.clone(),
            name: settings.name.clone(),
            port: SERVICE_PORT,
        },
        own_namespace: settings.namespace.clone(),
        namespaces: if settings.more.by_helm { Vec::new() } else { settings.namespaces.clone() },
        selector: settings.selector.clone(),
        mode: settings.mode,
        kai_pods: true,
    };
    let metadata = json!({
        "name": settings.name,
        "labels": super::labels(settings),
        "?annotations": "cert-manager",
        "annotations": { "cert-manager.io/inject-ca-from": format!("{}/{}", settings.namespace, settings.name) },
    });
    let mut validating = json!(registration.validating(None));
    let mut mutating = json!(registration.mutating(None));
    for configuration in [&mut validating, &mut mutating] {
        if let Some(fields) = configuration.as_object_mut() {
            fields.insert("metadata".to_owned(), metadata.clone());
        }
        complete(configuration, &settings.more);
        for webhook in configuration.pointer_mut("/webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            if webhook.get("name").is_some_and(|name| name == KAI_PODS) {
                *webhook = json!({ "=": webhook.take(), "?": "kai-pods" });
            }
        }
    }
    vec![validating, mutating]
}

/// Adds the API server's defaults and the chart's values to each webhook.
fn complete(configuration: &mut Value, values: &PodValues) {
    let one =
        json!({ "key": "kubernetes.io/metadata.name", "operator": "In", "values": "{{with .Values.namespaces}}" });
    for webhook in configuration.pointer_mut("/webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = webhook.as_object_mut() {
            fields.entry("objectSelector").or_insert_with(|| json!({}));
            if values.by_helm {
                fields.insert("failurePolicy".to_owned(), values.failure_policy.clone());
            }
        }
        let Some(selector) = webhook.get_mut("namespaceSelector").and_then(Value::as_object_mut) else { continue };
        if values.by_helm {
            selector.insert("matchLabels".to_owned(), values.namespace_labels.clone());
            if let Some(all) = selector.get_mut("matchExpressions").and_then(Value::as_array_mut) {
                all.push(json!({ "=": one, "?": "namespaces" }));
                all.push(values.namespace_expressions.clone());
            }
        }
    }
}
