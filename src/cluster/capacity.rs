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
    wanted: Arc<watch::Sender<bool>>,
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

impl SharedCapacity {
    /// Looks at it, and takes what is placed.
    pub fn look<R>(&self, look: impl FnOnce(Sight<'_>) -> R) -> R {
        let known = &mut *self.lock();
        look(match &known.refused {
            Some(why) => Sight::Refused(why),
            None if known.nodes_listed && known.pods_listed => Sight::Known(&mut known.capacity),
            None => Sight::NotYet,
        })
    }

    /// [`Capacity::freed`]
    pub fn freed(&self) -> u64 {
        self.lock().capacity.freed()
    }

    /// Changes it and wakes the loop.
    pub fn write(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    /// Waits for the next change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Says whether anything is to be placed.
    pub fn want(&self, wanted: bool) {
        self.wanted.send_if_modified(|known| std::mem::replace(known, wanted) != wanted);
    }

    /// Follows whether anything is to be placed.
    pub fn wanted(&self) -> watch::Receiver<bool> {
        self.wanted.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // It is whole between its methods.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
