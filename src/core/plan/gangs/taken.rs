use std::sync::Arc;

use crate::plan::gangs::grow::{Counts, Places, at};
use crate::plan::placement::{DomainLabel, Needs, Room, Share, place_shared};

/// The room that held pods of a PodGroup take during the search for the pods to release.
pub(super) struct Taken<'a> {
    /// The free room without these pods.
    all: &'a Room,
    /// The needs of the pods of each leaf.
    parts: &'a [Vec<Arc<Needs>>],
    /// The shares before any of these pods is placed.
    shares: &'a [Share],
    /// Node labels and values that are kept for others.
    closed: &'a [DomainLabel],
    /// The free room beside these pods; `None` before any has taken room.
    room: Option<Room>,
    /// The nodes of the first pods of each leaf.
    nodes: Vec<Vec<Arc<str>>>,
}

impl<'a> Taken<'a> {
    pub(super) fn new(
        all: &'a Room,
        parts: &'a [Vec<Arc<Needs>>],
        shares: &'a [Share],
        closed: &'a [DomainLabel],
    ) -> Self {
        Self { all, parts, shares, closed, room: None, nodes: vec![Vec::new(); parts.len()] }
    }

    pub(super) fn nodes(self) -> Vec<Vec<Arc<str>>> {
        self.nodes
    }

    /// Returns the shares as bound by the pods that have room.
    pub(super) fn shares(&self) -> Vec<Share> {
        let bound = |share: &Share| {
            let first = share.parts.iter().find_map(|part| self.nodes.get(*part)?.first());
            let domain = || Some(self.all.facts(first?)?.label(&share.key)?.to_owned());
            let (fixed, hint) = (share.fixed.clone(), share.hint.clone());
            if share.required {
                Share { fixed: fixed.or_else(domain), ..share.clone() }
            } else {
                Share { hint: domain().or(hint), ..share.clone() }
            }
        };
        self.shares.iter().map(bound).collect()
    }

    fn count(&self) -> Counts {
        self.nodes.iter().map(|nodes| u32::try_from(nodes.len()).unwrap_or(u32::MAX)).collect()
    }

    fn uid(leaf: usize, at: usize) -> String {
        format!("{leaf}/{at}")
    }
}

impl Places for Taken<'_> {
    fn take(&mut self, pods: &[u32], anew: bool) -> bool {
        let (before, shares) =
            if anew { (vec![0; pods.len()], self.shares.to_vec()) } else { (self.count(), self.shares()) };
        let wanted = |(leaf, all): (usize, &Vec<Arc<Needs>>)| {
            let number = |counts: &[u32]| usize::try_from(at(counts, leaf)).unwrap_or(usize::MAX);
            all.iter().take(number(pods)).skip(number(&before)).cloned().collect()
        };
        let parts: Vec<Vec<_>> = self.parts.iter().enumerate().map(wanted).collect();
        let room = if anew { self.all } else { self.room.as_ref().unwrap_or(self.all) };
        let Ok(places) = place_shared(room, &parts, &shares, self.closed) else { return false };
        if anew {
            self.give_back(&before);
        }
        let room = self.room.get_or_insert_with(|| self.all.clone());
        for ((leaf, nodes), needs) in self.nodes.iter_mut().enumerate().zip(&parts) {
            for (node, needs) in places.nodes.get(leaf).into_iter().flatten().zip(needs) {
                room.apply_pod(&Self::uid(leaf, nodes.len()), node, needs.load.clone(), &needs.peer);
                nodes.push(node.clone());
            }
        }
        true
    }

    fn give_back(&mut self, pods: &[u32]) {
        for (leaf, nodes) in self.nodes.iter_mut().enumerate() {
            let keep = usize::try_from(at(pods, leaf)).unwrap_or(usize::MAX);
            for position in keep..nodes.len() {
                self.room.as_mut().map(|room| room.remove_pod(&Self::uid(leaf, position)));
            }
            nodes.truncate(keep);
        }
    }
}
