//! Replicas beyond the desired ones that an update makes for a while. Only a LeaderWorkerSet or a Deployment makes them, and
//! what a watch says of the desired count may be older than the pod: such a pod waits for a live read that came after it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::decide::Decision;
use super::pass::{Action, Pass};
use super::view::{HeldPod, PodRef};
use crate::model::{Group, WorkloadKey, WorkloadKind};

/// What a live read says of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surge {
    /// Desired replicas.
    pub desired: u32,
    /// Most replicas beyond them while it updates.
    pub extra: u32,
}

/// What was read of the workloads of pods, by the pod's uid, after the pod was seen; `None` where there was no workload.
pub type Surges = HashMap<Arc<str>, Option<Surge>>;

/// What is to become of a held pod beyond the desired replicas of a role that is released to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surplus {
    /// The update needs it.
    Goes,
    /// Its workload is to be asked first.
    Unclear,
    /// It is one too many.
    Stays,
}

/// Judges such a pod; without `surges` nobody can be asked.
pub(super) fn judge(group: &Group, pod: &HeldPod, desired: u32, surges: Option<&Surges>) -> Surplus {
    match surges.map(|surges| surges.get(&pod.pod.uid)) {
        Some(None) if maker(group, &pod.role).is_some() => Surplus::Unclear,
        // A workload that wants more than the group declares is not updating: it was scaled.
        Some(Some(Some(surge))) if surge.desired == desired && pod.ordinal < desired.saturating_add(surge.extra) => {
            Surplus::Goes
        }
        _ => Surplus::Stays,
    }
}

/// The workload of a role, if it is one that surges.
fn maker<'a>(group: &'a Group, role: &str) -> Option<&'a WorkloadKey> {
    let key = group.role(role)?.workload.key.as_ref()?;
    (key.kind != WorkloadKind::StatefulSet).then_some(key)
}

/// What a workload is called among the objects that are asked for.
pub(super) fn workload_id(key: &WorkloadKey) -> Arc<str> {
    key.to_string().into()
}

impl Pass<'_> {
    /// Asks for the workloads of pods that may be a surge.
    pub(super) fn ask_workloads(&mut self, group: &Group, decision: &Decision) {
        let mut asked: BTreeMap<&WorkloadKey, Vec<PodRef>> = BTreeMap::new();
        for pod in &decision.unclear {
            let Some(workload) = maker(group, &pod.role) else { continue };
            asked.entry(workload).or_default().push(pod.pod.clone());
        }
        for (workload, pods) in asked {
            let id = workload_id(workload);
            match self.memory.retry_due(&id).filter(|at| *at > self.now) {
                Some(at) => self.look_again(at),
                None if self.memory.in_flight.insert(id) => {
                    self.actions.push(Action::ReadWorkload { workload: workload.clone(), pods });
                }
                None => {}
            }
        }
    }
}
