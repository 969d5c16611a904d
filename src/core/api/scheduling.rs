//! A pod as the scheduler sees it: resource requests and the nodes that it can run on.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_with::apply;

use super::pod::{PodCondition, SchedulingGate};
use super::quantity::Quantity;
use super::selector::LabelSelector;
use super::{Meta, null_default};

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

/// A pod or a pod template, limited to the fields that decide its placement.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SchedulingPod {
    pub metadata: Meta,
    pub spec: SchedulingSpec,
    pub status: SchedulingStatus,
}

impl SchedulingPod {
    /// Reports whether the pod has ended and takes no resources.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Returns the node that the pod is bound to.
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|node| !node.is_empty())
    }

    /// Returns the node on which the scheduler preempts other pods for this pod.
    pub fn nominated_node(&self) -> Option<&str> {
        self.status.nominated_node_name.as_deref().filter(|node| !node.is_empty())
    }
}

/// The fields of a pod's status that tell the resources it takes.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingStatus {
    /// Pending, Running, Succeeded, Failed, Unknown.
    pub phase: String,
    /// Only `PodResizePending` is read.
    pub conditions: Vec<PodCondition>,
    /// Node on which the scheduler makes room for the pod.
    pub nominated_node_name: Option<String>,
    pub init_container_statuses: Vec<ContainerHas>,
    pub container_statuses: Vec<ContainerHas>,
    /// Resources that the kubelet granted to the pod as a whole.
    pub allocated_resources: ResourceList,
    /// Resources that the pod as a whole runs with.
    pub resources: Option<ResourceRequests>,
}

/// Resources of a container; they differ from its requests during a resize.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerHas {
    pub name: String,
    /// Resources that the kubelet granted.
    pub allocated_resources: ResourceList,
    /// Resources that the container runs with; absent when the status does not report them.
    pub resources: Option<ResourceRequests>,
}

/// The fields of a pod's spec that decide its placement.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingSpec {
    pub node_name: Option<String>,
    pub scheduler_name: Option<String>,
    pub runtime_class_name: Option<String>,
    /// Larger values are more important.
    pub priority: Option<i32>,
    /// `Never` for a pod that preempts no other pod.
    pub preemption_policy: Option<String>,
    pub scheduling_gates: Vec<SchedulingGate>,
    pub node_selector: BTreeMap<String, String>,
    pub affinity: SchedulingAffinity,
    pub tolerations: Vec<Toleration>,
    pub containers: Vec<SchedulingContainer>,
    /// Init containers with `restartPolicy: Always` are sidecars.
    pub init_containers: Vec<SchedulingContainer>,
    /// Resources of the sandbox, in addition to those of the containers.
    pub overhead: ResourceList,
    /// Resources of the pod as a whole, in place of the sum of its containers.
    pub resources: ResourceRequests,
    /// When true, every container port is a port of the node.
    pub host_network: bool,
    /// False for a pod in a user namespace.
    pub host_users: Option<bool>,
    pub topology_spread_constraints: Vec<SpreadConstraint>,
    pub volumes: Vec<Volume>,
    /// Claims of devices (DRA).
    pub resource_claims: Vec<PodResourceClaim>,
}

/// A claim of devices: by name, or made for the pod from a template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodResourceClaim {
    pub resource_claim_name: Option<String>,
    pub resource_claim_template_name: Option<String>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingContainer {
    pub name: String,
    pub resources: ResourceRequests,
    pub ports: Vec<ContainerPort>,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
    pub restart_policy_rules: Vec<RestartRule>,
    /// Variables whose value is a number, such as that of the processes of an engine. Others are not kept: many pods are read.
    #[serde(rename = "env", deserialize_with = "numbers")]
    #[serde_with(skip_apply)]
    pub numbers: Vec<(String, u32)>,
}

/// What follows an exit of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RestartRule {
    /// `Restart` or `RestartAllContainers`.
    pub action: String,
}

impl SchedulingContainer {
    /// Reports whether an init container is a sidecar.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, u32)>, D::Error> {
    #[derive(Deserialize)]
    struct Variable<'a> {
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow)]
        value: Option<Cow<'a, str>>,
    }

    let written = Option::<Vec<Variable<'de>>>::deserialize(deserializer)?.unwrap_or_default();
    let number = |variable: Variable<'_>| Some((variable.name?.into_owned(), variable.value?.parse().ok()?));
    Ok(written.into_iter().filter_map(number).collect())
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceRequests {
    /// Amounts that the scheduler counts.
    pub requests: ResourceList,
    /// Amounts that the scheduler counts where a request is missing.
    pub limits: ResourceList,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    pub container_port: i32,
    /// Port on the node; 0 is none.
    #[serde(deserialize_with = "null_default")]
    pub host_port: i32,
    /// Address on the node; empty is all addresses.
    #[serde(rename = "hostIP", deserialize_with = "null_default")]
    pub host_ip: String,
    /// Empty is TCP.
    #[serde(deserialize_with = "null_default")]
    pub protocol: String,
}

/// A taint that a pod tolerates.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// Empty, together with `Exists`, matches every key.
    pub key: String,
    /// `Equal` or `Exists`; empty is `Equal`.
    pub operator: String,
    pub value: String,
    /// Empty matches every effect.
    pub effect: String,
}

/// The required affinities of a pod.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingAffinity {
    pub node_affinity: NodeAffinity,
    pub pod_affinity: Required,
    pub pod_anti_affinity: Required,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
}

/// Alternative terms, one of which must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// An empty list matches no node.
    #[serde(deserialize_with = "null_default")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Requirements, all of which must match; an empty term matches no node.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    pub match_expressions: Vec<NodeRequirement>,
    /// Requirements on fields; `metadata.name` is the only field.
    pub match_fields: Vec<NodeRequirement>,
}

/// A requirement on a label or a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct NodeRequirement {
    pub key: String,
    /// In, NotIn, Exists, DoesNotExist, Gt or Lt.
    pub operator: String,
    #[serde(deserialize_with = "null_default")]
    pub values: Vec<String>,
}

/// The required part of an affinity or anti-affinity to other pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Required {
    /// Terms, all of which must hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "null_default")]
    pub terms: Vec<PodAffinityTerm>,
}

/// `v1.PodAffinityTerm`.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAffinityTerm {
    /// Node label whose values are the domains.
    #[serde_with(skip_apply)]
    pub topology_key: String,
    /// Selector of the pods that the term refers to; absent selects none.
    pub label_selector: Option<LabelSelector>,
    /// Namespaces of these pods; without namespaces and namespace selector, the namespace of the pod.
    pub namespaces: Vec<String>,
    /// Selector of more namespaces; empty selects all.
    pub namespace_selector: Option<LabelSelector>,
    /// Keys of labels whose values must equal those of the pod.
    pub match_label_keys: Vec<String>,
    /// Keys of labels whose values must differ from those of the pod.
    pub mismatch_label_keys: Vec<String>,
}

/// `v1.TopologySpreadConstraint`.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    /// Node label whose values are the domains.
    #[serde_with(skip_apply)]
    pub topology_key: String,
    /// Most pods that a domain may have beyond the domain with the fewest.
    #[serde_with(skip_apply)]
    pub max_skew: u32,
    /// With fewer domains, the fewest pods count as 0; absent is 1.
    pub min_domains: Option<u32>,
    /// `DoNotSchedule` makes the constraint a requirement.
    pub when_unsatisfiable: String,
    /// Selector of the counted pods; absent selects none.
    pub label_selector: Option<LabelSelector>,
    /// Keys of labels whose values must equal those of the pod.
    pub match_label_keys: Vec<String>,
    /// `Ignore` also counts nodes that the pod does not select.
    pub node_affinity_policy: String,
    /// `Honor` does not count nodes with taints that the pod does not tolerate.
    pub node_taints_policy: String,
}

/// A volume, limited to the fields that tie a pod to nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// A claim, whose volume may be reachable from some nodes only.
    pub persistent_volume_claim: Option<VolumeClaim>,
    /// A claim that is created with the pod.
    pub ephemeral: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeClaim {
    #[serde(deserialize_with = "null_default")]
    pub claim_name: String,
}
