//! Pods of a role that its workload made before they could name the group. They run, and no watch of labelled pods reports
//! them.

use kube::Client;
use kube::api::ListParams;
use kube::core::{ObjectMeta, PartialObjectMeta};
use serde_json::Value;

use crate::api::Pod;
use crate::api::pod::POD;
use crate::cluster::objects::{self, Objects};
use crate::cluster::watch::watched::{Watched, api};
use crate::model::maker::{Maker, Owner};
use crate::model::{GroupKey, WorkloadKey, names};
use crate::plan::PodRef;

/// Returns the pods of a workload that name no group; none where the workload does not exist.
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
    let Some(maker) = Maker::of(key.kind, &key.name, &workload) else { return Ok(Vec::new()) };
    let pods: Objects<Watched<Pod>> = api(client, POD, Some(&key.namespace));
    let found = pods.list_metadata(&ListParams::default().labels(&maker.selector.to_string())).await?;
    let unlabelled = found.items.into_iter().filter(|pod| has_made(&maker, pod) && !names_group(pod, group, role));
    Ok(unlabelled.filter_map(|pod| Some(named(pod.metadata.name?, pod.metadata.uid?))).collect())
}

fn named(name: String, uid: String) -> PodRef {
    PodRef { name: name.into(), uid: uid.into() }
}

/// Reports whether the maker has made this pod, and the pod is not being deleted.
fn has_made(maker: &Maker, pod: &PartialObjectMeta<Watched<Pod>>) -> bool {
    let ObjectMeta { owner_references, labels, deletion_timestamp, .. } = &pod.metadata;
    let label = |key: &str| labels.as_ref()?.get(key).map(String::as_str);
    let owner = owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = owner.map(|owner| Owner { kind: &owner.kind, name: &owner.name, uid: &owner.uid });
    deletion_timestamp.is_none() && owner.is_some_and(|owner| maker.has_made(owner, label))
}

/// Reports whether a pod names any group itself, or was adopted for this role already.
fn names_group(pod: &PartialObjectMeta<Watched<Pod>>, group: &GroupKey, role: &str) -> bool {
    let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let (of_group, of_role) = names::ADOPTED;
    let names_itself = names::LABEL_SCHEMES.iter().any(|(group, _)| label(group).is_some_and(|name| !name.is_empty()));
    names_itself || (label(of_group) == Some(&*group.name) && label(of_role) == Some(role))
}
