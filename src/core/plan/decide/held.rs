//! Pods that stay held, each with one reason.

use crate::model::{Coordination, GroupKey, HoldReason};
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::view::{GroupPods, HeldPod};

/// A reference to a coordination of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinationRef {
    /// The position in the list of the group.
    pub index: usize,
    /// The name in status and messages.
    pub name: String,
}

impl From<&Coordination> for CoordinationRef {
    fn from(coordination: &Coordination) -> Self {
        Self { index: coordination.index, name: coordination.display_name() }
    }
}

/// Pods that are held for one reason. Each held pod that may not go is in exactly one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The coordination whose batch is held; `None` if no coordination is the reason.
    pub coordination: Option<CoordinationRef>,
    /// The lowest held batch, from 0.
    pub batch: Option<u32>,
    pub reason: HoldReason,
    pub message: String,
    /// The pods; none for a rollout that waits for held replicas.
    pub pods: HeldPods,
}

impl Held {
    /// Returns an entry without coordination and batch.
    pub fn new(reason: HoldReason, message: String, pods: impl Into<HeldPods>) -> Self {
        Self { coordination: None, batch: None, reason, message, pods: pods.into() }
    }

    /// Returns an entry of a batch of a coordination.
    pub(super) fn of(
        (coordination, batch): (Option<&Coordination>, Option<u32>),
        reason: HoldReason,
        message: String,
        pods: impl Into<HeldPods>,
    ) -> Self {
        Self { coordination: coordination.map(CoordinationRef::from), batch, ..Self::new(reason, message, pods) }
    }

    /// Returns the entry for the held pods of a group that does not exist.
    pub fn of_missing_group(key: &GroupKey, pods: &GroupPods) -> Self {
        let held: Vec<HeldPod> = pods.held().collect();
        let mut message = format!("group {:?} is not there", &*key.name);
        if let Some(pod) = held.iter().filter(|pod| pod.stamp.asks_group()).min_by(|one, other| one.in_order(other)) {
            let name = &*pod.pod.name;
            message = format!("{message}; pod {name:?} waits for it: its engine gets variables of the group");
        }
        Self::new(HoldReason::GroupMissing, message, held)
    }

    /// Reports whether the entry is worth telling: a missing group without held pods is not.
    pub fn is_told(&self) -> bool {
        !self.pods.is_empty() || self.reason != HoldReason::GroupMissing
    }

    pub fn count(&self) -> u32 {
        self.pods.count()
    }

    pub fn coordination_name(&self) -> Option<&str> {
        self.coordination.as_ref().map(|coordination| coordination.name.as_str())
    }
}
