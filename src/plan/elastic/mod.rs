//! Elastic groups: how many replicas each workload is to have now, and which segments are taken away. Pure.
//!
//! Growth is the progression's: what it has released, and nothing above, is what the workloads have, so that no pod is made
//! that would be held. Shrinking is committed first (`status.draining`), then the pods are marked, then, when they have had
//! their time, the workloads lose one segment at a time, all of them before the next.

pub(in crate::plan) mod scale_pods;
mod text;

pub use text::{Told, ineffective, of as taken_away, segments_line};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::status::Draining;
use crate::model::{Batching, Elastic, Group, HoldReason, ScaledWorkload};
use crate::plan::marks::Mark;
use crate::plan::view::{GroupView, PodFacts, ReplicaIs, RoleView};

/// Why nothing is taken away although less is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// A rollout is open: it replaces pods from the top.
    Rollout,
    /// A batch is being made again.
    Recovery,
}

/// What the next segment waits for, whose pods are made when it has room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomWait {
    /// Its number, from 0.
    pub batch: u32,
    /// There is none, or that is not known yet.
    pub reason: HoldReason,
    /// For people.
    pub message: String,
}

/// What is known beside the pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElasticContext<'a> {
    /// The workloads that are claimed for the group.
    pub workloads: &'a [ScaledWorkload],
    /// What was committed to be taken away has had its time.
    pub drained: bool,
    /// Why the last scale of a workload failed, by role.
    pub failures: Option<&'a BTreeMap<String, String>>,
}

/// What becomes of a group whose workloads are scaled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElasticPlan {
    /// Segments that are wanted.
    pub wanted: u32,
    /// Whole segments that are released.
    pub released: u32,
    /// Segments of which there are any pods.
    pub present: u32,
    /// What is taken away, to be committed.
    pub draining: Option<Draining>,
    /// Why less is wanted and nothing is taken away.
    pub deferred: Option<Deferral>,
    /// What the next segment waits for, whose pods are made when it has room.
    pub room_wait: Option<RoomWait>,
    /// Replicas that workloads are to have now, where they have others.
    pub scales: BTreeMap<String, Scale>,
    /// Pods that are to be marked as draining, or no longer.
    pub marks: Vec<Mark>,
    /// Pods that are to say that they stand for their segment, or no longer.
    pub scale_pods: Vec<Mark>,
    /// Why the last scale of a workload failed, by role.
    pub failures: BTreeMap<String, String>,
}

/// How many segments there are of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts {
    /// Those that are wanted.
    pub wanted: u32,
    /// Those that are released.
    pub released: u32,
    /// Those of which there are any pods.
    pub present: u32,
    /// Those that are taken away.
    pub draining: u32,
    /// Those that are too many, and are not taken away for now.
    pub deferred: u32,
}

impl ElasticPlan {
    /// How many segments there are of each sort.
    pub fn counts(&self) -> SegmentCounts {
        let Self { wanted, released, present, .. } = *self;
        let draining = self.draining.map_or(0, |draining| draining.to.saturating_sub(draining.from));
        let deferred = if self.deferred.is_some() { released.saturating_sub(wanted) } else { 0 };
        SegmentCounts { wanted, released, present, draining, deferred }
    }
}

/// Other replicas for a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The workload as it was read.
    pub workload: ScaledWorkload,
    /// Replicas to be.
    pub to: u32,
    /// More than was ever let: somebody else has scaled it.
    pub foreign: bool,
}

/// One role that is scaled.
struct Scaled<'a> {
    name: &'a str,
    size: u32,
    view: &'a RoleView,
    workload: &'a ScaledWorkload,
}

impl Scaled<'_> {
    fn replicas(&self, segments: u32) -> u32 {
        segments.saturating_mul(self.size)
    }

    /// Committed: so many may run.
    fn committed(&self) -> Option<u32> {
        self.view.committed
    }

    /// Segments of which it has any pods. Where its controller makes pods beyond its replicas in a rollout (`maxSurge`), those of
    /// them that are held wait for the workload to be scaled, and it does not wait for them.
    fn present(&self) -> u32 {
        let replicas = &self.view.replicas;
        let all = replicas.pods_in(..).replicas;
        let held = if self.workload.has_old_pods { replicas.count_in(.., ReplicaIs::Untouched) } else { 0 };
        let surge = all.saturating_sub(self.workload.desired).min(held);
        all.saturating_sub(surge).div_ceil(self.size)
    }

    /// Segments of which it has anything, or is to have.
    fn segments(&self) -> u32 {
        self.workload.desired.div_ceil(self.size).max(self.present())
    }
}

/// Plans for a group; `None` for one whose workloads nobody scales, or while one is not known. `released` are the counts
/// that are decided, `deferral` is what keeps segments from being taken away now.
pub(in crate::plan) fn plan(
    group: &Group,
    view: &GroupView,
    (released, deferral): (&BTreeMap<String, u32>, Option<Deferral>),
    context: ElasticContext<'_>,
) -> Option<ElasticPlan> {
    let (elastic, batching) = group.scaled()?;
    let roles = scaled_roles(group, batching, view, context.workloads)?;
    let (draining, deferred) = draining(elastic, group, &roles, deferral);
    let whole = roles.iter().map(|role| released.get(role.name).copied().unwrap_or(0).checked_div(role.size));
    // Only what is stored is done.
    let scales = scales(group.status.draining, &roles, context.drained);
    // What failed may have been done by somebody else since.
    let failures = context.failures.into_iter().flatten().filter(|(role, _)| scales.contains_key(*role));
    let whole = whole.flatten().min().unwrap_or(0);
    Some(ElasticPlan {
        failures: failures.map(|(role, why)| (role.clone(), why.clone())).collect(),
        wanted: elastic.wanted(),
        released: whole,
        present: roles.iter().map(Scaled::present).max().unwrap_or(0),
        draining,
        deferred,
        room_wait: None,
        scales,
        marks: marks(group.status.draining, &roles).into_iter().chain(marks_of_others(view, batching)).collect(),
        scale_pods: scale_pods::marks(group, batching, view, whole),
    })
}

fn scaled_roles<'a>(
    group: &Group,
    batching: &'a Batching,
    view: &'a GroupView,
    workloads: &'a [ScaledWorkload],
) -> Option<Vec<Scaled<'a>>> {
    let of_role = |name: &'a String| {
        let key = group.role(name)?.workload.key.as_ref()?;
        let workload = workloads.iter().find(|workload| workload.key == *key)?;
        Some(Scaled { name, size: batching.size(name)?, view: view.roles.get(name)?, workload })
    };
    batching.sizes.keys().map(of_role).collect()
}

/// What is to be taken away. What was committed is finished before anything more is; what is wanted again stays.
fn draining(
    elastic: &Elastic,
    group: &Group,
    roles: &[Scaled<'_>],
    deferral: Option<Deferral>,
) -> (Option<Draining>, Option<Deferral>) {
    let wanted = elastic.wanted();
    if let Some(Draining { from, to }) = group.status.draining {
        let from = from.max(wanted);
        let is_over = roles.iter().all(|role| role.segments() <= from);
        return ((from < to && !is_over).then_some(Draining { from, to }), None);
    }
    let committed = |role: &Scaled<'_>| Some(role.committed()?.div_ceil(role.size));
    let there = roles.iter().filter_map(committed).max().unwrap_or(0);
    match deferral {
        _ if there <= wanted => (None, None),
        Some(deferral) => (None, Some(deferral)),
        None => (Some(Draining { from: wanted, to: there }), None),
    }
}

/// How many replicas each workload is to have by what is stored.
fn scales(draining: Option<Draining>, roles: &[Scaled<'_>], drained: bool) -> BTreeMap<String, Scale> {
    let highest = roles.iter().map(Scaled::segments).max().unwrap_or(0);
    let to = |role: &Scaled<'_>| {
        // Before anything was ever committed nobody knows.
        let committed = role.committed()?;
        let has = role.workload.desired;
        let (most, to) = match draining {
            None => (committed, committed),
            Some(Draining { from, to }) => {
                let most = role.replicas(to).max(committed);
                // One segment of all roles before the next of any.
                let step = if drained { role.replicas(from.max(highest.saturating_sub(1))) } else { most };
                (most, has.min(step.min(most)).max(committed))
            }
        };
        (to != has).then(|| (role.name.to_owned(), Scale { workload: role.workload.clone(), to, foreign: has > most }))
    };
    roles.iter().filter_map(to).collect()
}

/// Pods that are about to be taken away say so; those that stay do not.
fn marks(draining: Option<Draining>, roles: &[Scaled<'_>]) -> Vec<Mark> {
    let of_role = |role: &Scaled<'_>| {
        let from = draining.map_or(u32::MAX, |draining| role.replicas(draining.from));
        let by_cost = !role.workload.key.kind.row().numbered;
        let mark = move |pod: &Arc<PodFacts>, draining| Mark::draining(&pod.pod, draining, by_cost);
        // What is held serves nobody.
        let leaving = role.view.replicas.pods_from(from).filter(|pod| !pod.held && !pod.draining);
        let staying = role.view.replicas.draining(..from);
        let leaving: Vec<_> = leaving.map(|pod| mark(pod, true)).collect();
        leaving.into_iter().chain(staying.map(|pod| mark(pod, false))).collect::<Vec<_>>()
    };
    roles.iter().flat_map(of_role).collect()
}

/// Marks of roles that are not of the segments any longer: they are taken back.
fn marks_of_others(view: &GroupView, batching: &Batching) -> Vec<Mark> {
    let others = view.roles.iter().filter(|(name, _)| !batching.sizes.contains_key(*name));
    others.flat_map(|(_, role)| taken_back(role)).collect()
}

/// Marks of a group whose workloads nobody scales any longer: they are taken back.
pub(in crate::plan) fn stray_marks(group: &Group, view: &GroupView) -> Vec<Mark> {
    if group.elastic.is_some() || group.status.draining.is_none() {
        return Vec::new();
    }
    view.roles.values().flat_map(taken_back).collect()
}

fn taken_back(role: &RoleView) -> impl Iterator<Item = Mark> {
    role.replicas.draining(..).map(|pod| Mark::draining(&pod.pod, false, true))
}

#[cfg(test)]
#[path = "elastic_tests.rs"]
mod tests;
