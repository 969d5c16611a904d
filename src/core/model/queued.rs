//! The state of a pod in Kueue, which keeps pods waiting for a quota with gates of its own.

use crate::api::{Meta, Pod};
use crate::model::names;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queued {
    /// Kueue does not queue the pod.
    #[default]
    Not,
    /// Kueue waits until rolegate's gate is lifted, and takes no quota before.
    AfterUs,
    /// Kueue has not released the pod. When it does, it may set the nodes of the pod.
    Waits,
    /// Kueue has released the pod: it counts in a quota, whether it runs or not.
    Admitted,
    /// The same, and nodes were requested for the pod: while rolegate holds it, by an admission check of Kueue.
    Provisioned,
}

impl Queued {
    pub fn of(pod: &Pod) -> Self {
        let meta = &pod.metadata;
        if waits_for_us(meta) {
            Self::AfterUs
        } else if names::KUEUE_GATES.iter().any(|gate| pod.has_gate(gate)) {
            Self::Waits
        } else if meta.label(names::KUEUE_MANAGED) == Some("true") {
            if meta.annotation(names::CONSUME_REQUEST).is_some() { Self::Provisioned } else { Self::Admitted }
        } else {
            Self::Not
        }
    }

    /// Reports whether Kueue has released the pod.
    pub const fn is_admitted(self) -> bool {
        matches!(self, Self::Admitted | Self::Provisioned)
    }
}

/// Returns the queue of Kueue that an object names.
pub fn queue_of(meta: &Meta) -> Option<&str> {
    meta.label(names::KUEUE_QUEUE).filter(|queue| !queue.is_empty())
}

/// Reports whether the pod tells Kueue to wait for rolegate.
pub fn waits_for_us(meta: &Meta) -> bool {
    meta.annotation(names::KUEUE_GATED_BY) == Some(names::GATE)
}

/// Reports whether Kueue queues the pod by itself, not together with its workload or a pod group, so that it can be told apart
/// from pods of later batches. Of a workload, Kueue counts all pods at once, whatever a pod says.
pub fn is_queued_alone(meta: &Meta) -> bool {
    let is_queued = queue_of(meta).is_some() || meta.label(names::KUEUE_MANAGED) == Some("true");
    let is_with_others = meta.annotation(names::KUEUE_PARENT).is_some()
        || meta.annotation(names::KUEUE_POD_GROUP).or_else(|| meta.label(names::KUEUE_POD_GROUP)).is_some();
    is_queued && !is_with_others
}

/// Reports whether Kueue queues all pods of a StatefulSet as one. Kueue refuses a change of its replicas and does not see one
/// through the scale subresource: it then finds unknown pods, takes all pods down and lets none run again.
pub fn is_queued_as_one(meta: &Meta, template: &Meta) -> bool {
    queue_of(meta).is_some() || template.annotation(names::KUEUE_PARENT) == Some("statefulset")
}

/// Returns the annotation by which a pod asks Kueue for a place in a topology.
pub fn asks_for_topology(meta: &Meta) -> Option<&'static str> {
    names::KUEUE_TOPOLOGY.iter().copied().find(|key| meta.annotation(key).is_some())
}
