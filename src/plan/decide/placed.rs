//! Where batches go that must share a domain, as it was decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::plan::decide::held::CoordinationRef;
use crate::plan::view::PodRef;

/// The domains of batches by their number.
pub(in crate::plan) type Domains = BTreeMap<u32, String>;

/// Node labels and values that a pod is bound to with its release.
pub type Pin = BTreeMap<String, String>;

/// Where batches go.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states of one machine")]
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// By coordination, by its place in the group's list: to be committed before anything is released there.
    pub domains: BTreeMap<usize, Domains>,
    /// Batches that go elsewhere than it was committed.
    pub moved: Vec<Moved>,
    /// Batches that have a domain, or had it for too long, and are not bound.
    pub waits: BTreeSet<PlacedWait>,
    /// Domains in which pods of batches got no node in time.
    pub given_up: BTreeMap<(usize, u32), GivenUp>,
    /// Those pods, where they are to be made again: deleted, if they have no node by then either.
    pub made_again: Vec<PodRef>,
    /// There are pods that are to be placed, or were and are not bound.
    pub needs_room: bool,
    /// Batches would be made if it were known what room there is.
    pub is_blind: bool,
    /// Batches are released when they have a domain: their count alone says nothing.
    pub by_domain: bool,
    /// Others are looked at first: soon it is this group's turn.
    pub is_next: bool,
}

/// A coordination, by its place in the group's list, the number of a batch, and what the batch waits for.
pub type PlacedWait = (usize, u32, Awaits);

/// What a batch that has a domain waits for. Each wait has its own deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaits {
    /// A scheduler that binds its pods.
    Node,
    /// Others, who hold pods of it by gates of their own. The scheduler's time begins when the last of these is off.
    Gates,
    /// Workloads that make its pods.
    Pods,
}

/// A domain in which pods of a batch got no node in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The domain.
    pub domain: String,
    /// Unique ids of the pods.
    pub pods: BTreeSet<Arc<str>>,
}

/// A batch that goes elsewhere than it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its coordination.
    pub coordination: CoordinationRef,
    /// Its number, from 0.
    pub index: u32,
    /// For people.
    pub message: String,
}
