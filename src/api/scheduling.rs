//! A pod as the scheduler looks at it: what it asks for, and which nodes it can go to.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::pod::{PodCondition, SchedulingGate};
use super::selector::LabelSelector;
use super::{Meta, Object, null_default};

/// An amount as it is written: the API server writes texts, people numbers as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;

        impl Visitor<'_> for TextOrNumber {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }

            fn visit_str<E>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }

        deserializer.deserialize_any(TextOrNumber)
    }
}

/// Amounts by the name of the resource.
pub type ResourceList = BTreeMap<String, Quantity>;

/// A pod, or the template of one, as far as it decides where it goes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SchedulingPod {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: SchedulingSpec,
    /// Status.
    #[serde(deserialize_with = "null_default")]
    pub status: SchedulingStatus,
}

impl Object for SchedulingPod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl SchedulingPod {
    /// True for a pod that has ended: it takes no room any more.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// The node it is bound to.
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|node| !node.is_empty())
    }

    /// The node that the scheduler keeps for it: others make way there, or have.
    pub fn nominated_node(&self) -> Option<&str> {
        self.status.nominated_node_name.as_deref().filter(|node| !node.is_empty())
    }
}

/// The fields of a pod's status that say what it takes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingStatus {
    /// Pending, Running, Succeeded, Failed, Unknown.
    #[serde(deserialize_with = "null_default")]
    pub phase: String,
    /// Conditions, of which `PodResizePending` is read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<PodCondition>,
    /// Where the scheduler makes room for it.
    pub nominated_node_name: Option<String>,
    /// What its init containers have.
    #[serde(deserialize_with = "null_default")]
    pub init_container_statuses: Vec<ContainerHas>,
    /// What its containers have.
    #[serde(deserialize_with = "null_default")]
    pub container_statuses: Vec<ContainerHas>,
    /// What its kubelet has granted to the pod as a whole.
    #[serde(deserialize_with = "null_default")]
    pub allocated_resources: ResourceList,
    /// What the pod as a whole runs with.
    pub resources: Option<ResourceRequests>,
}

/// What a container has, which is not what it asks for while it is resized.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerHas {
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// What its kubelet has granted.
    #[serde(deserialize_with = "null_default")]
    pub allocated_resources: ResourceList,
    /// What it runs with; absent where nobody says.
    pub resources: Option<ResourceRequests>,
}

/// The fields of a pod's spec that decide where it goes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingSpec {
    /// Where it is.
    pub node_name: Option<String>,
    /// Who schedules it.
    pub scheduler_name: Option<String>,
    /// The larger, the more important.
    pub priority: Option<i32>,
    /// `Never` for a pod that takes no other's place.
    pub preemption_policy: Option<String>,
    /// What it waits for before it is scheduled.
    #[serde(deserialize_with = "null_default")]
    pub scheduling_gates: Vec<SchedulingGate>,
    /// Labels that its node must have.
    #[serde(deserialize_with = "null_default")]
    pub node_selector: BTreeMap<String, String>,
    /// Affinities.
    #[serde(deserialize_with = "null_default")]
    pub affinity: SchedulingAffinity,
    /// Taints that it bears.
    #[serde(deserialize_with = "null_default")]
    pub tolerations: Vec<Toleration>,
    /// Containers.
    #[serde(deserialize_with = "null_default")]
    pub containers: Vec<SchedulingContainer>,
    /// Init containers; those that are restarted always are sidecars.
    #[serde(deserialize_with = "null_default")]
    pub init_containers: Vec<SchedulingContainer>,
    /// What the sandbox takes beyond the containers.
    #[serde(deserialize_with = "null_default")]
    pub overhead: ResourceList,
    /// What the pod asks for as a whole, instead of the sum of its containers.
    #[serde(deserialize_with = "null_default")]
    pub resources: ResourceRequests,
    /// Every port of a container is then one of the node.
    #[serde(deserialize_with = "null_default")]
    pub host_network: bool,
    /// How it is spread over domains.
    #[serde(deserialize_with = "null_default")]
    pub topology_spread_constraints: Vec<SpreadConstraint>,
    /// Volumes.
    #[serde(deserialize_with = "null_default")]
    pub volumes: Vec<Volume>,
    /// Devices by claim (DRA).
    #[serde(deserialize_with = "null_default")]
    pub resource_claims: Vec<IgnoredAny>,
}

/// A container, as far as it asks for anything.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingContainer {
    /// Name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// What it asks for.
    #[serde(deserialize_with = "null_default")]
    pub resources: ResourceRequests,
    /// Ports.
    #[serde(deserialize_with = "null_default")]
    pub ports: Vec<ContainerPort>,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
}

/// What is asked for, and what may be taken at most.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceRequests {
    /// What the scheduler counts.
    #[serde(deserialize_with = "null_default")]
    pub requests: ResourceList,
    /// What it counts where nothing is requested.
    #[serde(deserialize_with = "null_default")]
    pub limits: ResourceList,
}

/// A port of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// Port in the container.
    pub container_port: i32,
    /// Port on the node, 0 for none.
    #[serde(deserialize_with = "null_default")]
    pub host_port: i32,
    /// Address on the node; none is all of them.
    #[serde(rename = "hostIP", deserialize_with = "null_default")]
    pub host_ip: String,
    /// TCP where none is given.
    #[serde(deserialize_with = "null_default")]
    pub protocol: String,
}

/// A taint that a pod bears.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// Key; none, together with `Exists`, is any.
    #[serde(deserialize_with = "null_default")]
    pub key: String,
    /// `Equal` where none is given, or `Exists`.
    #[serde(deserialize_with = "null_default")]
    pub operator: String,
    /// Value.
    #[serde(deserialize_with = "null_default")]
    pub value: String,
    /// Effect; none is any.
    #[serde(deserialize_with = "null_default")]
    pub effect: String,
}

/// The affinities of a pod that the scheduler insists on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingAffinity {
    /// To nodes.
    #[serde(deserialize_with = "null_default")]
    pub node_affinity: NodeAffinity,
    /// To other pods.
    #[serde(deserialize_with = "null_default")]
    pub pod_affinity: Required,
    /// Away from other pods.
    #[serde(deserialize_with = "null_default")]
    pub pod_anti_affinity: Required,
}

/// Affinity to nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// What a node must be.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
}

/// Alternatives, of which one must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The alternatives; none of them holds when there are none.
    #[serde(deserialize_with = "null_default")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Requirements, which must hold all; without any the term holds of no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// Of labels.
    #[serde(deserialize_with = "null_default")]
    pub match_expressions: Vec<NodeRequirement>,
    /// Of fields; `metadata.name` is the only one.
    #[serde(deserialize_with = "null_default")]
    pub match_fields: Vec<NodeRequirement>,
}

/// What a label or a field must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct NodeRequirement {
    /// Key.
    pub key: String,
    /// In, NotIn, Exists, DoesNotExist, Gt or Lt.
    pub operator: String,
    /// Values.
    #[serde(deserialize_with = "null_default")]
    pub values: Vec<String>,
}

/// Affinity to other pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Required {
    /// What must hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "null_default")]
    pub terms: Vec<PodAffinityTerm>,
}

/// `v1.PodAffinityTerm`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAffinityTerm {
    /// The node label whose values are the domains.
    pub topology_key: String,
    /// The pods that it is about; absent is none.
    pub label_selector: Option<LabelSelector>,
    /// Their namespaces; without any, and without a selector of namespaces, that of the pod.
    #[serde(deserialize_with = "null_default")]
    pub namespaces: Vec<String>,
    /// More namespaces; empty is all.
    pub namespace_selector: Option<LabelSelector>,
    /// Labels in which they are like the pod.
    #[serde(deserialize_with = "null_default")]
    pub match_label_keys: Vec<String>,
    /// Labels in which they differ from the pod.
    #[serde(deserialize_with = "null_default")]
    pub mismatch_label_keys: Vec<String>,
}

/// `v1.TopologySpreadConstraint`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    /// The node label whose values are the domains.
    pub topology_key: String,
    /// How many more pods a domain may have than the one with the fewest.
    pub max_skew: u32,
    /// With fewer domains the fewest count as none; absent is 1.
    pub min_domains: Option<u32>,
    /// `DoNotSchedule` insists.
    #[serde(deserialize_with = "null_default")]
    pub when_unsatisfiable: String,
    /// The pods that are counted; absent is none.
    pub label_selector: Option<LabelSelector>,
    /// Labels in which they are like the pod.
    #[serde(deserialize_with = "null_default")]
    pub match_label_keys: Vec<String>,
    /// `Ignore` counts nodes that the pod does not select as well.
    #[serde(deserialize_with = "null_default")]
    pub node_affinity_policy: String,
    /// `Honor` does not count nodes with taints that the pod does not tolerate.
    #[serde(deserialize_with = "null_default")]
    pub node_taints_policy: String,
}

/// A volume, as far as it ties a pod to nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// Name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// A claim, whose volume may be reached from some nodes only.
    pub persistent_volume_claim: Option<VolumeClaim>,
    /// A claim that is made with the pod.
    pub ephemeral: Option<IgnoredAny>,
}

/// A claim by its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeClaim {
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub claim_name: String,
}
