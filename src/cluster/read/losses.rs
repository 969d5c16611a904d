//! Verdicts on replicas that look lost, by live reads of the makers of their pods. A replica removed by a rollout or a
//! scale-in is not lost.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;

use crate::api::Pod;
use crate::api::node::{NODE, Node};
use crate::api::pod::POD;
use crate::cluster::objects::api;
use crate::cluster::read::lookup::Lookup;
use crate::cluster::read::missing_pods::{self, MakerState};
use crate::model::Group;
use crate::plan::recovery::Loss;
use crate::plan::{Judged, LastWords, Suspect, Verdict};

/// What is read of the replicas that look lost.
struct LossReads<'a> {
    lookup: &'a Lookup,
    group: &'a Group,
    /// The makers of the pods of roles; `None` for one that is not known, or does not exist.
    makers: BTreeMap<&'a str, Option<MakerState>>,
    /// Whether the pods of a node can be judged.
    nodes: BTreeMap<String, bool>,
}

/// Judges batches that look broken.
pub async fn look(lookup: &Lookup, group: &Group, suspects: &[Suspect]) -> kube::Result<Vec<Judged>> {
    let roles: BTreeSet<_> = suspects.iter().flat_map(|suspect| &suspect.roles).map(String::as_str).collect();
    let keys = missing_pods::makers(&lookup.index().read(), group, roles.iter().copied());
    let mut reads = LossReads { lookup, group, makers: BTreeMap::new(), nodes: BTreeMap::new() };
    for (role, key) in roles.into_iter().zip(keys) {
        let maker = match key {
            Some(key) => missing_pods::read(&lookup.client, &key).await?,
            None => None,
        };
        reads.makers.insert(role, maker);
    }
    let mut judged = Vec::new();
    for suspect in suspects {
        let verdict = reads.judge(suspect).await?;
        judged.push(Judged { id: suspect.id, loss: suspect.loss.clone(), verdict });
    }
    Ok(judged)
}

impl LossReads<'_> {
    async fn judge(&mut self, suspect: &Suspect) -> kube::Result<Verdict> {
        let (client, group) = (&self.lookup.client, self.group);
        let Loss { role, ordinal, unready } = &suspect.loss;
        // It is unknown what an unreadable maker does with its pods.
        let maker = |role: &String| self.makers.get(role.as_str()).and_then(Option::as_ref);
        let is_quiet = |role: &String| maker(role).is_some_and(|maker| !maker.replaces_pods);
        let wanted = maker(role).is_some_and(|maker| *ordinal < maker.workload.desired);
        if !wanted || !suspect.roles.iter().all(is_quiet) {
            return Ok(Verdict::NotLost);
        }
        if unready.is_empty() {
            let words = self.lookup.index().read().last_words(&group.key, role, *ordinal).unwrap_or_default();
            let pods = self.lookup.index().read().snapshot(&group.key).pods;
            return Ok(if words.is_replaced_in(&pods, role) { Verdict::NotLost } else { Verdict::Lost(words) });
        }
        let pods = api::<Pod>(client, POD, Some(&group.key.namespace));
        for pod in unready {
            let found = pods.find(&pod.name).await?;
            match found.filter(|found| found.metadata.uid.as_deref() == Some(&*pod.uid)) {
                Some(found) if found.condition_is_true("Ready") => {}
                Some(found) => {
                    let node = found.spec.node_name.clone().unwrap_or_default();
                    if !found.metadata.is_deleting() && !self.nodes.contains_key(&node) {
                        self.nodes.insert(node.clone(), answers(client, &node).await?);
                    }
                    if !found.metadata.is_deleting() && self.nodes.get(&node) == Some(&false) {
                        return Ok(Verdict::Unknown { pod: pod.name.to_string(), node });
                    }
                    return Ok(Verdict::Lost(LastWords::of_unready(&found)));
                }
                None => return Ok(Verdict::Lost(LastWords::default())),
            }
        }
        Ok(Verdict::NotLost)
    }
}

/// Reports whether the pods of a node can be judged: false for a node that exists and is not ready.
async fn answers(client: &Client, name: &str) -> kube::Result<bool> {
    let found = api::<Node>(client, NODE, None).find(name).await?;
    Ok(found.is_none_or(|found| found.is_ready()))
}
