//! Rollouts by segment (KEP-32), checked independently of the planner.

use rolegate::model::RolledWorkload;

use crate::lockstep::{Ordinal, ordinals, role_of};
use crate::prelude::*;
use crate::replica::Request;
use crate::rollbacks;
use crate::sets::revision_of;

impl Stored {
    /// Returns the group as admission lets it be: only segments that all updated roles have are updated as a whole.
    pub fn admitted(mut self) -> Self {
        let has_all = |one: &Coordination| one.sizes[..ROLLED].iter().all(|size| *size > 0);
        let can_be = self.wish.coordinations().iter().any(has_all);
        self.rolling.iter_mut().for_each(|rolling| rolling.by_segment &= can_be);
        self
    }

    /// Returns the replicas of a role in a segment, if segments are updated as a whole.
    fn segment_of(&self, role: usize) -> Option<u32> {
        self.rolling.filter(|rolling| rolling.by_segment)?;
        self.wish.of_role(role).first().map(|one| one.sizes[role])
    }

    /// Returns the replicas of a role that stay old.
    pub fn kept_old(&self, role: usize, desired: u32) -> u32 {
        let Some(rolling) = self.rolling else { return 0 };
        match self.segment_of(role) {
            Some(size) => (rolling.kept_old(desired.div_ceil(size)) * size).min(desired),
            None => rolling.kept_old(desired),
        }
    }
}

/// An open rollout, as a pass sees it.
struct Part<'a> {
    workload: &'a RolledWorkload,
    seen: Vec<Ordinal>,
    size: u32,
    floor: u32,
    /// Replicas that may run.
    committed: u32,
}

impl<'a> Part<'a> {
    fn of(workload: &'a RolledWorkload, snapshot: &Snapshot, stored: &Stored) -> Option<Self> {
        let role = Some(role_of(workload)).filter(|role| *role < ROLLED)?;
        let floor = stored.kept_old(role, workload.desired).max(workload.asked_partition());
        // What may run of a group that is scaled in is not told by what was let go.
        let committed = stored.committed(role).filter(|_| stored.segments.is_none()).unwrap_or(0);
        let committed = if stored.refers { committed } else { committed.min(stored.replicas[role]) };
        let seen = ordinals(workload, snapshot);
        Some(Self { workload, seen, size: stored.segment_of(role)?, floor, committed })
    }

    /// Reports whether a replica of the segment passes a test.
    fn any(&self, segment: u32, test: impl Fn(u32, Ordinal) -> bool) -> bool {
        let of_segment = (0..).zip(&self.seen).filter(|(ordinal, _)| ordinal / self.size == segment);
        of_segment.into_iter().any(|(ordinal, seen)| test(ordinal, *seen))
    }

    /// Reports whether a replica of the segment does not serve, or is replaced at any moment.
    fn is_down(&self, segment: u32) -> bool {
        self.any(segment, |ordinal, seen| {
            let leaves = ordinal >= self.workload.partition && !seen.updated && seen.ready;
            leaves || seen.is_down() || seen.held && !seen.out && ordinal < self.committed
        })
    }

    /// Reports whether a replica of the segment is to be updated, and may not be replaced yet.
    fn waits(&self, segment: u32) -> bool {
        self.any(segment, |ordinal, seen| ordinal >= self.floor && !seen.updated && ordinal < self.workload.partition)
    }
}

/// R13: checks that a segment that serves is opened only while fewer segments than may be are down or opened before it, from the
/// last one down.
pub fn allow(
    (workload, to): (&RolledWorkload, u32),
    snapshot: &Snapshot,
    rolling: Rolling,
    stored: &Stored,
) -> Result<(), Broken> {
    let open = snapshot.workloads.iter().filter(|other| other.is_open() && !other.unclaimed);
    let parts: Vec<_> = open.filter_map(|open| Part::of(open, snapshot, stored)).collect();
    let Some(own) = parts.iter().find(|part| part.workload.key == workload.key) else { return Ok(()) };
    // Pods of an abandoned revision may stay unavailable forever, and do not hold back the others.
    if parts.iter().any(|part| part.seen.iter().any(|seen| seen.strange)) {
        return Ok(());
    }
    let count = parts.iter().map(|part| part.workload.desired.div_ceil(part.size)).max().unwrap_or(0);
    let is_down = |segment: u32| parts.iter().any(|part| part.is_down(segment));
    // Where all replicas are held, nothing serves that could stop.
    let serves = |segment: u32| parts.iter().any(|part| part.any(segment, |_, seen| seen.ready));
    let opens = |ordinal: u32, seen: Ordinal| (to..workload.partition).contains(&ordinal) && !seen.updated;
    let opened = (0..count).filter(|segment| own.any(*segment, opens) && !is_down(*segment) && serves(*segment));
    let Some(lowest) = opened.min() else { return Ok(()) };
    let is_taken = |segment: &u32| {
        is_down(*segment) || *segment >= lowest && serves(*segment) && parts.iter().any(|part| part.waits(*segment))
    };
    let taken: Vec<_> = (0..count).filter(is_taken).collect();
    hold!(
        taken.len() <= rolling.unavailable as usize,
        "R13: segments {taken:?} are taken with partition {to} of {}, and {} may be",
        workload.claim.role,
        rolling.unavailable
    );
    Ok(())
}

/// Reports whether the controller of a workload waits for pods that may never be ready before it replaces others: held ones above, or
/// as many old ones as may be unavailable.
fn waits_for_others(workload: &RolledWorkload, snapshot: &Snapshot) -> bool {
    let seen = ordinals(workload, snapshot);
    let numbered = || (0..).zip(&seen);
    let held = numbered().filter(|(_, seen)| seen.held).map(|(ordinal, _)| ordinal).max();
    let below = numbered().any(|(ordinal, seen)| !seen.updated && (seen.out || !seen.held && Some(ordinal) < held));
    let down = numbered()
        .filter(|(ordinal, seen): &(u32, &Ordinal)| !seen.updated && seen.is_down() && *ordinal < workload.partition);
    below || workload.at_once.is_some_and(|most| down.count() >= most as usize)
}

/// Reports whether held pods are old, and an open rollout makes them new: at the end of all none is left.
pub fn are_made_new(server: &Server) -> bool {
    let is_old = |role: usize, pod: &Pod| {
        let set = &server.sets[role];
        set.is_open() && crate::server::is_held(pod) && revision_of(pod) != Some(set.update_revision())
    };
    let mut pods = server.pods.iter().map(|(name, pod)| (crate::places::role_of(name), pod));
    pods.any(|(role, pod)| role < server.sets.len() && is_old(role, pod))
}

/// Returns the broken old pods that may be deleted although their workload rolls by itself: it waits for held ones above them.
fn broken(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<PodFacts>> {
    let rolls = |workload: &&RolledWorkload| !workload.is_open() && workload.observed && workload.at_once.is_some();
    snapshot.workloads.iter().filter(rolls).flat_map(|workload| {
        let number = |pod: &PodFacts| {
            pod.identity.ordinal.filter(|_| pod.identity.role.as_deref() == Some(&*workload.claim.role))
        };
        let top = snapshot.pods.iter().filter(|pod| pod.held).filter_map(|pod| number(pod)).max();
        let may = workload.partition..top.unwrap_or(0);
        snapshot.pods.iter().filter(move |pod| {
            let is_old = pod.revision.as_deref() != workload.update_revision.as_deref();
            is_old && !pod.ready && !pod.held && number(pod).is_some_and(|number| may.contains(&number))
        })
    })
}

/// Reports whether a pod that never served is held until an open rollout has made all pods new that begin with it, or before it.
pub fn is_made_new_first(pod: &PodFacts, snapshot: &Snapshot, stored: &Stored) -> bool {
    let role = ROLES.iter().position(|role| pod.identity.role.as_deref() == Some(*role));
    let served = |role: &str| stored.status.replicas_served(role);
    let is_old = |open: &RolledWorkload| {
        let seen = ordinals(open, snapshot);
        seen.iter().any(|seen| seen.held && seen.new && !seen.updated || !open.observed)
    };
    let begins = role.is_some_and(|role| pod.identity.ordinal >= Some(served(ROLES[role])));
    begins && snapshot.workloads.iter().any(|open| open.is_open() && open.at_once.is_some() && is_old(open))
}

/// R23: checks that a segment of which nothing runs or ever served is let go without a pod that an open rollout is about to replace.
pub fn begin_new((one, segment): (&Coordination, u32), snapshot: &Snapshot, stored: &Stored) -> Result<(), Broken> {
    let has_steps = stored.rolling.is_none_or(|rolling| rolling.steps != Steps::None);
    let served = |role: usize| stored.status.replicas_served(ROLES[role]) > segment * one.sizes[role];
    let has_served = (0..ROLES.len()).any(|role| one.sizes[role] > 0 && served(role));
    if has_steps
        || has_served
        || stored.segments.is_some()
        || stored.wish == Wish::Wrong
        || rollbacks::goes_back(&stored.status, snapshot)
    {
        return Ok(());
    }
    let is_ours = |open: &&RolledWorkload| open.is_open() && !open.unclaimed && open.observed && open.at_once.is_some();
    for open in snapshot.workloads.iter().filter(is_ours).filter(|open| role_of(open) < ROLLED && !open.ordered) {
        let (role, size) = (role_of(open), one.sizes[role_of(open)]);
        let floor = stored.kept_old(role, open.desired).max(open.asked_partition());
        let seen = ordinals(open, snapshot);
        let own = (segment * size..(segment + 1) * size).filter(|ordinal| *ordinal >= floor);
        let old = own.filter(|ordinal| seen.get(*ordinal as usize).is_some_and(|seen| seen.held && !seen.updated));
        let old: Vec<_> = old.collect();
        hold!(old.is_empty(), "R23: segment {segment} is let go, and {} {old:?} are old", ROLES[role]);
    }
    Ok(())
}

/// Returns the old pods that may be deleted: of what is open as their controllers have seen, which would replace them one after another
/// or, if those that wait count (`waiting`), not at all.
fn outdated<'a>(snapshot: &'a Snapshot, stored: &Stored, waiting: bool) -> Vec<&'a Arc<PodFacts>> {
    let open =
        snapshot.workloads.iter().filter(|workload| workload.is_open() && !workload.unclaimed && workload.observed);
    let open: Vec<_> = open.filter(|open| role_of(open) < ROLLED).collect();
    let is_old = |pod: &&Arc<PodFacts>| {
        let workload = open.iter().find(|open| pod.identity.role.as_deref() == Some(&*open.claim.role));
        let Some(workload) = workload else { return false };
        let in_part = stored.segment_of(role_of(workload)).is_some_and(|size| workload.at_once < Some(size));
        let is_open = pod.identity.ordinal.is_some_and(|n| (workload.partition..workload.desired).contains(&n));
        let is_new = pod.revision.as_deref() == workload.update_revision.as_deref();
        workload.at_once.is_some() && is_open && !is_new && (in_part || waiting && waits_for_others(workload, snapshot))
    };
    snapshot.pods.iter().filter(is_old).collect()
}

/// R14: checks that a pod is deleted for a rollout only if it is old and may be replaced, and its controller would not do so in time.
pub fn deletes(pod: &PodRef, snapshot: &Snapshot, stored: Option<&Stored>) -> Result<(), Broken> {
    let Some(stored) = stored.filter(|stored| stored.wish != Wish::Wrong && snapshot.lets_go().is_none()) else {
        return Err(Broken(format!("R14: {} is deleted for no group", pod.name)));
    };
    let is_outdated = outdated(snapshot, stored, true).into_iter().chain(broken(snapshot)).any(|old| old.pod == *pod);
    hold!(is_outdated, "R14: {} is deleted, and is not old or may not be replaced: {:?}", pod.name, snapshot.workloads);
    Ok(())
}

/// R15: checks that the old pods of an open segment are deleted together.
pub fn are_deleted_at_once(
    replica: &Replica,
    snapshot: &Snapshot,
    requests: &[Request],
    stored: &Stored,
) -> Result<(), Broken> {
    if snapshot.lets_go().is_some() || stored.wish == Wish::Wrong || replica.confirms(requests) {
        return Ok(());
    }
    for old in outdated(snapshot, stored, false) {
        let asked = requests.iter().any(|request| matches!(request, Request::Renew(pod) if *pod == old.pod));
        hold!(asked || replica.is_busy_with(&old.pod.uid), "R15: {} is old, and is not deleted", old.pod.name);
    }
    Ok(())
}
