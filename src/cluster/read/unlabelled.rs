//! Pods that the workload of a role made before they could name the group: they run, and no watch of pods that name groups
//! tells of them.

use kube::Client;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use serde_json::Value;

use crate::api::Pod;
use crate::api::pod::POD;
use crate::api::selector::LabelSelector;
use crate::cluster::objects::{self, Objects};
use crate::cluster::watch::watched::{Watched, api};
use crate::model::workload_kind::PodController;
use crate::model::{GroupKey, WorkloadKey, names};
use crate::plan::PodRef;

/// A workload, as far as its pods are found by it.
#[derive(Debug)]
struct Maker<'a> {
    key: &'a WorkloadKey,
    uid: String,
    selector: String,
}

/// The pods of a workload that name no group. None where the workload is not there.
///
/// # Errors
///
/// When the API server refuses or fails.
pub async fn find(
    client: &Client,
    group: &GroupKey,
    role: &str,
    key: &WorkloadKey,
) -> Result<Vec<PodRef>, kube::Error> {
    if ![&*group.name, role].into_iter().all(names::is_label_value) {
        return Ok(Vec::new());
    }
    let request = objects::get(key.kind.object_kind(), Some(&key.namespace), &key.name)?;
    let workload = match client.request::<Value>(request).await {
        Ok(workload) => workload,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let Some(maker) = Maker::of(key, &workload) else { return Ok(Vec::new()) };
    let pods: Objects<Watched<Pod>> = api(client, POD, Some(&key.namespace));
    let found = pods.list_metadata(&ListParams::default().labels(&maker.selector)).await?;
    let unlabelled = found.items.into_iter().filter(|pod| maker.has_made(pod) && !names_group(pod, group, role));
    Ok(unlabelled.filter_map(|pod| Some(named(pod.metadata.name?, pod.metadata.uid?))).collect())
}

fn named(name: String, uid: String) -> PodRef {
    PodRef { name: name.into(), uid: uid.into() }
}

impl<'a> Maker<'a> {
    fn of(key: &'a WorkloadKey, workload: &Value) -> Option<Self> {
        let uid = workload.pointer("/metadata/uid")?.as_str()?.to_owned();
        let selector = if let Some(label) = key.kind.row().named_by {
            format!("{label}={}", key.name)
        } else {
            serde_json::from_value::<LabelSelector>(workload.pointer("/spec/selector")?.clone()).ok()?.to_string()
        };
        // An empty one would select all pods.
        (!selector.is_empty()).then_some(Self { key, uid, selector })
    }

    /// It made this pod, which is not on its way out: labels can be set by anybody, and the owner by its controller alone.
    fn has_made(&self, pod: &PartialObjectMeta<Watched<Pod>>) -> bool {
        let meta = &pod.metadata;
        let owners = meta.owner_references.iter().flatten();
        let Some(owner) = owners.into_iter().find(|owner| owner.controller == Some(true)) else { return false };
        let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key));
        let name = &self.key.name;
        let is_part =
            |of: &str| of.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        meta.deletion_timestamp.is_none()
            && match self.key.kind.row().controller {
                PodController::Itself => owner.kind == self.key.kind.as_str() && owner.uid == self.uid,
                PodController::Parts => is_part(&owner.name),
                PodController::ReplicaSet(hash) => {
                    let set = label(hash).map(|hash| format!("{name}-{hash}"));
                    owner.kind == "ReplicaSet" && set.as_ref() == Some(&owner.name)
                }
            }
    }
}

/// True for a pod that names any group itself, or was found for this role already.
fn names_group(pod: &PartialObjectMeta<Watched<Pod>>, group: &GroupKey, role: &str) -> bool {
    let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let (of_group, of_role) = names::ADOPTED;
    let names_itself = names::LABEL_SCHEMES.iter().any(|(group, _)| label(group).is_some_and(|name| !name.is_empty()));
    names_itself || (label(of_group) == Some(&*group.name) && label(of_role) == Some(role))
}
