//! Remains of pods that are gone or being deleted: pods that may still run, and the last state of each pod.

use std::sync::Arc;

use crate::api::Pod;
use crate::api::pod::{ContainerStatus, Terminated};
use crate::model::revision;
use crate::model::wording::beginning;
use crate::model::words::words;
use crate::plan::view::{GroupPods, PodRef};

/// A pod that is being deleted and may still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub pod: PodRef,
    pub role: Arc<str>,
    pub ordinal: u32,
    /// The node, empty without one.
    pub node: Arc<str>,
}

words! {
/// The way in which a replica was lost.
#[derive(Default)]
pub enum LossKind {
    /// A pod was deleted, or its end was not observed.
    #[default]
    PodDeleted,
    PodFailed,
    PodEvicted,
    /// The node of a pod is gone or does not answer.
    NodeGone,
    NotReady,
    /// The pod has no room in the domain of its batch.
    NoRoom,
}
}

impl LossKind {
    /// Returns a text that follows the name of a pod.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::PodDeleted => "was deleted",
            Self::PodFailed => "failed",
            Self::PodEvicted => "was evicted",
            Self::NodeGone => "lost its node",
            Self::NotReady => "was not ready for too long",
            Self::NoRoom => "has no room in the domain of its batch",
        }
    }
}

/// The last observed state of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastWords {
    pub kind: LossKind,
    /// The name; empty if the pod was not observed.
    pub pod: String,
    /// The node; empty without one.
    pub node: String,
    /// The reason of the pod, of its disruption condition, or of the container that ended.
    pub reason: String,
    /// The exit code of the container that ended.
    pub exit_code: Option<i32>,
    /// The termination message of that container, or the message of the pod.
    pub message: String,
    pub revision: Option<Arc<str>>,
}

/// A pod that a kubelet refused to admit after it was scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRefusal {
    pub role: Arc<str>,
    pub ordinal: u32,
    /// The last refused pod.
    pub pod: PodRef,
    pub node: Arc<str>,
    /// The number of refusals without a ready pod of the replica on the node in between.
    pub times: u32,
    /// The reason of the kubelet.
    pub reason: String,
}

/// The prefixes of the reasons that a kubelet gives for not admitting a pod.
const REFUSALS: &[&str] = &[
    "UnexpectedAdmissionError",
    "OutOf",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "TopologyAffinityError",
    "InvalidNodeInfo",
    "PodOSNotSupported",
    "PodFeatureUnsupported",
];

/// Returns the reason of the kubelet for not admitting a pod.
pub fn kubelet_refusal(pod: &Pod) -> Option<&str> {
    let reason = pod.status.reason.as_str();
    let refuses = pod.status.phase == "Failed" && REFUSALS.iter().any(|known| reason.starts_with(known));
    refuses.then_some(reason)
}

/// The maximum length of a kept message, in bytes: a container may write much more.
const LONGEST: usize = 512;

/// The kinds of loss by reason in conditions and pods.
const KINDS: &[(&str, LossKind)] = &[
    ("EvictionByEvictionAPI", LossKind::PodEvicted),
    ("PreemptionByScheduler", LossKind::PodEvicted),
    ("TerminationByKubelet", LossKind::PodEvicted),
    ("Evicted", LossKind::PodEvicted),
    ("Preempting", LossKind::PodEvicted),
    ("DeletionByTaintManager", LossKind::NodeGone),
    ("DeletionByPodGC", LossKind::NodeGone),
    ("NodeLost", LossKind::NodeGone),
    ("NodeShutdown", LossKind::NodeGone),
    ("Terminated", LossKind::NodeGone),
];

impl LastWords {
    /// Returns the last words of an existing pod that is not ready.
    pub fn of_unready(pod: &Pod) -> Self {
        Self { kind: LossKind::NotReady, ..Self::of(pod) }
    }

    /// Returns the last words of a pod that is gone or being deleted.
    pub fn of(pod: &Pod) -> Self {
        let status = &pod.status;
        let disrupted = status.conditions.iter().find(|c| c.r#type == "DisruptionTarget" && c.status == "True");
        let disrupted = disrupted.map(|condition| condition.reason.as_str());
        let ended = status.containers.iter().filter_map(ended).max_by_key(|ended| ended.exit_code != 0);
        let waiting = status.containers.iter().find_map(|container| container.state.waiting.as_ref());
        let of_container = ended.map(|ended| ended.reason.as_str());
        let words = [disrupted, Some(status.reason.as_str()), of_container, waiting.map(|w| w.reason.as_str())];
        let mut words = words.into_iter().flatten().filter(|word| !word.is_empty());
        let known = words.clone().find_map(|word| Some(KINDS.iter().find(|(known, _)| *known == word)?.1));
        let kind = known.unwrap_or(if status.phase == "Failed" { LossKind::PodFailed } else { LossKind::PodDeleted });
        let message = ended.map(|ended| ended.message.as_str()).filter(|message| !message.is_empty());
        Self {
            kind,
            pod: pod.metadata.name.clone().unwrap_or_default(),
            node: pod.spec.node_name.clone().unwrap_or_default(),
            reason: words.next().unwrap_or_default().to_owned(),
            exit_code: ended.map(|ended| ended.exit_code),
            message: beginning(message.unwrap_or(&status.message), LONGEST).to_owned(),
            revision: revision(&pod.metadata).map(Into::into),
        }
    }

    /// Reports whether the role has left the revision of the pod: a rollout has replaced the pod, and may be over by now.
    pub fn is_replaced_in(&self, pods: &GroupPods, role: &str) -> bool {
        let Some(was) = &self.revision else { return false };
        pods.of_role(role).any(|pod| pod.revision.as_ref().is_some_and(|now| now != was))
    }

    /// Returns a text such as `pod pd-decode-3 of node n1 failed (OOMKilled, exit code 137)`; `otherwise` is the subject if the
    /// pod was not observed.
    pub fn text(&self, otherwise: &str) -> String {
        let node = if self.node.is_empty() { String::new() } else { format!(" of node {}", self.node) };
        let subject = if self.pod.is_empty() { otherwise.to_owned() } else { format!("pod {}{node}", self.pod) };
        let code = self.exit_code.map(|code| format!("exit code {code}"));
        let reason = Some(self.reason.clone()).filter(|reason| !reason.is_empty());
        let details = reason.into_iter().chain(code).collect::<Vec<_>>().join(", ");
        let details = if details.is_empty() { details } else { format!(" ({details})") };
        format!("{subject} {}{details}", self.kind.in_words())
    }
}

/// Returns the end of a container: the current one, or the one before its last start.
fn ended(container: &ContainerStatus) -> Option<&Terminated> {
    container.state.terminated.as_ref().or(container.last_state.terminated.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn words(status: &Value) -> LastWords {
        let pod = json!({ "metadata": { "name": "d-3" }, "spec": { "nodeName": "n1" }, "status": status });
        LastWords::of(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_pod_says_how_it_went() {
        let ended = json!([{ "state": { "running": {} } }, {
            "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled", "message": "peer gone" } },
        }]);
        let failed = words(&json!({ "phase": "Failed", "containerStatuses": ended }));
        assert_eq!(failed.text(""), "pod d-3 of node n1 failed (OOMKilled, exit code 137)");
        assert_eq!((failed.message.as_str(), failed.kind), ("peer gone", LossKind::PodFailed));
        let evicted = words(&json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" }));
        assert_eq!(
            (evicted.text("").as_str(), evicted.message.as_str()),
            ("pod d-3 of node n1 was evicted (Evicted)", "low on memory")
        );
        let disrupted = |reason: &str| {
            let condition = json!({ "type": "DisruptionTarget", "status": "True", "reason": reason });
            words(&json!({ "phase": "Running", "conditions": [condition] })).kind
        };
        assert_eq!(disrupted("EvictionByEvictionAPI"), LossKind::PodEvicted);
        assert_eq!(disrupted("DeletionByTaintManager"), LossKind::NodeGone);
        assert_eq!(words(&json!({ "phase": "Running" })).kind, LossKind::PodDeleted);
        let long = words(&json!({ "message": "é".repeat(600) })).message;
        assert_eq!((long.len(), long.chars().all(|c| c == 'é')), (512, true));
        assert_eq!(LastWords::default().text("replica 3 of role \"d\""), "replica 3 of role \"d\" was deleted");
    }
}
