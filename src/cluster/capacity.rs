//! What is known of nodes and pods for placing, as the loop and its watches share it. It is known only while somebody wants it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::plan::Sight;
use crate::plan::placement::Capacity;

/// What is known of nodes and pods, as its reader and its writers share it.
#[derive(Clone, Debug, Default)]
pub struct SharedCapacity {
    known: Arc<Mutex<Known>>,
    changed: Arc<Notify>,
    wish: Arc<watch::Sender<Wish>>,
    /// Whether there is an answer: all is listed, or may not be read.
    answers: Arc<watch::Sender<bool>>,
    /// Whether a pod that is to be placed has claims.
    claims: Arc<watch::Sender<bool>>,
}

/// Who wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Something is to be placed.
    pub to_place: bool,
    /// How often it was asked for once.
    pub asked: u64,
}

/// What is known of nodes and pods.
#[derive(Debug, Default)]
pub struct Known {
    /// Their room.
    pub capacity: Capacity,
    /// All nodes were listed.
    pub nodes_listed: bool,
    /// All pods were listed.
    pub pods_listed: bool,
    /// Why they may not be read.
    pub refused: Option<String>,
}

impl Known {
    fn is_listed(&self) -> bool {
        self.nodes_listed && self.pods_listed
    }
}

impl SharedCapacity {
    /// Looks at it, and takes what is placed.
    pub fn look<R>(&self, look: impl FnOnce(Sight<'_>) -> R) -> R {
        let known = &mut *self.lock();
        look(match &known.refused {
            Some(why) => Sight::Refused(why),
            None if known.is_listed() => Sight::Known(&mut known.capacity),
            None => Sight::NotYet,
        })
    }

    /// [`Capacity::freed`]
    pub fn freed(&self) -> u64 {
        self.lock().capacity.freed()
    }

    /// How many entries each of its maps has.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        self.lock().capacity.sizes().collect()
    }

    /// Changes it and wakes the loop.
    pub fn write(&self, change: impl FnOnce(&mut Known)) {
        let (answers, claims) = {
            let mut known = self.lock();
            change(&mut known);
            (known.refused.is_some() || known.is_listed(), known.capacity.has_claims())
        };
        self.claims.send_if_modified(|before| std::mem::replace(before, claims) != claims);
        self.answers.send_if_modified(|before| std::mem::replace(before, answers) != answers);
        self.changed.notify_one();
    }

    /// Waits for the next change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Says whether anything is to be placed.
    pub fn want(&self, to_place: bool) {
        self.wish.send_if_modified(|wish| std::mem::replace(&mut wish.to_place, to_place) != to_place);
    }

    /// Asks for it once: it is known soon, and for some time.
    pub fn ask(&self) {
        self.wish.send_modify(|wish| wish.asked += 1);
    }

    /// Waits until it is known, or known that it may not be read.
    pub async fn listed(&self) {
        // Its sender is here.
        _ = self.answers.subscribe().wait_for(|answers| *answers).await;
    }

    /// Waits until a pod that is to be placed has claims.
    pub async fn claims_asked(&self) {
        // Its sender is here.
        _ = self.claims.subscribe().wait_for(|claims| *claims).await;
    }

    /// Follows who wants it.
    pub fn wishes(&self) -> watch::Receiver<Wish> {
        self.wish.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // It is whole between its methods.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
