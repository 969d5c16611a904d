//! Schemas of pods, nodes and statuses by the field numbers of `k8s.io/api` (v0.36, `core/v1/generated.proto` and
//! `meta/v1/generated.proto`), which never change. Every field that a type of `api` reads has a row here; other fields are
//! skipped. The rows of a message are ordered by number.

use super::{Field, Kind, Message};

const fn field(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind }
}

/// The fields of [`Pod`](crate::api::Pod) and [`SchedulingPod`](crate::api::scheduling::SchedulingPod).
pub const POD: Message = Message(&[
    field(1, "metadata", Kind::Message(&METADATA)),
    field(2, "spec", Kind::Message(&POD_SPEC)),
    field(3, "status", Kind::Message(&POD_STATUS)),
]);

pub const NODE: Message = Message(&[
    field(1, "metadata", Kind::Message(&METADATA)),
    field(2, "spec", Kind::Message(&NODE_SPEC)),
    field(3, "status", Kind::Message(&NODE_STATUS)),
]);

/// The cause of a failed request or watch.
pub const STATUS: Message = Message(&[
    field(2, "status", Kind::Text),
    field(3, "message", Kind::Text),
    field(4, "reason", Kind::Text),
    field(5, "details", Kind::Message(&STATUS_DETAILS)),
    field(6, "code", Kind::Number),
]);

const STATUS_DETAILS: Message = Message(&[
    field(1, "name", Kind::Text),
    field(2, "group", Kind::Text),
    field(3, "kind", Kind::Text),
    field(5, "retryAfterSeconds", Kind::Number),
]);

const METADATA: Message = Message(&[
    field(1, "name", Kind::Text),
    field(2, "generateName", Kind::Text),
    field(3, "namespace", Kind::Text),
    field(5, "uid", Kind::Text),
    field(6, "resourceVersion", Kind::Text),
    field(7, "generation", Kind::NotZero),
    field(8, "creationTimestamp", Kind::Time),
    field(9, "deletionTimestamp", Kind::Time),
    field(11, "labels", Kind::TextMap),
    field(12, "annotations", Kind::TextMap),
    field(13, "ownerReferences", Kind::Messages(&OWNER_REFERENCE)),
    field(14, "finalizers", Kind::Texts),
]);

const OWNER_REFERENCE: Message = Message(&[
    field(1, "kind", Kind::Text),
    field(3, "name", Kind::Text),
    field(4, "uid", Kind::Text),
    field(5, "apiVersion", Kind::Text),
    field(6, "controller", Kind::Bool),
]);

const POD_SPEC: Message = Message(&[
    field(1, "volumes", Kind::Messages(&VOLUME)),
    field(2, "containers", Kind::Messages(&CONTAINER)),
    field(7, "nodeSelector", Kind::TextMap),
    field(10, "nodeName", Kind::Text),
    field(11, "hostNetwork", Kind::Bool),
    field(16, "hostname", Kind::Text),
    field(17, "subdomain", Kind::Text),
    field(18, "affinity", Kind::Message(&AFFINITY)),
    field(19, "schedulerName", Kind::Text),
    field(20, "initContainers", Kind::Messages(&CONTAINER)),
    field(22, "tolerations", Kind::Messages(&TOLERATION)),
    field(25, "priority", Kind::Number),
    field(31, "preemptionPolicy", Kind::Text),
    field(32, "overhead", Kind::QuantityMap),
    field(33, "topologySpreadConstraints", Kind::Messages(&SPREAD_CONSTRAINT)),
    field(37, "hostUsers", Kind::Bool),
    field(38, "schedulingGates", Kind::Messages(&SCHEDULING_GATE)),
    field(39, "resourceClaims", Kind::Messages(&POD_RESOURCE_CLAIM)),
    field(40, "resources", Kind::Message(&RESOURCES)),
    field(43, "schedulingGroup", Kind::Message(&SCHEDULING_GROUP)),
]);

const POD_RESOURCE_CLAIM: Message =
    Message(&[field(3, "resourceClaimName", Kind::Text), field(4, "resourceClaimTemplateName", Kind::Text)]);

/// A message of which only the presence is read.
const NOTHING: Message = Message(&[]);

const VOLUME: Message = Message(&[field(1, "name", Kind::Text), field(2, "", Kind::Inline(&VOLUME_SOURCE))]);

const VOLUME_SOURCE: Message = Message(&[
    field(10, "persistentVolumeClaim", Kind::Message(&CLAIM_SOURCE)),
    field(29, "ephemeral", Kind::Message(&NOTHING)),
]);

const CLAIM_SOURCE: Message = Message(&[field(1, "claimName", Kind::Text)]);

const CONTAINER: Message = Message(&[
    field(1, "name", Kind::Text),
    field(6, "ports", Kind::Messages(&CONTAINER_PORT)),
    field(7, "env", Kind::Messages(&ENV_VAR)),
    field(8, "resources", Kind::Message(&RESOURCES)),
    field(24, "restartPolicy", Kind::Text),
    field(25, "restartPolicyRules", Kind::Messages(&RESTART_RULE)),
]);

const RESTART_RULE: Message = Message(&[field(1, "action", Kind::Text)]);

const CONTAINER_PORT: Message = Message(&[
    field(2, "hostPort", Kind::Number),
    field(3, "containerPort", Kind::Number),
    field(4, "protocol", Kind::Text),
    field(5, "hostIP", Kind::Text),
]);

const ENV_VAR: Message = Message(&[
    field(1, "name", Kind::Text),
    field(2, "value", Kind::Text),
    field(3, "valueFrom", Kind::Message(&NOTHING)),
]);

const RESOURCES: Message = Message(&[field(1, "limits", Kind::QuantityMap), field(2, "requests", Kind::QuantityMap)]);

const SCHEDULING_GATE: Message = Message(&[field(1, "name", Kind::Text)]);

const SCHEDULING_GROUP: Message = Message(&[field(1, "podGroupName", Kind::Text)]);

const TOLERATION: Message = Message(&[
    field(1, "key", Kind::Text),
    field(2, "operator", Kind::Text),
    field(3, "value", Kind::Text),
    field(4, "effect", Kind::Text),
]);

const AFFINITY: Message = Message(&[
    field(1, "nodeAffinity", Kind::Message(&NODE_AFFINITY)),
    field(2, "podAffinity", Kind::Message(&POD_TERMS)),
    field(3, "podAntiAffinity", Kind::Message(&POD_TERMS)),
]);

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

const NODE_AFFINITY: Message = Message(&[field(1, REQUIRED, Kind::Message(&NODE_SELECTOR))]);

const NODE_SELECTOR: Message = Message(&[field(1, "nodeSelectorTerms", Kind::Messages(&NODE_SELECTOR_TERM))]);

const NODE_SELECTOR_TERM: Message = Message(&[
    field(1, "matchExpressions", Kind::Messages(&REQUIREMENT)),
    field(2, "matchFields", Kind::Messages(&REQUIREMENT)),
]);

/// A requirement of a node selector or a label selector.
const REQUIREMENT: Message =
    Message(&[field(1, "key", Kind::Text), field(2, "operator", Kind::Text), field(3, "values", Kind::Texts)]);

const POD_TERMS: Message = Message(&[
    field(1, REQUIRED, Kind::Messages(&POD_AFFINITY_TERM)),
    field(2, PREFERRED, Kind::Messages(&WEIGHTED_TERM)),
]);

const WEIGHTED_TERM: Message =
    Message(&[field(1, "weight", Kind::Number), field(2, "podAffinityTerm", Kind::Message(&POD_AFFINITY_TERM))]);

const POD_AFFINITY_TERM: Message = Message(&[
    field(1, "labelSelector", Kind::Message(&LABEL_SELECTOR)),
    field(2, "namespaces", Kind::Texts),
    field(3, "topologyKey", Kind::Text),
    field(4, "namespaceSelector", Kind::Message(&LABEL_SELECTOR)),
    field(5, "matchLabelKeys", Kind::Texts),
    field(6, "mismatchLabelKeys", Kind::Texts),
]);

const LABEL_SELECTOR: Message =
    Message(&[field(1, "matchLabels", Kind::TextMap), field(2, "matchExpressions", Kind::Messages(&REQUIREMENT))]);

const SPREAD_CONSTRAINT: Message = Message(&[
    field(1, "maxSkew", Kind::Number),
    field(2, "topologyKey", Kind::Text),
    field(3, "whenUnsatisfiable", Kind::Text),
    field(4, "labelSelector", Kind::Message(&LABEL_SELECTOR)),
    field(5, "minDomains", Kind::Number),
    field(6, "nodeAffinityPolicy", Kind::Text),
    field(7, "nodeTaintsPolicy", Kind::Text),
    field(8, "matchLabelKeys", Kind::Texts),
]);

const POD_STATUS: Message = Message(&[
    field(1, "phase", Kind::Text),
    field(2, "conditions", Kind::Messages(&CONDITION)),
    field(3, "message", Kind::Text),
    field(4, "reason", Kind::Text),
    field(8, "containerStatuses", Kind::Messages(&CONTAINER_STATUS)),
    field(10, "initContainerStatuses", Kind::Messages(&INIT_CONTAINER_STATUS)),
    field(11, "nominatedNodeName", Kind::Text),
    field(19, "allocatedResources", Kind::QuantityMap),
    field(20, "resources", Kind::Message(&RESOURCES)),
]);

/// A condition of a pod or a node.
const CONDITION: Message = Message(&[
    field(1, "type", Kind::Text),
    field(2, "status", Kind::Text),
    field(4, "lastTransitionTime", Kind::Time),
    field(5, "reason", Kind::Text),
    field(6, "message", Kind::Text),
]);

const CONTAINER_STATUS: Message = Message(&[
    field(1, "name", Kind::Text),
    field(2, "state", Kind::Message(&CONTAINER_STATE)),
    field(3, "lastState", Kind::Message(&CONTAINER_STATE)),
    field(10, "allocatedResources", Kind::QuantityMap),
    field(11, "resources", Kind::Message(&RESOURCES)),
]);

const INIT_CONTAINER_STATUS: Message = Message(&[
    field(1, "name", Kind::Text),
    field(10, "allocatedResources", Kind::QuantityMap),
    field(11, "resources", Kind::Message(&RESOURCES)),
]);

const CONTAINER_STATE: Message =
    Message(&[field(1, "waiting", Kind::Message(&WAITING)), field(3, "terminated", Kind::Message(&TERMINATED))]);

const WAITING: Message = Message(&[field(1, "reason", Kind::Text)]);

const TERMINATED: Message =
    Message(&[field(1, "exitCode", Kind::Number), field(3, "reason", Kind::Text), field(4, "message", Kind::Text)]);

const NODE_SPEC: Message =
    Message(&[field(4, "unschedulable", Kind::Bool), field(5, "taints", Kind::Messages(&TAINT))]);

const TAINT: Message =
    Message(&[field(1, "key", Kind::Text), field(2, "value", Kind::Text), field(3, "effect", Kind::Text)]);

/// The fields of node conditions have the numbers of pod conditions.
const NODE_STATUS: Message = Message(&[
    field(2, "allocatable", Kind::QuantityMap),
    field(4, "conditions", Kind::Messages(&CONDITION)),
    field(14, "declaredFeatures", Kind::Texts),
]);
