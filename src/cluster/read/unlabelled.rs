//! Pods of a role that its workload made before they could name the group. They run, and no watch of labelled pods reports
//! them.

use kube::Client;
use kube::api::ListParams;
use kube::core::{ObjectMeta, PartialObjectMeta};

use crate::api::Pod;
use crate::api::pod::POD;
use crate::cluster::objects::{self, api};
use crate::model::maker::{Maker, Owner};
use crate::model::{GroupKey, WorkloadKey, names};
use crate::plan::PodRef;

/// Returns the pods of a workload that name no group; none where the workload does not exist.
pub async fn find(client: &Client, group: &GroupKey, role: &str, key: &WorkloadKey) -> kube::Result<Vec<PodRef>> {
    if ![&*group.name, role].into_iter().all(names::is_label_value) {
        return Ok(Vec::new());
    }
    let workload = objects::read(client, key.kind.object_kind(), &key.namespace, &key.name).await?;
    let Some(maker) = workload.and_then(|workload| Maker::of(key.kind, &key.name, &workload)) else {
        return Ok(Vec::new());
    };
    let pods = api::<Pod>(client, POD, Some(&key.namespace));
    let found = pods.list_metadata(&ListParams::default().labels(&maker.selector.to_string())).await?;
    let unlabelled = found.items.into_iter().filter(|pod| has_made(&maker, pod) && !names_group(pod, group, role));
    let named =
        |pod: PartialObjectMeta| Some(PodRef { name: pod.metadata.name?.into(), uid: pod.metadata.uid?.into() });
    Ok(unlabelled.filter_map(named).collect())
}

/// Reports whether the maker has made this pod, and the pod is not being deleted.
fn has_made(maker: &Maker, pod: &PartialObjectMeta) -> bool {
    let ObjectMeta { owner_references, labels, deletion_timestamp, .. } = &pod.metadata;
    let label = |key: &str| labels.as_ref()?.get(key).map(String::as_str);
    let owner = owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = owner.map(|owner| Owner { kind: &owner.kind, name: &owner.name, uid: &owner.uid });
    deletion_timestamp.is_none() && owner.is_some_and(|owner| maker.has_made(owner, label))
}

/// Reports whether a pod names any group itself, or was adopted for this role already.
fn names_group(pod: &PartialObjectMeta, group: &GroupKey, role: &str) -> bool {
    let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let (of_group, of_role) = names::ADOPTED;
    let names_itself = names::LABEL_SCHEMES.iter().any(|(group, _)| label(group).is_some_and(|name| !name.is_empty()));
    names_itself || (label(of_group) == Some(&*group.name) && label(of_role) == Some(role))
}
