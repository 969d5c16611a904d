//! Pods.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::affinity::Affinity;
use super::{Meta, Object, ObjectKind, null_default};

/// `v1 Pod`.
pub const POD: ObjectKind = ObjectKind { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };

/// A pod: what identity, hold, discovery and readiness need, and no more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: PodSpec,
    /// Status; empty at CREATE.
    #[serde(deserialize_with = "null_default")]
    pub status: PodStatus,
}

/// The fields of a pod's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Set once the pod is bound; a pod that is born bound cannot be gated.
    pub node_name: Option<String>,
    /// Node labels that its node must have.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Gates, in order; `None` when the field is absent, which a patch has to know.
    pub scheduling_gates: Option<Vec<SchedulingGate>>,
    /// Containers, in order.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// Init containers, in order.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// First part of the pod's DNS name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Governing Service: second part of the pod's DNS name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subdomain: Option<String>,
    /// Which other pods it wants to be near, and far from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// The gang of Kubernetes itself that it is in (KEP-4671, off by default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_group: Option<SchedulingGroup>,
}

/// `spec.schedulingGroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingGroup {
    /// A PodGroup of `scheduling.k8s.io`.
    #[serde(deserialize_with = "null_default")]
    pub pod_group_name: String,
}

/// A container, as far as its environment goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Environment, in order; `None` when the field is absent, which a patch has to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
}

/// A variable of a container's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVar {
    /// Name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Value; the API server leaves out an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// True when the value comes from elsewhere. From where does not matter and is not kept.
    #[serde(rename = "valueFrom", deserialize_with = "is_present", skip_serializing)]
    pub has_source: bool,
}

/// Reads anything but `null` as true.
fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

/// An entry of `spec.schedulingGates`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulingGate {
    /// Qualified name.
    pub name: String,
}

/// The fields of a pod's status that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    /// Pending, Running, Succeeded, Failed, Unknown.
    #[serde(deserialize_with = "null_default")]
    pub phase: String,
    /// Conditions, of which `Ready` and `PodScheduled` are read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<PodCondition>,
    /// Why it failed, one word: `Evicted`.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same for people.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How its containers are.
    #[serde(rename = "containerStatuses", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<ContainerStatus>,
}

/// How a container is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// How it is.
    #[serde(deserialize_with = "null_default")]
    pub state: ContainerState,
    /// How it was before it was last started.
    #[serde(deserialize_with = "null_default")]
    pub last_state: ContainerState,
}

/// The states of a container that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It has ended.
    pub terminated: Option<Terminated>,
    /// It has not begun.
    pub waiting: Option<Waiting>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Exit code.
    pub exit_code: i32,
    /// One word: `OOMKilled`.
    #[serde(deserialize_with = "null_default")]
    pub reason: String,
    /// Its termination message.
    #[serde(deserialize_with = "null_default")]
    pub message: String,
}

/// Why a container has not begun.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// One word: `CrashLoopBackOff`.
    #[serde(deserialize_with = "null_default")]
    pub reason: String,
}

/// An entry of a pod's `status.conditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    /// Kind of condition.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When `status` last changed, RFC 3339.
    #[serde(rename = "lastTransitionTime", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// One word.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// True when a condition of this type is `True`.
pub(super) fn is_true(conditions: &[PodCondition], kind: &str) -> bool {
    conditions.iter().any(|condition| condition.r#type == kind && condition.status == "True")
}

impl Object for Pod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Pod {
    /// True once it is bound to a node; an empty name binds nothing.
    pub fn has_node(&self) -> bool {
        self.spec.node_name.as_deref().is_some_and(|node| !node.is_empty())
    }

    /// True when the gate of this name is on the pod.
    pub fn has_gate(&self, name: &str) -> bool {
        self.spec.scheduling_gates.iter().flatten().any(|gate| gate.name == name)
    }

    /// True when a condition of this type is `True`.
    pub fn condition_is_true(&self, kind: &str) -> bool {
        is_true(&self.status.conditions, kind)
    }

    /// True for pods that no count may include: being deleted, failed, or run to their end although nobody expects that.
    pub fn is_gone(&self) -> bool {
        let ended = match self.status.phase.as_str() {
            "Failed" => true,
            "Succeeded" => !self.is_completed(),
            _ => false,
        };
        ended || self.metadata.is_deleting()
    }

    /// True for the pod of a Job that has done its work: it keeps its place.
    pub fn is_completed(&self) -> bool {
        self.status.phase == "Succeeded" && self.metadata.controller().is_some_and(|owner| owner.kind == "Job")
    }
}
