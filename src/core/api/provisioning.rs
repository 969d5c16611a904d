//! Objects that ask an autoscaler for nodes: Karpenter's CapacityBuffer, cluster-autoscaler's ProvisioningRequest, and the
//! PodTemplates that both refer to.

use super::ObjectKind;

/// Kinds of the objects of requests for nodes; the template after those that refer to it.
pub const REQUESTS: [ObjectKind; 3] = [CAPACITY_BUFFER, PROVISIONING_REQUEST, POD_TEMPLATE];

pub const POD_TEMPLATE: ObjectKind =
    ObjectKind { group: "", version: "v1", kind: "PodTemplate", plural: "podtemplates", namespaced: true };

/// Headroom of a number of pods of one template.
pub const CAPACITY_BUFFER: ObjectKind = ObjectKind {
    group: "autoscaling.x-k8s.io",
    version: "v1beta1",
    kind: "CapacityBuffer",
    plural: "capacitybuffers",
    namespaced: true,
};

/// Nodes for several sets of pods at once.
pub const PROVISIONING_REQUEST: ObjectKind = ObjectKind {
    group: "autoscaling.x-k8s.io",
    version: "v1",
    kind: "ProvisioningRequest",
    plural: "provisioningrequests",
    namespaced: true,
};
