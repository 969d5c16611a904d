//! Batches of several coordinations that share replicas and are released as a whole: their pods go together.

use std::collections::BTreeSet;
use std::iter;

use crate::model::{Batching, Coordination, Group};
use crate::plan::recovery::BatchId;
use crate::plan::view::{GroupView, ReplicaIs};

/// Reports whether no pod of a batch was released.
pub(in crate::plan) fn is_untouched(view: &GroupView, batching: &Batching, index: u32) -> bool {
    view.ranges(batching, index).all(|(_, role, range)| role.replicas.none_but(range, ReplicaIs::Untouched))
}

/// Returns the batches that share replicas with this one, directly or through others, and itself first. Coordinations agree on
/// the size of a role, so all have the same number. Only batches that are released as a whole and pass `counts` connect others.
pub(super) fn together<'a>(
    group: &'a Group,
    view: &GroupView,
    (first, batch): BatchId,
    counts: impl Fn(&Batching) -> bool,
) -> Vec<(&'a Coordination, &'a Batching)> {
    let mut left: Vec<_> = group.batched().filter(|(_, batching)| batching.is_all_or_nothing()).collect();
    let Some(at) = left.iter().position(|(own, _)| own.index == first) else { return Vec::new() };
    let mut found = vec![left.remove(at)];
    let mut next = 0;
    while let Some((_, own)) = found.get(next).copied() {
        let roles: BTreeSet<_> =
            view.ranges(own, batch).filter(|(_, _, range)| !range.is_empty()).map(|(name, ..)| name).collect();
        let joins = |(_, other): &(&Coordination, &Batching)| {
            roles.iter().any(|role| other.size(role).is_some()) && counts(other)
        };
        let (with, without) = left.into_iter().partition::<Vec<_>, _>(joins);
        found.extend(with);
        (left, next) = (without, next + 1);
    }
    found
}

/// Returns a batch, and those that go with it because they share replicas and none of their pods was released.
pub(in crate::plan) fn going_with(group: &Group, view: &GroupView, id: BatchId) -> Vec<BatchId> {
    let is_untouched = |batching: &Batching| is_untouched(view, batching, id.1);
    let begins = group.coordination(id.0).and_then(Coordination::batching).is_some_and(is_untouched);
    let others = if begins { together(group, view, id, is_untouched) } else { Vec::new() };
    iter::once(id).chain(others.into_iter().skip(1).map(|(other, _)| (other.index, id.1))).collect()
}

/// Returns the text on a batch that waits for another coordination of its pods.
pub(super) fn waits_text(batching: &Batching, batch: u32, other: &Coordination) -> String {
    format!("{} is held: coordination {:?} waits", batching.batch_name(batch), other.display_name())
}
