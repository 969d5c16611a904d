//! Installations of rolegate in a cluster, from its webhook configurations.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use kube::api::ListParams;

use crate::api::selector;
use crate::api::webhook_configuration::{
    MUTATING_WEBHOOK_CONFIGURATION, MutatingWebhookConfiguration as Configuration,
};
use crate::cluster::watch::watched::api;
use crate::model::Installation;
use crate::model::installation::OF_PODS;

/// Returns the installations of rolegate in the cluster other than `own`.
///
/// # Errors
/// When the API server fails, or webhook configurations may not be read.
pub async fn others(client: &Client, own: &str) -> Result<Vec<Installation>, kube::Error> {
    let all = api::<Configuration>(client, MUTATING_WEBHOOK_CONFIGURATION, None).list(&ListParams::default()).await?;
    let all = all.items.iter().filter_map(|one| Installation::of(&one.object));
    Ok(all.filter(|one| one.name != own).collect())
}

/// Returns all installations of rolegate among these webhook configurations.
pub fn installations(all: &[MutatingWebhookConfiguration]) -> Vec<Installation> {
    let of = |configuration: &MutatingWebhookConfiguration| {
        let hook = configuration.webhooks.iter().flatten().find(|hook| hook.name == OF_PODS)?;
        let name = configuration.metadata.name.clone().unwrap_or_default();
        Some(Installation { name, namespaces: hook.namespace_selector.as_ref().map(read).unwrap_or_default() })
    };
    all.iter().filter_map(of).collect()
}

/// Reports whether the selector matches these labels; a missing selector matches all.
pub fn selects(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    selector.is_none_or(|selector| read(selector).matches(labels))
}

fn read(selector: &LabelSelector) -> selector::LabelSelector {
    let requirements = selector.match_expressions.iter().flatten().map(|one| selector::Requirement {
        key: one.key.clone(),
        operator: one.operator.clone(),
        values: one.values.clone().unwrap_or_default(),
    });
    selector::LabelSelector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: requirements.collect(),
    }
}
