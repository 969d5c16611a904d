//! What follows for a group from the segments that are wanted of it.

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

/// The one coordination that makes segments, by its place in the list; nothing else may make batches.
fn segments_of(group: &Group) -> Option<(usize, &Batching)> {
    let mut batched = group.batched();
    let (coordination, batching) = batched.next()?;
    let is_one = batched.next().is_none() && batching.kind == BatchKind::SegmentPlacement;
    (is_one && group.reference.is_none()).then_some((coordination.index, batching))
}

impl Group {
    /// What a RoleCoordination wants of the group that was read from it.
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

    /// What is wanted of a group whose workloads rolegate scales.
    pub fn scaled(&self) -> Option<(&Elastic, &Batching)> {
        let elastic = self.elastic.as_ref()?;
        let Standing::InEffect(coordination) = elastic.standing else { return None };
        Some((elastic, self.coordination(coordination)?.batching()?))
    }

    /// Desired replicas of a group whose workloads rolegate scales: as many segments as are wanted, and those that were
    /// released until it is committed that they are taken away.
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

    /// Desired replicas of a group of which nothing is there yet.
    pub fn desire_from_nothing(&mut self) {
        self.status.draining = None;
        self.desire_segments(&());
    }

    /// Desired replicas of a group of which so many replicas may run.
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

    /// Segments of which anything is released; where nothing was ever committed, of which the workloads have anything.
    fn released_segments(&self, batching: &Batching, sources: &impl Sources) -> u32 {
        let of = |replicas: &dyn Fn(&Role) -> Option<u32>| {
            let roles = batching.sizes.keys().filter_map(|name| self.role(name));
            let segments = roles.filter_map(|role| Some(replicas(role)?.div_ceil(batching.size(&role.name)?)));
            segments.max()
        };
        let there = |role: &Role| Some(sources.workload(role.workload.key.as_ref()?)?.desired);
        // Of what is only written down nothing is there yet.
        let is_stored = !self.carrier.uid.is_empty();
        of(&|role| self.committed(&role.name)).or_else(|| of(&there).filter(|_| is_stored)).unwrap_or(0)
    }

    /// True when the same object wants and has committed the same of the scale of its workloads.
    pub fn has_committed_like(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.scaled(), other.scaled());
        let roles = || ours.iter().flat_map(|(_, batching)| batching.sizes.keys());
        self.carrier.uid == other.carrier.uid
            && ours.is_some() == theirs.is_some()
            && ours.map(|(elastic, _)| elastic.wanted()) == theirs.map(|(elastic, _)| elastic.wanted())
            && self.status.draining == other.status.draining
            && roles().all(|role| self.committed(role) == other.committed(role))
    }

    /// The committed released count of a role: the highest that any coordination keeps.
    pub fn committed(&self, role: &str) -> Option<u32> {
        self.status.coordination_state.iter().filter_map(|state| state.progress.get(role)?.released).max()
    }
}
