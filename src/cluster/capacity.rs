//! The room of nodes and the pods that take it, shared by the loop and its watches. It is filled only while a reader wants
//! it.

use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use crate::cluster::locked::{locked, tell};
use crate::model::IgnoredResources;
use crate::plan::Sight;
use crate::plan::placement::Capacity;

/// Nodes and pods for placement, shared by the loop that reads them and the watches that write them. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct SharedCapacity {
    known: Arc<Mutex<KnownCapacity>>,
    changed: Arc<Notify>,
    wish: Arc<watch::Sender<Wish>>,
    /// True once nodes and pods are listed, or the API server has refused to list them.
    answers: Arc<watch::Sender<bool>>,
    /// True while a pod to be placed has volume claims.
    claims: Arc<watch::Sender<bool>>,
    /// True while a pod to be placed may ask for devices.
    devices: Arc<watch::Sender<bool>>,
}

/// The reasons to watch nodes and pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The loop has pods to place.
    pub to_place: bool,
    /// Number of calls of [`SharedCapacity::ask`] so far.
    pub asked: u64,
}

#[derive(Debug, Default)]
pub struct KnownCapacity {
    pub capacity: Capacity,
    pub nodes_listed: bool,
    pub pods_listed: bool,
    /// Reason for which nodes and pods may not be read.
    pub refused: Option<String>,
}

impl KnownCapacity {
    /// Returns a state in which nothing is known, where these resources need not be on a node.
    pub fn ignoring(ignored: IgnoredResources) -> Self {
        Self { capacity: Capacity::ignoring(ignored), ..Self::default() }
    }

    fn is_listed(&self) -> bool {
        self.nodes_listed && self.pods_listed
    }
}

impl SharedCapacity {
    /// Returns a capacity of which nothing is known, where these resources need not be on a node.
    pub fn ignoring(ignored: IgnoredResources) -> Self {
        Self { known: Arc::new(Mutex::new(KnownCapacity::ignoring(ignored))), ..Self::default() }
    }

    /// Passes the current sight of the capacity to `look`, which may take room in it.
    pub fn look<R>(&self, look: impl FnOnce(Sight<'_>) -> R) -> R {
        let known = &mut *locked(&self.known);
        let result = look(match &known.refused {
            Some(why) => Sight::Refused(why),
            None if known.is_listed() => Sight::Known(&mut known.capacity),
            None => Sight::NotYet,
        });
        tell(&self.devices, known.capacity.asks_for_devices());
        result
    }

    /// Returns [`Capacity::freed`].
    pub fn freed(&self) -> u64 {
        locked(&self.known).capacity.freed()
    }

    /// Reports whether nodes and pods are listed.
    pub fn is_listed(&self) -> bool {
        locked(&self.known).is_listed()
    }

    /// Returns the resources that need not be on a node.
    pub fn ignored(&self) -> IgnoredResources {
        locked(&self.known).capacity.room().ignored
    }

    /// Returns the number of entries of each map.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        locked(&self.known).capacity.sizes().collect()
    }

    /// Changes the capacity and wakes the loop.
    pub fn write(&self, change: impl FnOnce(&mut KnownCapacity)) {
        let mut known = locked(&self.known);
        change(&mut known);
        tell(&self.devices, known.capacity.asks_for_devices());
        tell(&self.claims, known.capacity.has_claims());
        tell(&self.answers, known.refused.is_some() || known.is_listed());
        self.changed.notify_one();
    }

    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Sets whether anything is to be placed.
    pub fn want(&self, to_place: bool) {
        self.wish.send_if_modified(|wish| std::mem::replace(&mut wish.to_place, to_place) != to_place);
    }

    /// Asks for the capacity once: the watches begin, and stay open for some time.
    pub fn ask(&self) {
        self.wish.send_modify(|wish| wish.asked += 1);
    }

    /// Waits until nodes and pods are listed, or known to be unreadable.
    pub async fn listed(&self) {
        // An error is impossible: `self` holds the sender.
        _ = self.answers.subscribe().wait_for(|answers| *answers).await;
    }

    /// Waits until a pod to be placed has volume claims.
    pub async fn claims_asked(&self) {
        // An error is impossible: `self` holds the sender.
        _ = self.claims.subscribe().wait_for(|claims| *claims).await;
    }

    /// Waits until a pod to be placed may ask for devices.
    pub async fn devices_asked(&self) {
        // An error is impossible: `self` holds the sender.
        _ = self.devices.subscribe().wait_for(|devices| *devices).await;
    }

    pub fn wishes(&self) -> watch::Receiver<Wish> {
        self.wish.subscribe()
    }
}
