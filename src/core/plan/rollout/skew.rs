use std::collections::BTreeMap;

use super::{RoleRollout, Stage};
use crate::model::RollingBounds;

/// Returns how far a role with `count` of `of` replicas updated is too far ahead of a role with `behind` of `behind_of`; zero
/// or less when the bounds hold. The bounds allow the skew, or one replica of the role behind if that is more: a role of two
/// replicas must not stall the others.
pub fn excess(bounds: &RollingBounds, (count, of): (u32, u32), (behind, behind_of): (u32, u32)) -> i64 {
    let [count, of, behind, behind_of] = [count, of, behind, behind_of].map(i64::from);
    let distance = 100 * (count * behind_of - behind * of);
    let skew = i64::from(bounds.max_skew) * of * behind_of;
    distance - skew.max(100 * of)
}

/// Returns the role furthest behind that keeps `role` from having `reach` updated replicas. A role that has what the step under
/// way asks for, or all that `partition` does not keep old, keeps back no other: it goes no further. Where an edit is taken back,
/// replicas that are to stay old are updated, and a role has more to update than its share.
pub(super) fn limits<'a>(
    (bounds, stages): (&[RollingBounds], &[Stage]),
    (name, role, reach): (&str, &RoleRollout, u32),
    others: &'a BTreeMap<String, RoleRollout>,
) -> Option<&'a str> {
    let desired = role.shared();
    let shared = bounds.iter().filter(|bounds| bounds.has(name));
    let over = shared.flat_map(|bounds| {
        let compared =
            |(other, state): &(&String, &RoleRollout)| *other != name && state.round == role.round && bounds.has(other);
        let stage = stages.iter().find(|stage| stage.index == bounds.index);
        let others = others.iter().filter(compared);
        let others = others.filter(move |(other, _)| !stage.is_some_and(|stage| stage.is_reached(other)));
        others.filter_map(move |(other, state)| {
            let shared = state.shared();
            let goal = shared - bounds.kept_old(shared);
            let last = || state.last(bounds.kept_of(other, state.desired()));
            let goal = if is_forced(bounds, desired) { goal } else { goal.max(last()) };
            if shared == 0 || state.done() >= goal {
                return None;
            }
            let excess = excess(bounds, (reach, desired), (state.done(), shared));
            (excess > 0).then_some((other.as_str(), i128::from(excess) * 1000 / i128::from(shared)))
        })
    });
    over.max_by_key(|(_, excess)| *excess).map(|(other, _)| other)
}

/// Reports whether the share of the role to update is less than one replica, although one replica is updated. The other roles
/// never come as far, so this role goes last.
fn is_forced(bounds: &RollingBounds, desired: u32) -> bool {
    let share = u64::from(100 - bounds.partition.min(100)) * u64::from(desired);
    bounds.partition > 0 && share > 0 && share < 100
}
