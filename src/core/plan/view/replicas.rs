//! Replicas of one role by ordinal, each with its pods. They are updated with each pod event and read in each pass: test
//! results are kept as bits, 64 replicas in a block, and a clone shares the blocks.

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use crate::plan::view::{HeldPod, PodFacts, PodRef, Replica, ReplicaIs, count};

/// The number of replicas in a block.
const BLOCK: u32 = u64::BITS;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// Blocks with their number, ordinal / 64, in ascending order; none is empty.
    blocks: Vec<(u32, Arc<Block>)>,
}

/// 64 replicas. Each `u64` has a bit for each replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Block {
    /// By ordinal % 64, up to the highest replica.
    slots: Vec<Option<Slot>>,
    present: u64,
    complete: u64,
    untouched: u64,
    released: u64,
    scheduled: u64,
    ready: u64,
    doubled: u64,
    /// Replicas with a pod that has the gate of rolegate.
    held: u64,
    /// Replicas with a draining pod.
    draining: u64,
    /// Replicas with an adopted pod.
    adopted: u64,
    /// Replicas with a pod that autoscalers count.
    scale_pods: u64,
    /// Replicas with a held pod whose stamp may be wrong.
    stamped: u64,
    /// The batch size on the labels of all its pods; `None` if they differ, or one has none.
    labelled: Option<u32>,
    /// Replicas with a released pod whose labels name another place in batches of that size.
    misplaced: u64,
    /// The sum over all its replicas.
    pods: PodCounts,
    /// The size of the largest replica.
    largest: u32,
    /// The creation time of its youngest pod.
    newest: Option<Arc<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slot {
    counted: Replica,
    /// In ascending order of name.
    pods: Vec<Arc<PodFacts>>,
}

/// Counts over several replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Replicas with at least one pod.
    pub replicas: u32,
    /// Pods of complete replicas.
    pub size: u32,
    /// Ready pods, at most the size of each replica.
    pub ready: u32,
    /// Pods with the gate of rolegate.
    pub held: u32,
}

impl Replicas {
    pub fn add(&mut self, pod: &Arc<PodFacts>, ordinal: u32) {
        self.change(ordinal, |pods| {
            let place = pods.partition_point(|other| other.pod < pod.pod);
            pods.insert(place, pod.clone());
        });
    }

    pub fn remove(&mut self, pod: &PodRef, ordinal: u32) {
        self.change(ordinal, |pods| pods.retain(|other| other.pod != *pod));
    }

    fn change(&mut self, ordinal: u32, change: impl FnOnce(&mut Vec<Arc<PodFacts>>)) {
        let number = ordinal / BLOCK;
        let place = self.place(number).unwrap_or_else(|place| {
            self.blocks.insert(place, (number, Arc::default()));
            place
        });
        let Some((_, block)) = self.blocks.get_mut(place) else { return };
        let changed = Arc::make_mut(block);
        changed.change(ordinal, change);
        if changed.present == 0 {
            self.blocks.remove(place);
        }
    }

    pub fn get(&self, ordinal: u32) -> Option<&Replica> {
        Some(&self.slot(ordinal)?.counted)
    }

    /// Returns the pods of this replica.
    pub fn pods_of(&self, ordinal: u32) -> &[Arc<PodFacts>] {
        self.slot(ordinal).map(|slot| slot.pods.as_slice()).unwrap_or_default()
    }

    /// Reports whether the pods of a replica lack the label of their group: they were never held.
    pub fn runs_unlabelled(&self, ordinal: u32) -> bool {
        let pods = self.pods_of(ordinal);
        !pods.is_empty() && pods.iter().all(|pod| pod.adopted)
    }

    fn slot(&self, ordinal: u32) -> Option<&Slot> {
        let (_, block) = self.blocks.get(self.place(ordinal / BLOCK).ok()?)?;
        block.slot(ordinal % BLOCK)
    }

    /// Returns the position of a block, or where it would be. Ordinals have few gaps.
    fn place(&self, number: u32) -> Result<usize, usize> {
        let guess = usize::try_from(number).unwrap_or(usize::MAX);
        match self.blocks.get(guess) {
            Some((found, _)) if *found == number => Ok(guess),
            _ => self.blocks.binary_search_by_key(&number, |(number, _)| *number),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the highest ordinal plus one, saturated; 0 without replicas.
    pub fn end(&self) -> u32 {
        let end = |(number, block): &(u32, Arc<Block>)| {
            number.saturating_mul(BLOCK).saturating_add(BLOCK - block.present.leading_zeros())
        };
        self.blocks.last().map_or(0, end)
    }

    /// Returns the number of replicas up to the highest one with a ready pod.
    pub fn end_of_ready(&self) -> u32 {
        let top = self.blocks.iter().rev().find(|(_, block)| block.pods.ready > 0);
        let is_ready = |slot: &Option<Slot>| slot.as_ref().is_some_and(|slot| slot.counted.ready > 0);
        let end = |(number, block): &(u32, Arc<Block>)| {
            let within = block.slots.iter().rposition(is_ready).map_or(0, |offset| count(offset + 1));
            number.saturating_mul(BLOCK).saturating_add(within)
        };
        top.map_or(0, end)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Replica)> {
        self.slots(.., |block| block.present).map(|(ordinal, slot)| (ordinal, &slot.counted))
    }

    /// Iterates over all pods, each with its ordinal.
    pub fn pods(&self) -> impl Iterator<Item = (u32, &Arc<PodFacts>)> {
        self.pods_where(.., |block| block.present)
    }

    /// Iterates over the held pods of these replicas, lowest ordinal first.
    pub fn held(&self, ordinals: impl RangeBounds<u32>) -> impl Iterator<Item = HeldPod> {
        let pods = self.pods_where(ordinals, |block| block.held);
        pods.filter(|(_, pod)| pod.held).map(|(ordinal, pod)| HeldPod { facts: pod.clone(), ordinal })
    }

    /// Iterates over the draining pods of these replicas.
    pub fn draining(&self, ordinals: impl RangeBounds<u32>) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.pods_where(ordinals, |block| block.draining).map(|(_, pod)| pod).filter(|pod| pod.draining)
    }

    /// Iterates over the released pods whose labels do not name their place, in batches of this size.
    pub fn misplaced(&self, size: u32) -> impl Iterator<Item = (u32, &Arc<PodFacts>)> {
        let pods = self.pods_where(.., move |block| block.may_be_misplaced(size));
        pods.filter(move |(ordinal, pod)| !pod.held && !pod.is_labelled_as(size, *ordinal))
    }

    /// Iterates over the released pods without a node.
    pub fn unbound(&self) -> impl Iterator<Item = (u32, &Arc<PodFacts>)> {
        let pods = self.pods_where(.., |block| block.present & !block.scheduled & !block.untouched);
        pods.filter(|(_, pod)| !pod.held && !pod.scheduled)
    }

    /// Iterates over the released pods of these replicas.
    pub fn let_go(&self, ordinals: impl RangeBounds<u32>) -> impl Iterator<Item = &Arc<PodFacts>> {
        let pods = self.pods_where(ordinals, |block| block.present & !block.untouched);
        pods.map(|(_, pod)| pod).filter(|pod| !pod.held)
    }

    /// Iterates over the released pods with a segment label.
    pub fn labelled(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        let says = |pod: &&Arc<PodFacts>| !pod.held && pod.labelled.is_some_and(|place| place.segment != u32::MAX);
        self.pods_where(.., |block| block.present).map(|(_, pod)| pod).filter(says)
    }

    /// Iterates over the pods that autoscalers count.
    pub fn scale_pods(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.pods_where(.., |block| block.scale_pods).map(|(_, pod)| pod).filter(|pod| pod.scale_pod)
    }

    /// Iterates over the pods of replicas from this ordinal on.
    pub fn pods_from(&self, first: u32) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.pods_where(first.., |block| block.present).map(|(_, pod)| pod)
    }

    /// Reports whether any pod is adopted.
    pub fn has_adopted(&self) -> bool {
        self.blocks.iter().any(|(_, block)| block.adopted != 0)
    }

    /// Reports whether the stamp of any held pod may be wrong.
    pub fn has_stamped(&self) -> bool {
        self.blocks.iter().any(|(_, block)| block.stamped != 0)
    }

    /// Counts the replicas of these ordinals that pass the test.
    pub fn count_in(&self, ordinals: impl RangeBounds<u32>, what: ReplicaIs) -> u32 {
        self.parts(ordinals).map(|(_, block, mask)| (block.that_are(what) & mask).count_ones()).sum()
    }

    /// Reports whether each existing replica of these ordinals passes the test.
    pub fn none_but(&self, ordinals: impl RangeBounds<u32>, what: ReplicaIs) -> bool {
        self.parts(ordinals).all(|(_, block, mask)| block.present & mask & !block.that_are(what) == 0)
    }

    /// Returns the lowest ordinal below `bound` whose replica is missing or fails the test; `None` if all pass.
    pub fn first_failing(&self, bound: u32, what: ReplicaIs) -> Option<u32> {
        let mut next = 0;
        for (number, block) in &self.blocks {
            if number.saturating_mul(BLOCK) != next {
                break;
            }
            let passing = block.that_are(what).trailing_ones();
            next = next.saturating_add(passing);
            if passing < BLOCK {
                break;
            }
        }
        (next < bound).then_some(next)
    }

    /// Returns the counts over these replicas.
    pub fn pods_in(&self, ordinals: impl RangeBounds<u32>) -> PodCounts {
        let counted = self.parts(ordinals).map(|(_, block, mask)| block.pods_in(mask));
        counted.fold(PodCounts::default(), PodCounts::and)
    }

    /// Returns the number of pods of the largest replica; `None` without pods.
    pub fn largest(&self) -> Option<u32> {
        self.blocks.iter().map(|(_, block)| block.largest).max()
    }

    /// Returns the creation time of the youngest pod, RFC 3339.
    pub fn newest(&self) -> Option<&Arc<str>> {
        self.blocks.iter().filter_map(|(_, block)| block.newest.as_ref()).max()
    }

    fn pods_where(
        &self,
        ordinals: impl RangeBounds<u32>,
        which: impl Fn(&Block) -> u64,
    ) -> impl Iterator<Item = (u32, &Arc<PodFacts>)> {
        let slots = self.slots(ordinals, which);
        slots.flat_map(|(ordinal, slot)| slot.pods.iter().map(move |pod| (ordinal, pod)))
    }

    fn slots(
        &self,
        ordinals: impl RangeBounds<u32>,
        which: impl Fn(&Block) -> u64,
    ) -> impl Iterator<Item = (u32, &Slot)> {
        self.parts(ordinals).flat_map(move |(first, block, mask)| {
            let slot = move |offset: u32| Some((first + offset, block.slot(offset)?));
            ones(which(block) & mask).filter_map(slot)
        })
    }

    /// Returns the blocks with any of these ordinals: the first ordinal, the block, and the mask of its selected replicas.
    fn parts(&self, ordinals: impl RangeBounds<u32>) -> impl Iterator<Item = (u32, &Block, u64)> {
        let ordinals = half_open(&ordinals);
        let from = u32::try_from(ordinals.start / u64::from(BLOCK)).unwrap_or(u32::MAX);
        let from = self.place(from).unwrap_or_else(|place| place);
        let blocks = self.blocks.get(from..).unwrap_or_default().iter().map(|(number, block)| (number * BLOCK, block));
        let blocks = blocks.take_while(move |(first, _)| u64::from(*first) < ordinals.end);
        blocks.map(move |(first, block)| (first, &**block, mask(first, &ordinals)))
    }
}

impl Block {
    fn slot(&self, offset: u32) -> Option<&Slot> {
        self.slots.get(usize::try_from(offset).ok()?)?.as_ref()
    }

    fn change(&mut self, ordinal: u32, change: impl FnOnce(&mut Vec<Arc<PodFacts>>)) {
        let offset = ordinal % BLOCK;
        let index = usize::try_from(offset).unwrap_or_default();
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Option::default);
        }
        let mut slot = self.slots.get_mut(index).and_then(Option::take).unwrap_or_default();
        change(&mut slot.pods);
        slot.counted = counted(&slot.pods);
        let slot = Some(slot).filter(|slot| !slot.pods.is_empty());
        self.note(1 << offset, slot.as_ref());
        if let Some(place) = self.slots.get_mut(index) {
            *place = slot;
        }
        while self.slots.pop_if(|last| last.is_none()).is_some() {}
        let slots = || self.slots.iter().flatten();
        self.pods = slots().map(|slot| PodCounts::of(&slot.counted)).fold(PodCounts::default(), PodCounts::and);
        self.largest = slots().map(|slot| slot.counted.size).max().unwrap_or_default();
        self.newest = slots().flat_map(|slot| &slot.pods).filter_map(|pod| pod.created.as_ref()).max().cloned();
        self.note_labels(ordinal - offset);
    }

    /// Sets the bits of a replica.
    fn note(&mut self, bit: u64, slot: Option<&Slot>) {
        let is = |what: ReplicaIs| slot.is_some_and(|slot| what.holds(&slot.counted));
        let of_pods = |test: fn(&PodFacts) -> bool| slot.is_some_and(|slot| slot.pods.iter().any(|pod| test(pod)));
        let now = [
            (slot.is_some(), &mut self.present),
            (is(ReplicaIs::Complete), &mut self.complete),
            (is(ReplicaIs::Untouched), &mut self.untouched),
            (is(ReplicaIs::Released), &mut self.released),
            (is(ReplicaIs::Scheduled), &mut self.scheduled),
            (is(ReplicaIs::Ready), &mut self.ready),
            (is(ReplicaIs::Doubled), &mut self.doubled),
            (of_pods(|pod| pod.held), &mut self.held),
            (of_pods(|pod| pod.draining), &mut self.draining),
            (of_pods(|pod| pod.adopted), &mut self.adopted),
            (of_pods(|pod| pod.scale_pod), &mut self.scale_pods),
            (of_pods(|pod| pod.held && pod.stamp.may_be_wrong()), &mut self.stamped),
        ];
        for (is_so, bits) in now {
            *bits = if is_so { *bits | bit } else { *bits & !bit };
        }
    }

    /// Updates the fields on labels; `first` is the first ordinal of the block.
    fn note_labels(&mut self, first: u32) {
        let pods = || self.slots.iter().flatten().flat_map(|slot| &slot.pods);
        let mut sizes = pods().map(|pod| pod.labelled.map(|place| place.size));
        let size = sizes.next().flatten().filter(|size| sizes.all(|other| other == Some(*size)));
        let bit = |(offset, slot): (u32, &Option<Slot>)| {
            let pods = slot.as_ref().map(|slot| slot.pods.as_slice()).unwrap_or_default();
            let of_size = |size| pods.iter().any(|pod| !pod.held && !pod.is_labelled_as(size, first | offset));
            u64::from(size.is_some_and(of_size)) << offset
        };
        (self.labelled, self.misplaced) = (size, (0..BLOCK).zip(&self.slots).map(bit).sum());
    }

    /// Returns a superset of the replicas with a released pod whose labels name another place in batches of this size.
    fn may_be_misplaced(&self, size: u32) -> u64 {
        if self.labelled == Some(size) { self.misplaced } else { self.present }
    }

    fn that_are(&self, what: ReplicaIs) -> u64 {
        match what {
            ReplicaIs::Complete => self.complete,
            ReplicaIs::Untouched => self.untouched,
            ReplicaIs::Released => self.released,
            ReplicaIs::Scheduled => self.scheduled,
            ReplicaIs::Ready => self.ready,
            ReplicaIs::Doubled => self.doubled,
        }
    }

    fn pods_in(&self, mask: u64) -> PodCounts {
        if self.present & !mask == 0 {
            return self.pods;
        }
        let counted = ones(self.present & mask).filter_map(|offset| Some(PodCounts::of(&self.slot(offset)?.counted)));
        counted.fold(PodCounts::default(), PodCounts::and)
    }
}

impl PodCounts {
    fn of(replica: &Replica) -> Self {
        let Replica { size, ready, held, .. } = *replica;
        Self { replicas: 1, size, ready: ready.min(size), held }
    }

    fn and(self, other: Self) -> Self {
        Self {
            replicas: self.replicas.saturating_add(other.replicas),
            size: self.size.saturating_add(other.size),
            ready: self.ready.saturating_add(other.ready),
            held: self.held.saturating_add(other.held),
        }
    }
}

fn counted(pods: &[Arc<PodFacts>]) -> Replica {
    let of = |test: fn(&PodFacts) -> bool| count(pods.iter().filter(|pod| test(pod)).count());
    let size = pods.iter().map(|pod| pod.identity.replica_size).max().unwrap_or_default();
    Replica {
        pods: count(pods.len()),
        held: of(|pod| pod.held),
        scheduled: of(|pod| pod.scheduled),
        ready: of(|pod| pod.ready),
        size,
        made_at_once: pods.iter().any(|pod| pod.identity.made_at_once),
        // Only a replica with surplus pods needs the search.
        doubled: count(pods.len()) > size && shares_a_place(pods),
    }
}

/// Reports whether two pods of a replica have the same place; pods without a place do not count.
fn shares_a_place(pods: &[Arc<PodFacts>]) -> bool {
    let mut places: Vec<_> = pods.iter().filter_map(|pod| pod.identity.member).collect();
    places.sort_unstable();
    places.windows(2).any(|two| two.first() == two.last())
}

/// Returns a half-open range in 64 bits, since the highest ordinal has no successor in 32.
fn half_open(ordinals: &impl RangeBounds<u32>) -> Range<u64> {
    let start = match ordinals.start_bound() {
        Bound::Included(start) => u64::from(*start),
        Bound::Excluded(before) => u64::from(*before) + 1,
        Bound::Unbounded => 0,
    };
    let end = match ordinals.end_bound() {
        Bound::Included(last) => u64::from(*last) + 1,
        Bound::Excluded(end) => u64::from(*end),
        Bound::Unbounded => u64::from(u32::MAX) + 1,
    };
    start..end
}

/// Returns the mask of the selected replicas in the block that begins with `first`.
fn mask(first: u32, ordinals: &Range<u64>) -> u64 {
    let below = |bound: u64| match bound.saturating_sub(u64::from(first)) {
        all if all >= u64::from(BLOCK) => u64::MAX,
        some => (1 << some) - 1,
    };
    below(ordinals.end) & !below(ordinals.start)
}

/// Iterates over the positions of the set bits, lowest first.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros();
        bits &= bits.checked_sub(1)?;
        Some(lowest)
    })
}

#[cfg(test)]
#[path = "replicas_tests.rs"]
mod tests;
