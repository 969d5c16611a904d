//! The decided domains of batches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::batching::CLUSTER_KEY;
use crate::model::names::HOSTNAME;
use crate::plan::decide::held::CoordinationRef;
use crate::plan::provision::NoRoom;
use crate::plan::recovery::BatchId;
use crate::plan::view::PodRef;

pub(in crate::plan) type Domains = BTreeMap<u32, String>;

/// The node labels and values that a pod is bound to with its release.
pub type Pin = BTreeMap<String, String>;

/// Returns the labels that bind a pod to a domain, and to a node of it if the domain alone is not enough.
pub(super) fn pin(key: &str, domain: &str, host: Option<String>) -> Pin {
    let host = host.map(|host| (HOSTNAME.to_owned(), host));
    let domain = (key != CLUSTER_KEY).then(|| (key.to_owned(), domain.to_owned()));
    domain.into_iter().chain(host).collect()
}

/// The decided domains, and what follows from them.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states of one machine")]
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// The domains by coordination, as position in the list of the group: committed before any pod is released there.
    pub domains: BTreeMap<usize, Domains>,
    /// Batches of which nothing runs, that had a place, and for which there is no room any more.
    pub displaced: BTreeSet<BatchId>,
    /// Batches without room for which nodes may be requested.
    pub no_room: BTreeMap<BatchId, NoRoom>,
    /// Batches that leave their committed domain.
    pub moved: Vec<Moved>,
    /// Batches that have a domain, or had it for too long, and are not bound.
    pub waits: BTreeSet<PlacedWait>,
    /// Domains in which pods of batches got no node in time.
    pub given_up: BTreeMap<(usize, u32), GivenUp>,
    /// Nodes that the scheduler refuses to pods without a node.
    pub turned_down: Vec<Refused>,
    /// Batches to be recreated as a whole: some of their pods have no room in their domain, and another one has room for all.
    pub moves: BTreeSet<BatchId>,
    /// Such pods that should be recreated: they are deleted if they still have no node.
    pub made_again: Vec<PodRef>,
    /// A pod that runs in another domain than its batch, and is made again there.
    pub stray: Option<PodRef>,
    /// Whether pods are to be placed, or are placed and not bound.
    pub needs_room: bool,
    /// What batches that go as a whole went without.
    pub unjudged: Unjudged,
    /// Whether batches would be created if the room were known.
    pub is_blind: bool,
    /// Whether batches need a domain to be released: their count alone does not decide.
    pub by_domain: bool,
    /// Whether other groups are looked at before this one, whose turn comes soon.
    pub is_next: bool,
}

/// What placed batches went without a look at, or that they went without a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unjudged {
    #[default]
    Nothing,
    /// Nodes are not watched now: what was told before stays.
    NotKnown,
    Told(String),
}

/// A coordination, as position in the list of the group, the number of a batch, and the event that the batch waits for.
pub type PlacedWait = (usize, u32, Awaits);

/// The event that a placed batch waits for. Each wait has its own deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaits {
    /// A scheduler binds the pods.
    Node,
    /// Another controller removes its scheduling gates. The time of the scheduler begins when the last of them is removed.
    Gates,
    /// Workloads create the pods.
    Pods,
}

/// A domain in which pods of a batch got no node in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    pub domain: String,
    /// The uids of these pods.
    pub pods: BTreeSet<Arc<str>>,
}

/// Nodes that pods of a batch were refused, and which it avoids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub batch: BatchId,
    /// A placed pod to which the scheduler refuses them, while they have room for it as far as is modelled; `None` if kubelets refuse
    /// pods.
    pub pod: Option<PodRef>,
    /// What the scheduler says.
    pub why: Arc<str>,
    /// The nodes, each with its state at that time if another one ends it.
    pub nodes: BTreeMap<Arc<str>, Option<u64>>,
}

/// A batch that leaves its committed domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub coordination: CoordinationRef,
    /// The number of the batch, from 0.
    pub index: u32,
    pub message: String,
}
