//! What planning needs of one group, as the index hands it over.

use std::sync::Arc;
use std::time::Duration;

use crate::api::ObjectKind;
use crate::model::moment::Moment;
use crate::model::{Claims, LetGo, RolledWorkload, ScaledWorkload, Stance};
use crate::plan::view::{GroupPods, Leaving, NodeRefusal};
use crate::rules::Violation;

/// What planning needs of one group.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Who carries it, if anybody does.
    pub claims: Option<Claims>,
    /// Faults of the stored group: with any, no new batch is released.
    pub faults: Arc<[Violation]>,
    /// Faults that refuse the object where rolegate enforces; none where it does.
    pub spared: Arc<[Violation]>,
    /// Coordinations whose layer is not there, by their place in the group's list.
    pub missing_layers: Vec<usize>,
    /// The node label of the domains of each coordination that has some, by its place in the group's list.
    pub domain_keys: Vec<(usize, String)>,
    /// Its pods.
    pub pods: GroupPods,
    /// Pods of it that are being deleted and still there.
    pub leaving: Vec<Leaving>,
    /// Pods of it that kubelets have refused.
    pub refused: Vec<NodeRefusal>,
    /// How many pods had been seen by then, of all groups.
    pub seen: u64,
    /// Workloads that are claimed for its rollouts.
    pub workloads: Vec<RolledWorkload>,
    /// Workloads that are claimed for it, as far as their scale goes.
    pub scaled: Vec<ScaledWorkload>,
    /// The time of it, as the cluster counts it; `None` where nobody has looked at a clock.
    pub now: Option<Moment>,
    /// How its namespace is served.
    pub stance: Stance,
    /// Nothing is done: its namespace has not been told of yet and may be served in any way, or another rolegate serves it.
    pub rests: bool,
    /// How long ago kinds of carriers came back that had not been served: while one is away nobody can bring a group
    /// back. Only filled in for a group that is not there.
    pub returned: Vec<(ObjectKind, Duration)>,
}

impl Snapshot {
    /// Why everything is let go that is held of it, whoever carries it.
    pub fn lets_go(&self) -> Option<LetGo> {
        self.stance.lets_go()
    }

    /// Nothing is left of the group.
    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.claims.is_none() && self.pods.is_empty() && self.workloads.is_empty()
    }
}
