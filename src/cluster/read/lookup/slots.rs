//! One live read for all concurrent callers with the same key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::cluster::locked::locked;

/// Time for which a result is reused. Hundreds of pods of one new workload ask together; an absent group is read once for
/// them.
const YOUNG_FOR: Duration = Duration::from_millis(500);
/// Number of slots below which old ones are not dropped.
const FEW: usize = 64;

/// The last result of one key. The lock is held during a read, so that other callers wait for its result.
type Slot<V> = tokio::sync::Mutex<Option<RecentRead<V>>>;

/// A successful read.
#[derive(Debug)]
struct RecentRead<V> {
    /// When the read began. It knows nothing of later changes.
    began: Instant,
    found: V,
}

impl<V> RecentRead<V> {
    fn is_young(&self) -> bool {
        self.began.elapsed() < YOUNG_FOR
    }

    fn is(&self, fresh: Fresh) -> bool {
        match fresh {
            Fresh::Young => self.is_young(),
            Fresh::Since(asked) => self.began >= asked,
        }
    }
}

/// How recent a result must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fresh {
    /// Recent enough for callers that do not need the latest state.
    Young,
    /// Of a read that began at this time or later.
    Since(Instant),
}

impl Fresh {
    pub(super) fn now() -> Self {
        Self::Since(Instant::now())
    }
}

/// Live reads by key, one at a time for each key. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Slots<K, V = ()> {
    kept: Arc<Mutex<Kept<K, V>>>,
    /// Limit of concurrent reads of all keys.
    budget: Arc<Semaphore>,
}

#[derive(Debug)]
struct Kept<K, V> {
    slots: HashMap<K, Arc<Slot<V>>>,
    /// Number of slots at which old ones are dropped: twice the number left by the last cleanup, so that each slot is checked
    /// about twice.
    most: usize,
}

impl<K: Eq + Hash, V: Clone> Slots<K, V> {
    /// Returns slots of which so many keys are read at a time.
    pub(super) fn new(at_a_time: usize) -> Self {
        let kept = Kept { slots: HashMap::new(), most: FEW };
        Self { kept: Arc::new(Mutex::new(kept)), budget: Arc::new(Semaphore::new(at_a_time)) }
    }

    /// Returns what is `known`, else the result of the last read if it is fresh enough, else that of `read`. Concurrent
    /// callers wait for the read, and then check both again. A failure of `read` is not remembered.
    pub(super) async fn once<E>(
        &self,
        key: K,
        fresh: Fresh,
        known: impl FnOnce() -> Option<V>,
        read: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        let slot = locked(&self.kept).slot(key);
        let mut last = slot.lock().await;
        let enough = known().or_else(|| Some(last.as_ref().filter(|last| last.is(fresh))?.found.clone()));
        if let Some(found) = enough {
            return Ok(found);
        }
        // The semaphore is never closed.
        let _turn = self.budget.acquire().await;
        let began = Instant::now();
        let found = read.await?;
        *last = Some(RecentRead { began, found: found.clone() });
        Ok(found)
    }

    /// Returns the number of keys whose last read is remembered.
    pub(super) fn remembered(&self) -> usize {
        let mut kept = locked(&self.kept);
        kept.forget_old();
        kept.slots.len()
    }
}

impl<K: Eq + Hash, V> Kept<K, V> {
    fn slot(&mut self, key: K) -> Arc<Slot<V>> {
        if self.slots.len() >= self.most {
            self.forget_old();
        }
        self.slots.entry(key).or_default().clone()
    }

    /// Drops slots without a waiter whose last read is old.
    fn forget_old(&mut self) {
        let is_young = |last: &Option<RecentRead<V>>| last.as_ref().is_some_and(RecentRead::is_young);
        self.slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|last| is_young(&last)));
        self.most = 2 * self.slots.len().max(FEW / 2);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    const READ: Duration = Duration::from_millis(10);

    fn slots() -> Slots<usize, usize> {
        Slots::new(2)
    }

    /// Asks for a result since `asked`; a read returns the number of reads so far.
    async fn since(slots: &Slots<usize, usize>, key: usize, asked: Instant, reads: &AtomicUsize) -> usize {
        let read = async {
            tokio::time::sleep(READ).await;
            Ok::<_, Infallible>(reads.fetch_add(1, Ordering::Relaxed) + 1)
        };
        slots.once(key, Fresh::Since(asked), || None, read).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_together_waits_for_one_read_and_who_asks_later_for_one_that_knows_it() {
        let (slots, reads, asked) = (slots(), AtomicUsize::new(0), Instant::now());
        let together = join_all((0..1000).map(|_| since(&slots, 7, asked, &reads)));
        let later = async {
            tokio::time::sleep(READ / 2).await;
            let asked = Instant::now();
            join_all((0..1000).map(|_| since(&slots, 7, asked, &reads))).await
        };
        let (together, later) = tokio::join!(together, later);
        assert!(together.iter().all(|found| *found == 1) && later.iter().all(|found| *found == 2));
        assert_eq!(asked.elapsed(), 2 * READ);
    }

    #[tokio::test(start_paused = true)]
    async fn different_things_are_read_beside_each_other_as_many_as_the_budget_allows() {
        let (slots, reads, asked) = (slots(), AtomicUsize::new(0), Instant::now());
        join_all((0..10).map(|key| since(&slots, key, asked, &reads))).await;
        assert_eq!(asked.elapsed(), 5 * READ);
    }

    #[tokio::test]
    async fn a_read_that_fails_is_not_remembered() {
        let slots = slots();
        assert_eq!(slots.once(1, Fresh::Young, || None, async { Err("gone") }).await, Err("gone"));
        assert_eq!(slots.once(1, Fresh::Young, || None, async { Ok::<_, &str>(3) }).await, Ok(3));
        assert_eq!(slots.once(1, Fresh::Young, || None, async { Err("gone") }).await, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_leaves_the_read_to_the_next() {
        let (slots, reads, asked) = (slots(), AtomicUsize::new(0), Instant::now());
        assert!(tokio::time::timeout(READ / 2, since(&slots, 1, asked, &reads)).await.is_err());
        assert_eq!(since(&slots, 1, asked, &reads).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_thousand_names_are_forgotten_as_they_grow_old() {
        let (slots, reads) = (slots(), AtomicUsize::new(0));
        for key in 0..100_000 {
            since(&slots, key, Instant::now(), &reads).await;
            // A read takes 10 ms: no more than 50 are young.
            assert!(locked(&slots.kept).slots.len() <= 2 * FEW, "{key}");
        }
        tokio::time::advance(YOUNG_FOR).await;
        assert_eq!(slots.remembered(), 0);
    }
}
