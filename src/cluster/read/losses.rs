//! Verdicts on replicas that look lost, by live reads of the makers of their pods. A replica removed by a rollout or a
//! scale-in is not lost.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;

use crate::api::Pod;
use crate::api::node::{NODE, Node};
use crate::api::pod::POD;
use crate::cluster::index::SharedIndex;
use crate::cluster::read::missing_pods::makers;
use crate::cluster::watch::watched::api;
use crate::model::workload_object::WithType;
use crate::model::{Group, WorkloadKey, WorkloadObject};
use crate::plan::recovery::Loss;
use crate::plan::{Judged, LastWords, Suspect, Verdict};

/// State of the maker of a role's pods.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// Desired replicas; 0 for a maker that does not exist.
    desired: u32,
    /// The maker is replacing pods.
    replaces_pods: bool,
}

/// Judges batches that look broken.
///
/// # Errors
///
/// When the API server refuses or fails.
pub async fn look(
    client: &Client,
    index: &SharedIndex,
    group: &Group,
    suspects: &[Suspect],
) -> Result<Vec<Judged>, kube::Error> {
    let mut standings: BTreeMap<&str, Option<Standing>> = BTreeMap::new();
    for role in suspects.iter().flat_map(|suspect| &suspect.roles) {
        if !standings.contains_key(role.as_str()) {
            let maker = makers(&index.read(), group, [role.as_str()].into_iter()).into_iter().flatten().next();
            let standing = match maker {
                Some(key) => Some(key.kind.with_type(Get { client, key: &key }).await?),
                None => None,
            };
            standings.insert(role, standing);
        }
    }
    let (mut judged, mut nodes) = (Vec::new(), BTreeMap::new());
    for suspect in suspects {
        let verdict = judge(client, index, group, suspect, (&standings, &mut nodes)).await?;
        judged.push(Judged { id: suspect.id, loss: suspect.loss.clone(), verdict });
    }
    Ok(judged)
}

async fn judge(
    client: &Client,
    index: &SharedIndex,
    group: &Group,
    suspect: &Suspect,
    (standings, nodes): (&BTreeMap<&str, Option<Standing>>, &mut BTreeMap<String, bool>),
) -> Result<Verdict, kube::Error> {
    let Loss { role, ordinal, unready } = &suspect.loss;
    // It is unknown what an unreadable maker does with its pods.
    let is_quiet = |role: &String| {
        let standing = standings.get(role.as_str()).copied().flatten();
        standing.is_some_and(|standing| !standing.replaces_pods)
    };
    let wanted = standings.get(role.as_str()).copied().flatten().is_some_and(|standing| *ordinal < standing.desired);
    if !wanted || !suspect.roles.iter().all(is_quiet) {
        return Ok(Verdict::NotLost);
    }
    if unready.is_empty() {
        let words = index.read().last_words(&group.key, role, *ordinal).unwrap_or_default();
        let pods = index.read().snapshot(&group.key).pods;
        return Ok(if words.is_replaced_in(&pods, role) { Verdict::NotLost } else { Verdict::Lost(words) });
    }
    let pods = api::<Pod>(client, POD, Some(&group.key.namespace));
    for pod in unready {
        let found = pods.find(&pod.name).await?.map(|found| found.object);
        match found.filter(|found| found.metadata.uid.as_deref() == Some(&*pod.uid)) {
            Some(found) if found.condition_is_true("Ready") => {}
            Some(found) => {
                let node = found.spec.node_name.clone().unwrap_or_default();
                if !found.metadata.is_deleting() && !nodes.contains_key(&node) {
                    nodes.insert(node.clone(), answers(client, &node).await?);
                }
                if !found.metadata.is_deleting() && nodes.get(&node) == Some(&false) {
                    return Ok(Verdict::Unknown { pod: pod.name.to_string(), node });
                }
                return Ok(Verdict::Lost(LastWords::of_unready(&found)));
            }
            None => return Ok(Verdict::Lost(LastWords::default())),
        }
    }
    Ok(Verdict::NotLost)
}

/// Reports whether the pods of a node can be judged: false for a node that exists and is not ready.
async fn answers(client: &Client, name: &str) -> Result<bool, kube::Error> {
    let found = api::<Node>(client, NODE, None).find(name).await?;
    Ok(found.is_none_or(|found| found.object.is_ready()))
}

/// Reads the state of a workload.
struct Get<'a> {
    client: &'a Client,
    key: &'a WorkloadKey,
}

impl<'a> WithType for Get<'a> {
    type Output = BoxFuture<'a, Result<Standing, kube::Error>>;

    fn of<T: WorkloadObject>(self) -> Self::Output {
        let workloads = api::<T>(self.client, T::KIND.object_kind(), Some(&self.key.namespace));
        async move {
            let found = workloads.get_opt(&self.key.name).await?;
            Ok(found.map_or(Standing { desired: 0, replaces_pods: true }, |found| Standing {
                desired: found.object.workload().desired,
                replaces_pods: found.object.replaces_pods(),
            }))
        }
        .boxed()
    }
}
