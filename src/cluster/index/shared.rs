//! The index as its readers and its writers share it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::{Notify, watch};

use super::Index;

/// The index as its readers and its writers share it.
#[derive(Clone, Debug, Default)]
pub struct SharedIndex {
    index: Arc<RwLock<Index>>,
    changed: Arc<Notify>,
    synced: Arc<watch::Sender<bool>>,
}

impl SharedIndex {
    /// Looks at it.
    pub fn read(&self) -> RwLockReadGuard<'_, Index> {
        // A panic elsewhere must not take the webhook down: the index is whole between its methods.
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it and wakes the loop.
    pub fn write<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        let (result, synced) = self.write_quietly(|index| (change(index), index.is_synced()));
        self.synced.send_if_modified(|known| std::mem::replace(known, synced) != synced);
        self.changed.notify_one();
        result
    }

    /// Changes it without waking the loop: for what only the loop reads.
    pub fn write_quietly<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        change(&mut self.index.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows whether every watch has listed.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Waits for the next change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
