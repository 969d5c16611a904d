//! A pod, as far as planning needs it.

use std::sync::Arc;

use crate::api::Pod;
use crate::model::{PodIdentity, names};
use crate::plan::view::Stamp;

/// A pod, as far as planning needs it.
#[expect(clippy::struct_excessive_bools, reason = "four independent facts of a pod, not states of one machine")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Name and unique id.
    pub pod: PodRef,
    /// Group, role, ordinal.
    pub identity: PodIdentity,
    /// True while it carries our gate.
    pub held: bool,
    /// True once it has a node.
    pub scheduled: bool,
    /// True while its `Ready` condition is.
    pub ready: bool,
    /// Labels of the batch that it should have carried since creation: false for a pod that came before its group.
    pub labelled: bool,
    /// Revision that it was made at.
    pub revision: Option<Arc<str>>,
    /// When it was made, RFC 3339: those without an ordinal are served in this order.
    pub created: Option<Arc<str>>,
    /// What admission wrote on it.
    pub stamp: Stamp,
}

/// Names one pod, not its successor of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// Name.
    pub name: Arc<str>,
    /// Unique id.
    pub uid: Arc<str>,
}

impl PodFacts {
    /// The facts of a pod; `None` for one that no count may include: terminating, Failed or Succeeded.
    pub fn of(pod: &Pod, identity: PodIdentity) -> Option<Self> {
        if pod.is_gone() {
            return None;
        }
        let meta = &pod.metadata;
        Some(Self {
            pod: PodRef {
                name: meta.name.as_deref().unwrap_or_default().into(),
                uid: meta.uid.as_deref().unwrap_or_default().into(),
            },
            identity,
            held: pod.has_gate(names::GATE),
            scheduled: pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty()),
            ready: pod.condition_is_true("Ready"),
            labelled: meta.label(names::KEP75_INSTANCE_INDEX).is_some(),
            revision: names::REVISION_LABELS.iter().find_map(|key| meta.label(key)).map(Into::into),
            created: meta.creation_timestamp.as_deref().map(Into::into),
            stamp: Stamp::of(meta),
        })
    }
}

/// A held pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPod {
    /// The pod.
    pub pod: PodRef,
    /// Its role, empty where it names only the group.
    pub role: String,
    /// Ordinal of its replica, given or assigned.
    pub ordinal: u32,
    /// Labels of its batch are there.
    pub labelled: bool,
    /// What admission wrote on it.
    pub stamp: Stamp,
}
