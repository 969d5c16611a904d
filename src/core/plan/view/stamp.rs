//! Facts that admission writes on a new pod for the loop to read: they outlive the group, the webhook and this process.

use std::sync::Arc;

use crate::api::{Meta, ObjectKind};
use crate::model::Meeting;
use crate::model::{CARRIERS, names};

/// The facts that admission wrote on a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The batch whose domain it shares (KEP-75, deploy-topology-coordination-name): its affinity names this batch, and cannot
    /// be changed.
    pub batch: Option<Arc<str>>,
    /// The kind of the object that carried its group.
    pub carrier: Option<ObjectKind>,
    /// Whether it was created with the gate of rolegate.
    pub held: bool,
    /// The pods that its engine meets in other replicas, as counted at its creation.
    pub meeting: Option<Meeting>,
}

impl Stamp {
    pub fn of(meta: &Meta) -> Self {
        let carrier = meta.annotation(names::CARRIER);
        Self {
            batch: meta.label(names::KEP75_BATCH).map(Into::into),
            held: meta.annotation(names::HELD_BY).is_some(),
            meeting: Meeting::at_birth(meta),
            carrier: CARRIERS.iter().copied().find(|kind| Some(kind.full_name().as_str()) == carrier),
        }
    }
}
