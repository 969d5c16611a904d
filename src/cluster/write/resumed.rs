//! The write of `rolegate resume`, with the rights of its caller: the time at which a person let a group go on.

use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::deadline::WRITE_TIMEOUT;
use super::writer::resource;
use crate::cluster::objects::Objects;
use crate::cluster::write::deadline::within;
use crate::model::moment::Moment;
use crate::model::{Group, names};

const MANAGER: &str = "rolegate-resume";

/// Resumes a group that waits for a person.
pub async fn resume(client: &Client, group: &Group, at: Moment) -> Result<(), kube::Error> {
    let carrier = &group.carrier;
    let objects: Objects<DynamicObject> = Objects::new(client, &resource(carrier.kind), Some(&group.key.namespace));
    let metadata = json!({ "uid": carrier.uid, "annotations": { names::RESUMED_AT: at.text() } });
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    within(WRITE_TIMEOUT, objects.patch(&carrier.name, &params, &patch)).await.map(drop)
}
