//! `admissionregistration.k8s.io/v1 MutatingWebhookConfiguration`, limited to the namespaces of each webhook.

use serde::Deserialize;

use super::selector::LabelSelector;
use super::{Meta, ObjectKind, null_default};

pub const MUTATING_WEBHOOK_CONFIGURATION: ObjectKind = ObjectKind::cluster_scoped(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MutatingWebhookConfiguration {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub webhooks: Vec<Webhook>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    /// Unique in its configuration.
    pub name: String,
    /// Namespaces of the webhook; an empty selector selects all.
    #[serde(deserialize_with = "null_default")]
    pub namespace_selector: LabelSelector,
}
