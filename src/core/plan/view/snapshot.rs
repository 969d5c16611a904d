//! The inputs of planning for one group, as the index provides them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::ObjectKind;
use crate::model::moment::Moment;
use crate::model::{Claims, LetGo, OwnUpdate, RolledWorkload, ScaledWorkload, Stance};
use crate::plan::view::{AwaitedObjects, GroupPods, Leaving, NodeRefusal};
use crate::rules::Violation;

/// The inputs of planning for one group.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The objects that carry the group, if any.
    pub claims: Option<Claims>,
    /// Faults of the stored group: with any, no new batch is released.
    pub faults: Arc<[Violation]>,
    /// Faults that would refuse the object if rolegate enforced; none if it does.
    pub spared: Arc<[Violation]>,
    /// Coordinations whose layer is missing, by position in the list of the group.
    pub missing_layers: Vec<usize>,
    /// The objects that its batches and rollouts wait for.
    pub objects: AwaitedObjects,
    /// The node label of the domains of each coordination that has some, by position in the list of the group.
    pub domain_keys: Vec<(usize, String)>,
    pub pods: GroupPods,
    /// Its pods that are being deleted and still exist.
    pub leaving: Vec<Leaving>,
    /// Its pods that kubelets have refused.
    pub refused: Vec<NodeRefusal>,
    /// The number of pods seen by then, of all groups.
    pub seen: u64,
    /// Workloads that it claims for rollouts.
    pub workloads: Vec<RolledWorkload>,
    /// The updates of the StatefulSets of its roles that are under way, claimed or not.
    pub updates: BTreeMap<String, OwnUpdate>,
    /// Workloads that it claims for scaling.
    pub scaled: Vec<ScaledWorkload>,
    /// The time of the snapshot by the clock of the cluster; `None` without a clock.
    pub now: Option<Moment>,
    /// How rolegate serves its namespace.
    pub stance: Stance,
    /// Whether the loop takes no action: the namespace is not known yet and may be served in any way, or another rolegate
    /// serves it.
    pub rests: bool,
    /// Carrier kinds that were not served and came back, with the time since then: while a kind is not served, no group of it
    /// can come back. Filled in only for a missing group.
    pub returned: Vec<(ObjectKind, Duration)>,
}

impl Snapshot {
    /// Returns the reason to release all held pods of the group, whatever carries it.
    pub fn lets_go(&self) -> Option<LetGo> {
        self.stance.lets_go()
    }

    /// Reports whether nothing is left of the group.
    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.claims.is_none() && self.pods.is_empty() && self.workloads.is_empty()
    }
}
