//! Installations of rolegate in a cluster, from its webhook configurations.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use kube::api::ListParams;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::selector;
use crate::api::webhook_configuration::{
    MUTATING_WEBHOOK_CONFIGURATION, MutatingWebhookConfiguration as Configuration,
};
use crate::cluster::objects::api;
use crate::model::Installation;

/// Returns the installations of rolegate in the cluster other than `own`.
pub async fn others(client: &Client, own: &str) -> kube::Result<Vec<Installation>> {
    let all = api::<Configuration>(client, MUTATING_WEBHOOK_CONFIGURATION, None).list(&ListParams::default()).await?;
    let all = all.items.iter().filter_map(Installation::of);
    Ok(all.filter(|one| one.name != own).collect())
}

/// Returns all installations of rolegate among these webhook configurations.
pub fn installations(all: &[MutatingWebhookConfiguration]) -> Vec<Installation> {
    all.iter().filter_map(|one| Installation::of(&read::<Configuration>(one))).collect()
}

/// Reports whether the selector matches these labels; a missing selector matches all.
pub fn selects(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    selector.is_none_or(|selector| read::<selector::LabelSelector>(selector).matches(labels))
}

/// Reads a part of an object as another type.
pub fn read<T: DeserializeOwned + Default>(part: &impl Serialize) -> T {
    serde_json::to_value(part).and_then(serde_json::from_value).unwrap_or_default()
}
