//! Elastic groups: a RoleCoordination that says how many segments it wants, and whose workloads are scaled together.

use std::fmt;

use super::workload::most;
use super::{BatchKind, Batching, FieldPath, Group, Role, Sources, names};
use crate::api::role_coordination::RoleCoordinationSpec;
use crate::api::status::Draining;

/// How many segments are wanted, and whether that is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elastic {
    /// Segments as written.
    pub segments: i64,
    /// Path of that.
    pub at: FieldPath,
    /// Seconds that marked pods are given before they are taken away, as written.
    pub drain_seconds: Option<i64>,
    /// Path of that.
    pub drain_at: FieldPath,
    /// Whether it is in effect.
    pub standing: Standing,
}

/// Whether wanted segments are in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They are: of the coordination at this place in the list.
    InEffect(usize),
    /// rolegate runs without `--allow scale`.
    NotAllowed,
    /// Not exactly one segmentPlacement says what a segment is, or one of its roles has no workload of its own.
    NoSegments,
    /// The workload of this role is not there, or not known yet.
    WorkloadMissing(String),
    /// The workload of this role does not say that it is of the group.
    Unclaimed(String),
    /// The workload of this role is another object's to scale.
    Owned(String),
}

impl Standing {
    /// One word: reason of the condition; `None` while they are in effect.
    pub const fn reason(&self) -> Option<&'static str> {
        Some(match self {
            Self::InEffect(_) => return None,
            Self::NotAllowed => "NotAllowed",
            Self::NoSegments => "NoSegments",
            Self::WorkloadMissing(_) => "WorkloadMissing",
            Self::Unclaimed(_) => "WorkloadNotClaimed",
            Self::Owned(_) => "WorkloadOwned",
        })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InEffect(_) => f.write_str("in effect"),
            Self::NotAllowed => f.write_str("rolegate runs without `--allow scale`"),
            Self::NoSegments => {
                f.write_str("it takes exactly one segmentPlacement, each of whose roles has a workload of its own")
            }
            Self::WorkloadMissing(role) => write!(f, "the workload of role {role:?} is not there"),
            Self::Unclaimed(role) => write!(
                f,
                "the workload of role {role:?} itself lacks labels {} and {} of this group and role",
                names::GROUP,
                names::ROLE
            ),
            Self::Owned(role) => write!(f, "the workload of role {role:?} is scaled by its owner"),
        }
    }
}

impl Elastic {
    /// Reads what a RoleCoordination wants of the group that was read from it.
    pub(super) fn read(spec: &RoleCoordinationSpec, group: &Group, sources: &impl Sources) -> Option<Self> {
        let at = FieldPath::new("spec");
        Some(Self {
            segments: spec.segments?,
            standing: standing(group, sources),
            at: at.child("segments"),
            drain_seconds: spec.scale_in.as_ref().and_then(|scale_in| scale_in.drain_seconds),
            drain_at: at.child("scaleIn").child("drainSeconds"),
        })
    }

    /// Segments that are wanted; a negative number reads as 0.
    pub fn wanted(&self) -> u32 {
        most(self.segments)
    }

    /// Seconds that marked pods are given.
    pub fn drain_seconds(&self) -> u64 {
        self.drain_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0)
    }
}

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

    /// Segments of which anything is released; where nothing was ever committed, of which the workloads have anything.
    fn released_segments(&self, batching: &Batching, sources: &impl Sources) -> u32 {
        let of = |replicas: &dyn Fn(&Role) -> Option<u32>| {
            let roles = batching.sizes.keys().filter_map(|name| self.role(name));
            let segments = roles.filter_map(|role| Some(replicas(role)?.div_ceil(batching.size(&role.name)?)));
            segments.max()
        };
        let there = |role: &Role| Some(sources.workload(role.workload.key.as_ref()?)?.desired);
        of(&|role| self.committed(&role.name)).or_else(|| of(&there)).unwrap_or(0)
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
