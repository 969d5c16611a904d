//! Pods, limited to the fields for identity, hold, discovery and readiness.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::{apply, skip_serializing_none};

use super::affinity::Affinity;
use super::quantity::Quantity;
use super::{Meta, ObjectKind, null_default};

pub const POD: ObjectKind = ObjectKind::namespaced("", "v1", "Pod", "pods");

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: Meta,
    pub spec: PodSpec,
    /// Empty at CREATE.
    pub status: PodStatus,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Set once the pod is bound; a pod that is created bound cannot be gated.
    #[serialize_always]
    pub node_name: Option<String>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// In order; `None` when the field is absent, because a patch depends on it.
    #[serialize_always]
    pub scheduling_gates: Option<Vec<SchedulingGate>>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// First part of the pod's DNS name.
    pub hostname: Option<String>,
    /// Name of the governing Service, second part of the pod's DNS name.
    pub subdomain: Option<String>,
    pub affinity: Option<Affinity>,
    /// Kubernetes' own gang of the pod (KEP-4671, off by default).
    pub scheduling_group: Option<SchedulingGroup>,
}

/// `spec.schedulingGroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingGroup {
    /// Name of a PodGroup of `scheduling.k8s.io`.
    #[serde(deserialize_with = "null_default")]
    pub pod_group_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// In order; `None` when the field is absent, because a patch depends on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    #[serde(deserialize_with = "null_default", skip_serializing)]
    pub resources: Resources,
    /// `Always` makes an init container a sidecar.
    #[serde(rename = "restartPolicy", skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
}

impl Container {
    /// Reports whether an init container is a sidecar.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// Resources of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Resources {
    #[serde(deserialize_with = "null_default")]
    pub limits: Extended,
    #[serde(deserialize_with = "null_default")]
    pub requests: Extended,
    /// True when the container uses devices of claims (DRA). Their number is in the claims.
    #[serde(rename = "claims", deserialize_with = "is_not_empty")]
    pub has_claims: bool,
}

/// Amounts of resources with a domain in their name, such as devices. Others are not kept: many pods are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extended(pub Vec<(String, Quantity)>);

impl<'de> Deserialize<'de> for Extended {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amounts;

        impl<'de> Visitor<'de> for Amounts {
            type Value = Extended;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("amounts by resource")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Extended, A::Error> {
                let mut amounts = Vec::new();
                while let Some(name) = map.next_key::<Cow<'_, str>>()? {
                    if name.contains('/') {
                        amounts.push((name.into_owned(), map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Extended(amounts))
            }
        }

        deserializer.deserialize_map(Amounts)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVar {
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// The API server leaves out an empty value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// True when `valueFrom` is set; the source itself does not matter and is not kept.
    #[serde(rename = "valueFrom", deserialize_with = "is_present", skip_serializing)]
    pub has_source: bool,
}

/// Reads anything but `null` as true.
fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

/// Reads a list with an entry as true.
fn is_not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Vec<IgnoredAny>>::deserialize(deserializer)?.is_some_and(|list| !list.is_empty()))
}

/// An entry of `spec.schedulingGates`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulingGate {
    /// Qualified name.
    pub name: String,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    /// Pending, Running, Succeeded, Failed, Unknown.
    pub phase: String,
    /// Only `Ready` and `PodScheduled` are read.
    pub conditions: Vec<PodCondition>,
    /// Cause of a failure, one word: `Evicted`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Cause of a failure, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(rename = "containerStatuses", skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<ContainerStatus>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    pub state: ContainerState,
    /// State before the last start.
    pub last_state: ContainerState,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    pub terminated: Option<Terminated>,
    pub waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    pub exit_code: i32,
    /// One word: `OOMKilled`.
    #[serde(deserialize_with = "null_default")]
    pub reason: String,
    /// Termination message of the container.
    #[serde(deserialize_with = "null_default")]
    pub message: String,
}

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
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Time of the last change of `status`, RFC 3339.
    #[serde(rename = "lastTransitionTime", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// One CamelCase word.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Reports whether a condition of this type is `True`.
pub(super) fn is_true(conditions: &[PodCondition], kind: &str) -> bool {
    conditions.iter().any(|condition| condition.r#type == kind && condition.status == "True")
}

impl Pod {
    /// Reports whether the pod is bound to a node; an empty node name does not count.
    pub fn has_node(&self) -> bool {
        self.spec.node_name.as_deref().is_some_and(|node| !node.is_empty())
    }

    pub fn has_gate(&self, name: &str) -> bool {
        self.spec.scheduling_gates.iter().flatten().any(|gate| gate.name == name)
    }

    pub fn condition_is_true(&self, kind: &str) -> bool {
        is_true(&self.status.conditions, kind)
    }

    /// Returns what the scheduler says of a pod for which it has found no node. A gate gives another reason.
    pub fn unschedulable(&self) -> Option<&str> {
        let says =
            |condition: &&PodCondition| condition.r#type == "PodScheduled" && condition.reason == "Unschedulable";
        self.status.conditions.iter().find(says).map(|condition| condition.message.as_str())
    }

    /// Reports whether no count may include the pod: it is being deleted, has failed, or has ended outside a Job.
    pub fn is_gone(&self) -> bool {
        let ended = match self.status.phase.as_str() {
            "Failed" => true,
            "Succeeded" => !self.is_completed(),
            _ => false,
        };
        ended || self.metadata.is_deleting()
    }

    /// Reports whether the pod belongs to a Job and has succeeded; such a pod keeps its place.
    pub fn is_completed(&self) -> bool {
        self.status.phase == "Succeeded" && self.metadata.controller().is_some_and(|owner| owner.kind == "Job")
    }
}
