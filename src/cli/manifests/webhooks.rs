//! The webhook configurations, from the table that the server dispatches on.

use serde_json::{Value, json};

use crate::cluster::registration::Registration;

/// Returns the validating and the mutating configuration, without the `caBundle`, which is filled in later.
pub fn objects(registration: &Registration, metadata: &Value) -> [Value; 2] {
    [json!(registration.validating(None)), json!(registration.mutating(None))].map(|mut configuration| {
        if let Some(fields) = configuration.as_object_mut() {
            fields.insert("metadata".to_owned(), metadata.clone());
        }
        let all = configuration.pointer_mut("/webhooks").and_then(Value::as_array_mut);
        for webhook in all.into_iter().flatten().filter_map(Value::as_object_mut) {
            // The API server's default.
            webhook.entry("objectSelector").or_insert_with(|| json!({}));
        }
        configuration
    })
}

/// Returns what each webhook of a configuration is asked about, apart from what differs from installation to installation.
pub fn asked_about(configuration: &Value) -> Value {
    let mut all = configuration["webhooks"].clone();
    for webhook in all.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        webhook.retain(|field, _| !["clientConfig", "failurePolicy", "namespaceSelector"].contains(&field.as_str()));
    }
    all
}
