//! Pods.

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

/// `v1 Pod`.
pub const POD: ObjectKind = ObjectKind { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };

/// A pod: what identity, hold and readiness need, and no more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
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
    /// Gates, in order; `None` when the field is absent, which a patch has to know.
    pub scheduling_gates: Option<Vec<SchedulingGate>>,
}

/// An entry of `spec.schedulingGates`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulingGate {
    /// Qualified name.
    pub name: String,
}

/// The fields of a pod's status that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    /// Pending, Running, Succeeded, Failed, Unknown.
    #[serde(deserialize_with = "null_default")]
    pub phase: String,
    /// Conditions, of which `Ready` and `PodScheduled` are read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<PodCondition>,
}

/// An entry of a pod's `status.conditions`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    /// Kind of condition.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

impl Object for Pod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Pod {
    /// True when the gate of this name is on the pod.
    pub fn has_gate(&self, name: &str) -> bool {
        self.spec.scheduling_gates.iter().flatten().any(|gate| gate.name == name)
    }

    /// True when a condition of this type is `True`.
    pub fn condition_is_true(&self, kind: &str) -> bool {
        self.status.conditions.iter().any(|condition| condition.r#type == kind && condition.status == "True")
    }

    /// True for pods that no count may include: being deleted, or run to their end (SPEC: identity of pods).
    pub fn is_gone(&self) -> bool {
        self.metadata.is_deleting() || matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }
}
