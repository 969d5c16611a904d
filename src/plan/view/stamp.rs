//! What admission wrote on a pod when it was born, for the loop to read: it outlives the group, the webhook and this process.

use std::sync::Arc;

use crate::api::{Meta, ObjectKind};
use crate::model::{CARRIERS, names};

/// What admission wrote on a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The batch whose domain it shares (KEP-75, deploy-topology-coordination-name): its affinity names this one, and
    /// cannot be changed.
    pub batch: Option<Arc<str>>,
    /// Kind of the object that carried its group.
    pub carrier: Option<ObjectKind>,
    /// It was given our gate.
    pub held: bool,
}

impl Stamp {
    /// Reads a pod's.
    pub fn of(meta: &Meta) -> Self {
        let carrier = meta.annotation(names::CARRIER);
        Self {
            batch: meta.label(names::KEP75_BATCH).map(Into::into),
            held: meta.annotation(names::HELD_BY).is_some(),
            carrier: CARRIERS.iter().copied().find(|kind| Some(kind.full_name().as_str()) == carrier),
        }
    }
}
