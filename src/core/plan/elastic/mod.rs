//! Elastic groups: the replicas that each workload should have now, and the segments to take away. Pure.
//!
//! Growth belongs to the progression: a workload has the replicas that are released and no more, so that no pod is created only
//! to be held. A scale-in is committed first (`status.draining`), then its pods are marked, and after the drain time the
//! workloads lose one segment at a time, all of them before the next.

pub(in crate::plan) mod scale_pods;
mod text;

pub use text::{Told, ineffective, of as taken_away, segments_line};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::status::Draining;
use crate::model::words::words;
use crate::model::{Batching, Elastic, Group, HoldReason, ScaledWorkload};
use crate::plan::marks::Mark;
use crate::plan::view::{GroupView, PodFacts, ReplicaIs, RoleView};

words! {
/// The reason why a scale-in is deferred.
pub enum Deferral {
    /// A rollout is open: it replaces pods from the top.
    Rollout = "a rollout is open",
    /// A batch is being recreated.
    Recovery = "a batch is being made again",
}
}

/// The wait of the next segment, whose pods are created once it has room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomWait {
    /// The number of the segment, from 0.
    pub batch: u32,
    /// Whether there is no room, or the room is not known yet.
    pub reason: HoldReason,
    pub message: String,
}

/// The inputs of a plan beside the pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElasticContext<'a> {
    /// The workloads that the group claims.
    pub workloads: &'a [ScaledWorkload],
    /// Whether the drain time of the committed scale-in is over.
    pub drained: bool,
    /// The error of the last failed scale of a workload, by role.
    pub failures: Option<&'a BTreeMap<String, String>>,
}

/// The plan for a group whose workloads are scaled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElasticPlan {
    /// The number of wanted segments.
    pub wanted: u32,
    /// The number of whole released segments.
    pub released: u32,
    /// The number of segments with pods.
    pub present: u32,
    /// The scale-in to commit.
    pub draining: Option<Draining>,
    /// The reason why a scale-in is deferred.
    pub deferred: Option<Deferral>,
    /// The wait of the next segment, whose pods are created once it has room.
    pub room_wait: Option<RoomWait>,
    /// The scale of each workload with a wrong number of replicas, by role.
    pub scales: BTreeMap<String, Scale>,
    /// Changes to the draining mark of pods.
    pub marks: Vec<Mark>,
    /// Changes to the label that makes a pod count for autoscalers.
    pub scale_pods: Vec<Mark>,
    /// The error of the last failed scale of a workload, by role.
    pub failures: BTreeMap<String, String>,
}

/// The number of segments of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts {
    pub wanted: u32,
    pub released: u32,
    /// Segments with pods.
    pub present: u32,
    /// Segments that are taken away.
    pub draining: u32,
    /// Surplus segments whose scale-in is deferred.
    pub deferred: u32,
}

impl ElasticPlan {
    pub fn counts(&self) -> SegmentCounts {
        let Self { wanted, released, present, .. } = *self;
        let draining = self.draining.map_or(0, |draining| draining.to.saturating_sub(draining.from));
        let deferred = if self.deferred.is_some() { released.saturating_sub(wanted) } else { 0 };
        SegmentCounts { wanted, released, present, draining, deferred }
    }
}

/// A scale of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The workload as it was read.
    pub workload: ScaledWorkload,
    /// The new number of replicas.
    pub to: u32,
}

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

    /// Returns the committed number of replicas that may run.
    fn committed(&self) -> Option<u32> {
        self.view.committed
    }

    /// Counts the segments with pods. A rollout with `maxSurge` creates pods beyond the replicas of a workload; held pods among
    /// these do not count: they wait for the workload to be scaled, and the workload does not wait for them.
    fn present(&self) -> u32 {
        let replicas = &self.view.replicas;
        let all = replicas.pods_in(..).replicas;
        let held = if self.workload.has_old_pods { replicas.count_in(.., ReplicaIs::Untouched) } else { 0 };
        let surge = all.saturating_sub(self.workload.desired).min(held);
        all.saturating_sub(surge).div_ceil(self.size)
    }

    /// Counts the segments that have pods or should have them.
    fn segments(&self) -> u32 {
        self.workload.desired.div_ceil(self.size).max(self.present())
    }
}

/// Plans the scaling of a group; `None` if its workloads are not scaled, or one of them is not known. `released` holds the
/// decided counts, `deferral` the reason to defer a scale-in.
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
    // A scale follows the stored status only.
    let scales = scales(group.status.draining, &roles, context.drained);
    // Another client may have made a failed scale superfluous.
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

/// Returns the scale-in to commit. A committed scale-in is finished before another begins; segments that are wanted again stay.
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

/// Returns the scales that follow from the stored status.
fn scales(draining: Option<Draining>, roles: &[Scaled<'_>], drained: bool) -> BTreeMap<String, Scale> {
    let highest = roles.iter().map(Scaled::segments).max().unwrap_or(0);
    let to = |role: &Scaled<'_>| {
        // The size is unknown before the first commit.
        let committed = role.committed()?;
        let has = role.workload.desired;
        let to = match draining {
            None => committed,
            Some(Draining { from, to }) => {
                let most = role.replicas(to).max(committed);
                // All roles lose a segment before any role loses the next.
                let step = if drained { role.replicas(from.max(highest.saturating_sub(1))) } else { most };
                has.min(step.min(most)).max(committed)
            }
        };
        (to != has).then(|| (role.name.to_owned(), Scale { workload: role.workload.clone(), to }))
    };
    roles.iter().filter_map(to).collect()
}

/// Marks pods that are about to be taken away as draining, and removes the mark from pods that stay.
fn marks(draining: Option<Draining>, roles: &[Scaled<'_>]) -> Vec<Mark> {
    let of_role = |role: &Scaled<'_>| {
        let from = draining.map_or(u32::MAX, |draining| role.replicas(draining.from));
        let by_cost = !role.workload.key.kind.row().numbered;
        let mark = move |pod: &Arc<PodFacts>, draining| Mark::draining(&pod.pod, draining, by_cost);
        // Held pods do not serve and need no mark.
        let leaving = role.view.replicas.pods_from(from).filter(|pod| !pod.held && !pod.draining);
        let staying = role.view.replicas.draining(..from);
        let leaving: Vec<_> = leaving.map(|pod| mark(pod, true)).collect();
        leaving.into_iter().chain(staying.map(|pod| mark(pod, false))).collect::<Vec<_>>()
    };
    roles.iter().flat_map(of_role).collect()
}

/// Removes the draining mark from pods of roles that have left the segments.
fn marks_of_others(view: &GroupView, batching: &Batching) -> Vec<Mark> {
    let others = view.roles.iter().filter(|(name, _)| !batching.sizes.contains_key(*name));
    others.flat_map(|(_, role)| taken_back(role)).collect()
}

/// Removes the draining mark from pods of a group whose workloads are no longer scaled.
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
