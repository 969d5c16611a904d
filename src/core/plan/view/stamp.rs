//! Facts that admission writes on a new pod for the loop to read: they outlive the group, the webhook and this process.

use std::sync::Arc;

use crate::api::{Meta, ObjectKind};
use crate::model::engine::read_annotation;
use crate::model::{CARRIERS, Meeting, names};

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
    /// The engine that it asks for by its annotation.
    pub engine: Option<Arc<str>>,
}

impl Stamp {
    pub fn of(meta: &Meta) -> Self {
        let carrier = meta.annotation(names::CARRIER);
        Self {
            batch: meta.label(names::KEP75_BATCH).map(Into::into),
            held: meta.annotation(names::HELD_BY).is_some(),
            meeting: Meeting::at_birth(meta),
            carrier: CARRIERS.iter().copied().find(|kind| Some(kind.full_name().as_str()) == carrier),
            engine: meta.annotation(names::ENGINE).map(Into::into),
        }
    }

    /// Reports whether it says anything that the group may contradict: the affinity names a batch, or the engine asks for
    /// variables of a group that did not exist.
    pub fn may_be_wrong(&self) -> bool {
        self.batch.is_some() || (self.is_early() && self.engine.is_some())
    }

    /// Reports whether its group, or its role there, did not exist at its creation: it has nothing of the group.
    pub fn is_early(&self) -> bool {
        self.held && self.carrier.is_none()
    }

    /// Reports whether it lacks variables that its group would have given it, whatever the group says.
    pub fn asks_group(&self) -> bool {
        let asks = |text: &Arc<str>| read_annotation(text).is_ok_and(|engine| engine.takes_variables_of_group());
        self.is_early() && self.engine.as_ref().is_some_and(asks)
    }
}
