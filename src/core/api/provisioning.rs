//! Objects that ask an autoscaler for nodes: Karpenter's CapacityBuffer, cluster-autoscaler's ProvisioningRequest, and the
//! PodTemplates that both refer to.

use super::ObjectKind;

/// Kinds of the objects of requests for nodes; the template after those that refer to it.
pub const REQUESTS: [ObjectKind; 3] = [CAPACITY_BUFFER, PROVISIONING_REQUEST, POD_TEMPLATE];

pub const POD_TEMPLATE: ObjectKind = ObjectKind::namespaced("", "v1", "PodTemplate", "podtemplates");

/// Headroom of a number of pods of one template.
pub const CAPACITY_BUFFER: ObjectKind =
    ObjectKind::namespaced("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers");

/// Nodes for several sets of pods at once.
pub const PROVISIONING_REQUEST: ObjectKind =
    ObjectKind::namespaced("autoscaling.x-k8s.io", "v1", "ProvisioningRequest", "provisioningrequests");
