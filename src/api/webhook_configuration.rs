//! `admissionregistration.k8s.io/v1 MutatingWebhookConfiguration`, as far as it says of which namespaces a webhook is.

use serde::Deserialize;

use super::selector::LabelSelector;
use super::{Meta, Object, ObjectKind, null_default};

/// `admissionregistration.k8s.io/v1 MutatingWebhookConfiguration`.
pub const MUTATING_WEBHOOK_CONFIGURATION: ObjectKind = ObjectKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "MutatingWebhookConfiguration",
    plural: "mutatingwebhookconfigurations",
    namespaced: false,
};

/// `admissionregistration.k8s.io/v1 MutatingWebhookConfiguration`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MutatingWebhookConfiguration {
    /// Name.
    pub metadata: Meta,
    /// Its webhooks.
    #[serde(deserialize_with = "null_default")]
    pub webhooks: Vec<Webhook>,
}

/// One webhook of a configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    /// Unique in its configuration.
    pub name: String,
    /// Of which namespaces it is; without requirements, of all.
    #[serde(deserialize_with = "null_default")]
    pub namespace_selector: LabelSelector,
}

impl Object for MutatingWebhookConfiguration {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
