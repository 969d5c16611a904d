//! The write of `rolegate resume` and `rolegate rollback`, with the rights of its caller: the time at which a person let a group go on,
//! or its rollouts go back.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::deadline::WRITE_TIMEOUT;
use crate::cluster::objects::api;
use crate::cluster::write::deadline::within;
use crate::model::Group;
use crate::model::moment::Moment;

const MANAGER: &str = "rolegate-resume";

/// Notes what a person asks of a group, by the annotations of the work concerned.
pub async fn resume(client: &Client, group: &Group, annotations: &BTreeSet<&str>, at: Moment) -> kube::Result<()> {
    let carrier = &group.carrier;
    let objects = api::<DynamicObject>(client, carrier.kind, Some(&group.key.namespace));
    let annotations: BTreeMap<_, _> = annotations.iter().map(|key| (*key, at.text())).collect();
    let metadata = json!({ "uid": carrier.uid, "annotations": annotations });
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    within(WRITE_TIMEOUT, objects.patch(&carrier.name, &params, &patch)).await.map(drop)
}
