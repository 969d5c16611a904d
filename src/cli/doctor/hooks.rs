//! Webhook configurations of both kinds, as `doctor` reads them.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};

use crate::cluster::read::installations::read;
use crate::cluster::write::writer::MANAGER;

/// Webhook configurations of one kind. Validating ones are read as mutating ones, which have all of their fields.
pub type Configurations = Result<Vec<MutatingWebhookConfiguration>, String>;

/// A webhook of a configuration.
#[derive(Clone, Copy)]
pub struct Hook<'a> {
    /// `mutating` or `validating`.
    pub kind: &'static str,
    pub metadata: &'a ObjectMeta,
    pub spec: &'a MutatingWebhook,
}

impl Hook<'_> {
    pub fn title(&self) -> String {
        format!("{} webhook {}", self.kind, self.spec.name)
    }

    /// Returns the name of its configuration.
    pub fn configuration(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Reports whether objects are refused while it is away.
    pub fn is_closed(&self) -> bool {
        self.spec.failure_policy.as_deref() != Some("Ignore")
    }

    pub fn is(&self, other: &Hook<'_>) -> bool {
        (self.kind, &self.spec.name) == (other.kind, &other.spec.name)
    }

    /// Reports whether a `rolegate serve` with `--webhooks all` applies the whole configuration.
    pub fn is_kept(&self) -> bool {
        let applies = |entry: &ManagedFieldsEntry| {
            entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply")
        };
        self.metadata.managed_fields.iter().flatten().any(applies)
    }
}

/// Reads a validating configuration as a mutating one.
pub fn as_mutating(one: ValidatingWebhookConfiguration) -> MutatingWebhookConfiguration {
    let webhooks = one.webhooks.map(|hooks| hooks.iter().map(read).collect());
    MutatingWebhookConfiguration { metadata: one.metadata, webhooks }
}

/// Returns the webhooks of a configuration.
pub fn of<'a>(kind: &'static str, one: &'a MutatingWebhookConfiguration) -> impl Iterator<Item = Hook<'a>> {
    one.webhooks.iter().flatten().map(move |spec| Hook { kind, metadata: &one.metadata, spec })
}

/// Returns the webhooks in the cluster, without those of unreadable configurations.
pub fn webhooks<'a>(mutating: &'a Configurations, validating: &'a Configurations) -> impl Iterator<Item = Hook<'a>> {
    let of_kind = |(kind, all): (_, &'a Configurations)| all.iter().flatten().flat_map(move |one| of(kind, one));
    [("mutating", mutating), ("validating", validating)].into_iter().flat_map(of_kind)
}
