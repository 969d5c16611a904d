//! Pods that stay held, and the one reason why.

use crate::model::{Coordination, GroupKey, HoldReason};
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::view::{GroupPods, HeldPod};

/// Names a coordination of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinationRef {
    /// Its place in the group's list.
    pub index: usize,
    /// What status and messages call it.
    pub name: String,
}

impl From<&Coordination> for CoordinationRef {
    fn from(coordination: &Coordination) -> Self {
        Self { index: coordination.index, name: coordination.display_name() }
    }
}

/// Pods that are held for one reason. Each pod that is held and may not go is in exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Coordination whose batch is held, `None` when no coordination is the reason.
    pub coordination: Option<CoordinationRef>,
    /// The lowest batch that is held, from 0.
    pub batch: Option<u32>,
    /// Why.
    pub reason: HoldReason,
    /// For people.
    pub message: String,
    /// The pods; none for a rollout that waits behind held replicas.
    pub pods: HeldPods,
}

impl Held {
    /// Pods that no batch of a coordination holds.
    pub fn new(reason: HoldReason, message: String, pods: impl Into<HeldPods>) -> Self {
        Self { coordination: None, batch: None, reason, message, pods: pods.into() }
    }

    /// The pods of a group that is not there.
    pub fn of_missing_group(key: &GroupKey, pods: &GroupPods) -> Self {
        let held: Vec<HeldPod> = pods.held().collect();
        Self::new(HoldReason::GroupMissing, format!("group {:?} is not there", &*key.name), held)
    }

    /// True when there is something to tell of: of a group that is not there only its held pods.
    pub fn is_told(&self) -> bool {
        !self.pods.is_empty() || self.reason != HoldReason::GroupMissing
    }

    /// How many pods.
    pub fn count(&self) -> u32 {
        self.pods.count()
    }

    /// Name of the coordination.
    pub fn coordination_name(&self) -> Option<&str> {
        self.coordination.as_ref().map(|coordination| coordination.name.as_str())
    }
}
