//! Consequences of the wanted segments for a group.

use std::collections::BTreeMap;

use super::group::Sources;
use super::workload::most;
use super::{BatchKind, Batching, Elastic, FieldPath, Group, Role, Standing};
use crate::api::role_coordination::RoleCoordinationSpec;
use crate::api::status::{CoordinationState, Draining, RoleProgress};

fn standing(group: &Group, sources: &impl Sources) -> Standing {
    let Some((coordination, batching)) = segments_of(group) else { return Standing::NoSegments };
    let mut roles = batching.sizes.keys().map(|name| (name, group.role(name)));
    if !sources.may_scale(&group.status) {
        return Standing::NotAllowed;
    }
    let of_role = |(name, role): (&String, Option<&Role>)| {
        let key = role.filter(|role| role.replicas.is_none()).and_then(|role| role.workload.key.as_ref());
        let Some(key) = key.filter(|_| batching.size(name).is_some()) else { return Some(Standing::NoSegments) };
        let Some(workload) = sources.workload(key) else { return Some(Standing::WorkloadMissing(name.clone())) };
        if workload.owner.is_some() {
            return Some(Standing::Owned(name.clone()));
        }
        if workload.queued_as_one {
            return Some(Standing::Queued(name.clone()));
        }
        let is_ours = workload.claim.as_ref().is_some_and(|claim| claim.group == group.key && claim.role == *name);
        (!is_ours).then(|| Standing::Unclaimed(name.clone()))
    };
    roles.find_map(of_role).unwrap_or(Standing::InEffect(coordination))
}

/// Returns the segmentPlacement and the index of its coordination, if no other coordination makes batches and the group has its
/// own roles.
fn segments_of(group: &Group) -> Option<(usize, &Batching)> {
    let mut batched = group.batched();
    let (coordination, batching) = batched.next()?;
    let is_one = batched.next().is_none() && batching.kind == BatchKind::SegmentPlacement;
    (is_one && group.reference.is_none()).then_some((coordination.index, batching))
}

impl Group {
    /// Reads the wanted segments from the spec of the RoleCoordination behind this group.
    pub(super) fn wanted_of(&self, spec: &RoleCoordinationSpec, sources: &impl Sources) -> Option<Elastic> {
        let at = FieldPath::new("spec");
        Some(Elastic {
            segments: spec.segments?,
            standing: standing(self, sources),
            at: at.child("segments"),
            drain_seconds: spec.scale_in.as_ref().and_then(|scale_in| scale_in.drain_seconds),
            drain_at: at.child("scaleIn").child("drainSeconds"),
        })
    }

    /// Returns the wanted segments of a group whose workloads rolegate scales.
    pub fn scaled(&self) -> Option<(&Elastic, &Batching)> {
        let elastic = self.elastic.as_ref()?;
        let Standing::InEffect(coordination) = elastic.standing else { return None };
        Some((elastic, self.coordination(coordination)?.batching()?))
    }

    /// Sets the desired replicas of a group whose workloads rolegate scales: those of the wanted segments, and those of
    /// released segments until their removal is committed.
    pub(super) fn desire_segments(&mut self, sources: &impl Sources) {
        let Some((elastic, batching)) = self.scaled() else { return };
        let wanted = elastic.wanted();
        let segments = match self.status.draining {
            Some(Draining { from, .. }) => wanted.max(from),
            None => wanted.max(self.released_segments(batching, sources)),
        };
        let sizes = batching.sizes.keys().filter_map(|name| Some((name.clone(), batching.size(name)?)));
        let desired: Vec<_> = sizes.map(|(name, size)| (name, most(i64::from(segments) * i64::from(size)))).collect();
        for (name, desired) in desired {
            if let Some(role) = self.roles.iter_mut().find(|role| role.name == name) {
                role.desired = desired;
            }
        }
    }

    /// Sets the desired replicas of a group of which nothing exists yet.
    pub fn desire_from_nothing(&mut self) {
        self.status.draining = None;
        self.desire_segments(&());
    }

    /// Sets the desired replicas of a group with these released replicas.
    pub fn desire_beside(&mut self, released: &BTreeMap<String, u32>) {
        let Some((_, batching)) = self.scaled() else { return };
        let of_role = |name: &String| {
            let progress = RoleProgress { released: Some(*released.get(name)?), ..RoleProgress::default() };
            Some((name.clone(), progress))
        };
        let progress = batching.sizes.keys().filter_map(of_role).collect();
        self.status.coordination_state = vec![CoordinationState { progress, ..CoordinationState::default() }];
        self.desire_segments(&());
        self.status.coordination_state.clear();
    }

    /// Returns the number of segments with a released replica or, if nothing was ever committed, with a replica of the
    /// workloads.
    fn released_segments(&self, batching: &Batching, sources: &impl Sources) -> u32 {
        let of = |replicas: &dyn Fn(&Role) -> Option<u32>| {
            let roles = batching.sizes.keys().filter_map(|name| self.role(name));
            let segments = roles.filter_map(|role| Some(replicas(role)?.div_ceil(batching.size(&role.name)?)));
            segments.max()
        };
        let there = |role: &Role| Some(sources.workload(role.workload.key.as_ref()?)?.desired);
        // An object that is not stored has no replicas yet.
        let is_stored = !self.carrier.uid.is_empty();
        of(&|role| self.committed(&role.name)).or_else(|| of(&there).filter(|_| is_stored)).unwrap_or(0)
    }

    /// Reports whether both are one object with the same wanted segments and the same commits of their scale.
    pub fn has_committed_like(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.scaled(), other.scaled());
        let roles = || ours.iter().flat_map(|(_, batching)| batching.sizes.keys());
        self.carrier.uid == other.carrier.uid
            && ours.is_some() == theirs.is_some()
            && ours.map(|(elastic, _)| elastic.wanted()) == theirs.map(|(elastic, _)| elastic.wanted())
            && self.status.draining == other.status.draining
            && roles().all(|role| self.committed(role) == other.committed(role))
    }

    /// Returns the committed released count of a role: the highest in any coordination.
    pub fn committed(&self, role: &str) -> Option<u32> {
        self.status.coordination_state.iter().filter_map(|state| state.progress.get(role)?.released).max()
    }
}
