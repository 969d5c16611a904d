//! Where a pod stands with Kueue, which keeps pods waiting for a quota by gates of its own.

use crate::api::{Meta, Pod};
use crate::model::names;

/// Where a pod stands with Kueue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queued {
    /// Kueue does not queue it.
    #[default]
    Not,
    /// Kueue waits until our gate is off: it takes no quota before.
    AfterUs,
    /// Kueue has not let it go. When it does, it may say on which nodes the pod runs.
    Waits,
    /// Kueue has let it go: it counts in a quota, whether it runs or not.
    Admitted,
}

impl Queued {
    /// Where this pod stands.
    pub fn of(pod: &Pod) -> Self {
        let meta = &pod.metadata;
        if waits_for_us(meta) {
            Self::AfterUs
        } else if names::KUEUE_GATES.iter().any(|gate| pod.has_gate(gate)) {
            Self::Waits
        } else if meta.label(names::KUEUE_MANAGED) == Some("true") {
            Self::Admitted
        } else {
            Self::Not
        }
    }
}

/// True for a pod that says that Kueue is to wait for us.
pub fn waits_for_us(meta: &Meta) -> bool {
    meta.annotation(names::KUEUE_GATED_BY) == Some(names::GATE)
}

/// True for a pod that Kueue queues by itself, and not with others of its workload or of a group that Kueue knows: such a pod
/// can be told apart from those of later batches. Of a workload Kueue counts all pods at once, whatever a pod says.
pub fn is_queued_alone(meta: &Meta) -> bool {
    let is_queued = meta.label(names::KUEUE_QUEUE).is_some_and(|queue| !queue.is_empty())
        || meta.label(names::KUEUE_MANAGED) == Some("true");
    let is_with_others = meta.annotation(names::KUEUE_PARENT).is_some()
        || meta.annotation(names::KUEUE_POD_GROUP).or_else(|| meta.label(names::KUEUE_POD_GROUP)).is_some();
    is_queued && !is_with_others
}

/// True for a StatefulSet of which Kueue queues all pods as one. Kueue refuses to let it be scaled, and does not see a scale by the
/// subresource: then it finds pods that it does not know of, takes all down, and lets none run again.
pub fn is_queued_as_one(meta: &Meta, template: &Meta) -> bool {
    meta.label(names::KUEUE_QUEUE).is_some_and(|queue| !queue.is_empty())
        || template.annotation(names::KUEUE_PARENT) == Some("statefulset")
}

/// The annotation by which pods ask Kueue for a place in a topology.
pub fn asks_for_topology(meta: &Meta) -> Option<&'static str> {
    names::KUEUE_TOPOLOGY.iter().copied().find(|key| meta.annotation(key).is_some())
}
