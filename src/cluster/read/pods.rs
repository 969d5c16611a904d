//! Pods of a group that no watch tells: those that run, those without labels, and those that a rollout made.

use std::collections::HashSet;

use kube::Client;
use kube::api::ListParams;
use kube::core::{ObjectMeta, PartialObjectMeta};

use crate::api::Pod;
use crate::api::pod::POD;
use crate::cluster::index::version;
use crate::cluster::objects::{self, api};
use crate::cluster::read::lookup::Lookup;
use crate::cluster::read::missing_pods;
use crate::model::maker::{Maker, Owner};
use crate::model::{Group, GroupKey, WorkloadKey, names};
use crate::plan::PodRef;
use crate::plan::decide::surplus::Surplus;

/// Running pods of a group: a live list before existing pods count for a group that has never committed anything. Pods known to the
/// watch may belong to an earlier group of the same name.
///
/// Pods that exist and are not being deleted.
#[derive(Debug)]
pub struct RunningPods {
    pub uids: HashSet<String>,
    /// The lowest version at which they were listed.
    pub at: Option<u64>,
}

/// Lists the pods of a group under each label scheme.
pub async fn running(client: &Client, group: &GroupKey) -> kube::Result<RunningPods> {
    let pods = api::<Pod>(client, POD, Some(&group.namespace));
    let mut found = RunningPods { uids: HashSet::new(), at: None };
    for (label, _) in names::pod_schemes().filter(|_| names::is_label_value(&group.name)) {
        let list = pods.list_metadata(&ListParams::default().labels(&format!("{label}={}", group.name))).await?;
        let at = list.metadata.resource_version.as_deref();
        found.at = found.at.or_else(|| version(at)).min(version(at));
        let there = list.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        found.uids.extend(there.filter_map(|pod| pod.metadata.uid));
    }
    Ok(found)
}

/// Returns the pods that a workload made before they could name the group. They run, and no watch of labelled pods reports them; none where the workload does not exist.
pub async fn unlabelled(client: &Client, group: &GroupKey, role: &str, key: &WorkloadKey) -> kube::Result<Vec<PodRef>> {
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

/// Returns the pods that a rollout made, among the pods beyond the desired replicas, by a live read of their workload after they were
/// seen. Surplus pods of an unknown maker may be
/// growth, and stay held.
pub async fn of_surge(lookup: &Lookup, group: &Group, surplus: &[Surplus]) -> kube::Result<Vec<PodRef>> {
    let makers = missing_pods::makers(&lookup.index().read(), group, surplus.iter().map(|surplus| &*surplus.role));
    let mut proven = Vec::new();
    for (surplus, key) in surplus.iter().zip(makers) {
        let Some(key) = key else { continue };
        let workload = missing_pods::read(&lookup.client, &key).await?.map(|seen| seen.workload);
        // The workload wanted no more replicas when the pods existed already: they cannot be growth.
        if workload.is_some_and(|workload| workload.surges() && workload.desired <= surplus.desired) {
            proven.extend(surplus.pods.iter().cloned());
        }
    }
    Ok(proven)
}
