//! Checks of batches that go as a whole while their roles are scaled one after another, independently of the planner.
//!
//! P7: of a batch that goes as a whole and of which nothing was released, nothing is committed while a role has fewer replicas than
//! it takes, before that has lasted for the settle time.

use crate::prelude::*;

/// Time for which a cut batch waits for its roles.
pub const SETTLE: Duration = Duration::from_secs(10);

/// A coordination, as position in the list, and the number of a batch.
pub type BatchId = (usize, u32);

/// Returns the batches that go as a whole and are cut, if the replicas of the roles stand in several objects.
fn cut(stored: &Stored, desired: impl Fn(usize) -> u32) -> Vec<BatchId> {
    if !stored.refers {
        return Vec::new();
    }
    let mut cut = Vec::new();
    for (index, one) in stored.wish.coordinations().iter().enumerate().filter(|(_, one)| one.is_whole(&stored.makers)) {
        let sized = || (0..ROLES.len()).filter(|role| one.sizes[*role] > 0);
        let total = sized().map(|role| desired(role).div_ceil(one.sizes[role])).max().unwrap_or(0);
        let full = sized().map(|role| desired(role) / one.sizes[role]).min().unwrap_or(0);
        if sized().count() > 1 {
            cut.extend((full..total).map(|batch| (index, batch)));
        }
    }
    cut
}

/// Records since when a replica sees batches cut.
pub fn note(replica: &mut Replica, seen: Option<(&Group, &Stored)>, now: Duration) {
    let Some((group, stored)) = seen else { return };
    let before = std::mem::take(&mut replica.cut);
    let desired = |role: usize| group.role(ROLES[role]).map_or(0, |role| role.desired);
    // Where rolegate scales, one number stands for all; workloads that nobody claims have numbers of their own.
    let cut = Some(()).filter(|()| group.scaled().is_none()).map(|()| cut(stored, desired)).into_iter().flatten();
    replica.cut = cut.map(|id| (id, before.get(&id).copied().unwrap_or(now))).collect();
}

/// P7: checks the commit of a replica of a batch of which nothing was released.
pub fn commits(replica: &Replica, id: BatchId, what: &str, now: Duration) -> Result<(), Broken> {
    let since = replica.cut.get(&id);
    let is_over = since.is_none_or(|since| *since + SETTLE <= now);
    hold!(is_over, "P7: {what} of batch {id:?} goes at {now:?}, which is cut since {since:?}");
    Ok(())
}

/// Reports whether a batch waits for its roles to grow, as a leader sees it.
pub fn waits(world: &World) -> bool {
    let leaders = world.replicas.iter().filter(|replica| replica.leads);
    leaders.flat_map(|replica| replica.cut.values()).any(|since| *since + SETTLE >= world.now)
}
