//! A KAI PodGroup that places its pods: how many have a node, and why the others are held.

use std::collections::BTreeMap;

use serde::Serialize;

use super::TreePicture;

/// A PodGroup.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Pods that name it.
    pub pods: usize,
    /// Those that have a node.
    pub scheduled: usize,
    /// Those with our gate.
    pub held: usize,
    /// The pods of each leaf.
    pub sub_groups: BTreeMap<&'a str, SubGroup>,
    /// Why pods are held.
    pub holds: Vec<TreeHold<'a>>,
    /// Pods that may go now.
    pub due: usize,
    /// Why it is not known what becomes of its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// The pods of a leaf, which has no name in a PodGroup without subgroups.
#[derive(Default, Serialize)]
pub struct SubGroup {
    /// How many.
    pub pods: usize,
    /// Those that have a node.
    pub scheduled: usize,
}

/// Pods of a PodGroup that are held for one reason.
#[derive(Serialize)]
pub struct TreeHold<'a> {
    /// Why, in one word.
    pub reason: &'static str,
    /// For people.
    pub message: &'a str,
    /// How many.
    pub pods: usize,
}

impl<'a> PodGroupStatus<'a> {
    /// What is seen of it.
    pub fn of(picture: &'a TreePicture) -> Self {
        let pods = &picture.snapshot.pods;
        let mut sub_groups: BTreeMap<&str, SubGroup> = BTreeMap::new();
        for pod in pods {
            let leaf = sub_groups.entry(pod.leaf.as_deref().unwrap_or_default()).or_default();
            leaf.pods += 1;
            leaf.scheduled += usize::from(pod.scheduled);
        }
        let decision = picture.decision.as_ref();
        let holds = decision.map(|decision| decision.held.as_slice()).unwrap_or_default().iter();
        let plan = decision.ok().and_then(|decision| decision.plan.as_ref());
        Self {
            namespace: &picture.snapshot.key.namespace,
            name: &picture.snapshot.key.name,
            pods: pods.len(),
            scheduled: pods.iter().filter(|pod| pod.scheduled).count(),
            held: picture.snapshot.held().count(),
            sub_groups,
            holds: holds
                .map(|held| TreeHold { reason: held.reason.as_str(), message: &held.message, pods: held.pods.len() })
                .collect(),
            due: plan.map_or(0, |plan| plan.pods.len()),
            error: decision.err().map(String::as_str),
        }
    }
}
