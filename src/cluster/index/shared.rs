//! The index shared by its readers and writers.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::{Notify, watch};

use super::Index;

#[derive(Clone, Debug, Default)]
pub struct SharedIndex {
    index: Arc<RwLock<Index>>,
    changed: Arc<Notify>,
    synced: Arc<watch::Sender<bool>>,
}

impl SharedIndex {
    pub fn read(&self) -> RwLockReadGuard<'_, Index> {
        // A panic elsewhere must not take the webhook down: the index is whole between its methods.
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the index and wakes the loop.
    pub fn write<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        let (result, synced) = self.write_quietly(|index| (change(index), index.is_synced()));
        self.synced.send_if_modified(|known| std::mem::replace(known, synced) != synced);
        self.changed.notify_one();
        result
    }

    /// Changes data that only the loop reads, without waking it.
    pub fn write_quietly<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        change(&mut self.index.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a receiver that holds true while every watch has listed.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
