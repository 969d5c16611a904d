//! A KAI PodGroup that places its pods: its scheduled pods, and the holds of the others.

use std::collections::BTreeMap;

use serde::Serialize;

use super::TreePicture;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    /// Number of pods that name it.
    pub pods: usize,
    /// Pods with a node.
    pub scheduled: usize,
    /// Pods with the gate.
    pub held: usize,
    /// The pods of each leaf.
    pub sub_groups: BTreeMap<&'a str, SubGroup>,
    pub holds: Vec<TreeHold<'a>>,
    /// Number of pods that may go now.
    pub due: usize,
    /// Why the decision on its pods is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// The pods of a leaf. The leaf has an empty name in a PodGroup without subgroups.
#[derive(Default, Serialize)]
pub struct SubGroup {
    pub pods: usize,
    /// Pods with a node.
    pub scheduled: usize,
}

/// Pods of a PodGroup that are held for one reason.
#[derive(Serialize)]
pub struct TreeHold<'a> {
    /// One word.
    pub reason: &'static str,
    /// For people.
    pub message: &'a str,
    pub pods: usize,
}

impl<'a> PodGroupStatus<'a> {
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
