//! Batches that have lost their place, and batches that share replicas with one without a place.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::api::status::CoordinationState;
use crate::model::{Batching, Coordination, Group, HoldReason};
use crate::plan::decide::decision::Release;
use crate::plan::decide::held::Held;
use crate::plan::decide::placed::Placed;
use crate::plan::decide::together::{going_with, is_untouched, waits_text};
use crate::plan::placement::Placer;
use crate::plan::recovery::BatchId;
use crate::plan::rollout::Rollouts;
use crate::plan::view::{GroupView, HeldPod};

/// Keeps the pods of batches that share replicas with one without a place, and gives their room back: no part of them goes.
pub(super) fn stay_together(
    group: &Group,
    view: &GroupView,
    release: &mut Vec<Release>,
    (held, given): (&mut Vec<Held>, &mut Placed),
    (committed, mut placer): (&BTreeMap<usize, BTreeMap<u32, String>>, Option<&mut Placer<'_>>),
) {
    if group.batched().nth(1).is_none() {
        return;
    }
    let mut kept: BTreeMap<BatchId, (usize, Vec<HeldPod>)> = BTreeMap::new();
    for held in held.iter().filter(|held| !held.pods.is_empty()) {
        let Some(first) = held.coordination.as_ref().map(|of| of.index) else { continue };
        let Some(own) = group.coordination(first).and_then(Coordination::batching) else { continue };
        let batches: BTreeSet<_> =
            held.pods.each(view).filter_map(|pod| own.batch_of(pod.role(), pod.ordinal)).collect();
        let with = |batch| going_with(group, view, (first, batch)).into_iter().skip(1);
        for (index, batch) in batches.into_iter().flat_map(with) {
            let Some(batching) = group.coordination(index).and_then(Coordination::batching) else { continue };
            let is_of_it =
                |release: &&Release| batching.batch_of(release.pod.role(), release.pod.ordinal) == Some(batch);
            let pods: Vec<_> = release.iter().filter(is_of_it).map(|release| release.pod.clone()).collect();
            if let Some(placer) = placer.as_deref_mut() {
                placer.take_back(pods.iter().map(|pod| &pod.pod.uid));
            }
            let stored = committed.get(&index).and_then(|stored| stored.get(&batch)).cloned();
            if let Some(domains) = given.domains.get_mut(&index) {
                domains.remove(&batch);
                domains.extend(stored.map(|domain| (batch, domain)));
            }
            let uids: HashSet<Arc<str>> = pods.iter().map(|pod| pod.pod.uid.clone()).collect();
            release.retain(|release| !uids.contains(&release.pod.pod.uid));
            if !pods.is_empty() {
                kept.insert((index, batch), (first, pods));
            }
        }
    }
    for ((index, batch), (other, pods)) in kept {
        let Some((own, other)) = group.coordination(index).zip(group.coordination(other)) else { continue };
        let Some(message) = own.batching().map(|batching| waits_text(batching, batch, other)) else { continue };
        held.push(Held::of((Some(own), Some(batch)), HoldReason::BlockedByCoordination, message, pods));
    }
}

/// Takes their domains from batches that have no room any more and of which nothing runs, and from those that go with them: a rollout
/// does not wait for them from then on. The status keeps that they are displaced until they have a place again. A batch that a rollout
/// may have stopped itself keeps its domain, and counts: what new pods need would stop one batch after another. Returns the displaced
/// batches that the status has already: another leader would not know of the rest.
pub(super) fn displaced(group: &Group, view: &GroupView, rollouts: &Rollouts, given: &mut Placed) -> BTreeSet<BatchId> {
    let batching = |index: usize| group.coordination(index).and_then(Coordination::batching);
    let is_rolled =
        |batching: &Batching| batching.sizes.keys().any(|role| rollouts.bounds.iter().any(|one| one.has(role)));
    let may_be = |id: &BatchId| {
        let stopped = |batching: &Batching| {
            view.ranges(batching, id.1).any(|(role, _, range)| rollouts.may_have_stopped(role, range))
        };
        batching(id.0).is_some_and(|batching| is_rolled(batching) && !stopped(batching))
    };
    let lost = std::mem::take(&mut given.displaced);
    let lost = lost.into_iter().flat_map(|id| going_with(group, view, id));
    let lost: Vec<_> = lost.filter(may_be).collect();
    for (index, batch) in &lost {
        given.domains.get_mut(index).and_then(|domains| domains.remove(batch));
    }
    let stored: BTreeSet<BatchId> = group
        .batched()
        .flat_map(|(own, _)| {
            let state = group.status.coordination(&own.display_name());
            state.into_iter().flat_map(CoordinationState::displaced).map(|batch| (own.index, batch))
        })
        .collect();
    let waits = |(index, batch): &BatchId| {
        batching(*index)
            .is_some_and(|batching| *batch < view.possible_batches(batching) && is_untouched(view, batching, *batch))
    };
    let has_place = |(index, batch): &BatchId| given.domains.get(index).is_some_and(|own| own.contains_key(batch));
    let waiting = stored.iter().copied().filter(waits);
    given.displaced = waiting.chain(lost).filter(|id| !has_place(id)).collect();
    &stored & &given.displaced
}
