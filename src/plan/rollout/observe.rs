//! What is seen of the open rollouts of a group.

use std::collections::{BTreeMap, BTreeSet};

use super::cohorts::{RolledRole, cohorts};
use super::standing::{Standings, at_rest, observed, of_open};
use super::{Edit, Ordinal, RoleRollout, RolloutPlan};
use crate::api::status::{Cohorts, ObservedWorkload};
use crate::model::{Group, RolledWorkload, RollingBounds};
use crate::plan::view::{GroupPods, GroupView, PodFacts, Replicas};

/// The open rollouts of a group.
#[derive(Clone, Debug, Default)]
pub struct Rollouts {
    /// Their bounds.
    pub bounds: Vec<RollingBounds>,
    /// By role.
    pub roles: BTreeMap<String, RoleRollout>,
    /// The workload of each of these roles.
    pub workloads: BTreeMap<String, RolledWorkload>,
    /// Roles that are to be rolled, and of which no workload is claimed.
    pub unclaimed: BTreeSet<String>,
    /// How the roles stand that are rolled, and of which no rollout is open.
    pub closed: Standings,
    /// The workload of each role whose updates come to rolegate, as the status speaks of it.
    pub observed: BTreeMap<String, ObservedWorkload>,
    /// Workloads with an open rollout that nothing coordinates (any longer): they are thawed.
    pub strays: Vec<RolledWorkload>,
    /// Which pods are rolled together, as it is to be committed before a partition moves.
    pub cohorts: Option<Cohorts>,
}

impl Rollouts {
    /// What is seen of a group. `edit` says what is remembered of the last edit of a workload.
    pub(in crate::plan) fn observe(
        group: &Group,
        view: &GroupView,
        pods: &GroupPods,
        workloads: &[RolledWorkload],
        edit: impl Fn(&RolledWorkload) -> Edit,
    ) -> Self {
        let bounds = RollingBounds::all_of(group);
        let mut seen = Self::default();
        let (mut open, closed): (Vec<_>, Vec<_>) = workloads.iter().partition(|workload| workload.is_open());
        // Where two claim one role, the workload that has the name of the role's is the one.
        open.sort_by_key(|workload| !is_named(group, workload));
        let mut rolled: Vec<RolledRole<'_>> = Vec::new();
        for workload in open {
            let role = &workload.claim.role;
            if workload.unclaimed || seen.workloads.contains_key(role) || !is_coordinated(group, &bounds, workload) {
                seen.strays.push(workload.clone());
                continue;
            }
            let edit = edit(workload);
            let settled = edit.settled || edited_together(&bounds, workloads, workload, &edit);
            rolled.push(RolledRole { workload, edit: Edit { settled, ..edit.clone() } });
            let rollout = RoleRollout {
                partition: workload.partition,
                floor: workload.asked_partition(),
                ordinals: ordinals(view, workload),
                judged: workload.observed && workload.update_revision.is_some(),
                round: edit.round,
                settled,
                stuck: false,
                may_run: 0,
            };
            seen.roles.insert(role.clone(), rollout);
            seen.workloads.insert(role.clone(), workload.clone());
        }
        let claimed = |role: &String| workloads.iter().any(|one| !one.unclaimed && one.claim.role == *role);
        let named = bounds.iter().flat_map(|bounds| &bounds.roles);
        seen.unclaimed = named.filter(|role| group.role(role).is_some() && !claimed(role)).cloned().collect();
        for workload in closed {
            let is_known = rolled.iter().any(|known| known.workload.claim.role == workload.claim.role);
            if !workload.unclaimed && !is_known && is_coordinated(group, &bounds, workload) {
                rolled.push(RolledRole { workload, edit: Edit::long_ago() });
                seen.closed.insert(workload.claim.role.clone(), at_rest(group, view, workload));
            }
        }
        let spoken_of =
            |role: &RolledRole<'_>| Some((role.workload.claim.role.clone(), observed(group, role.workload)?));
        seen.observed = rolled.iter().filter_map(spoken_of).collect();
        let cohorts = cohorts(group, &bounds, pods, &rolled);
        Self { bounds, cohorts, ..seen }
    }

    /// How each role stands whose updates come to rolegate.
    pub fn standings(&self, plan: &RolloutPlan) -> Standings {
        let open = |(name, role): (&String, &RoleRollout)| {
            (name.clone(), of_open(role, plan.get(name).map(|plan| plan.state)))
        };
        self.closed.clone().into_iter().chain(self.roles.iter().map(open)).collect()
    }
}

impl Rollouts {
    /// Notes what is decided of the pods: so many replicas of each batched role may run, and those of `goes` are held no
    /// longer in a moment. One that its workload has just made anew is such a pod.
    pub(in crate::plan) fn decided(
        &mut self,
        view: &GroupView,
        released: &BTreeMap<String, u32>,
        goes: impl Fn(&PodFacts) -> bool,
    ) {
        for (name, role) in &mut self.roles {
            role.may_run = released.get(name).copied().unwrap_or(u32::MAX);
            let Some(seen) = view.roles.get(name) else { continue };
            for (ordinal, replica) in (0..).zip(&mut role.ordinals).filter(|(_, replica)| replica.held) {
                replica.held = seen.replicas.pods_of(ordinal).iter().any(|pod| pod.held && !goes(pod));
            }
        }
    }
}

/// A coordination updates the role, and does not say that another workload makes its pods. The name that a RoleBasedGroup
/// would give to the workload of a role says nothing: its labels claim it.
fn is_coordinated(group: &Group, bounds: &[RollingBounds], workload: &RolledWorkload) -> bool {
    let name = &workload.claim.role;
    let refers = group.role(name).is_some_and(|role| role.workload.reference.is_some());
    (!refers || is_named(group, workload)) && bounds.iter().any(|bounds| bounds.has(name))
}

/// The workload is the one that the role's pods are expected from.
fn is_named(group: &Group, workload: &RolledWorkload) -> bool {
    group.role(&workload.claim.role).is_some_and(|role| role.workload.key.as_ref() == Some(&workload.key))
}

/// All roles of each coordination of this one carry the same rollout id, whether they were edited or not; not that of an
/// earlier edit.
fn edited_together(
    bounds: &[RollingBounds],
    workloads: &[RolledWorkload],
    workload: &RolledWorkload,
    edit: &Edit,
) -> bool {
    let Some(id) = workload.rollout_id.as_ref().filter(|id| edit.stale_id.as_ref() != Some(*id)) else { return false };
    let carries = |role: &String| {
        workloads.iter().any(|other| other.claim.role == *role && other.rollout_id.as_ref() == Some(id))
    };
    bounds.iter().filter(|bounds| bounds.has(&workload.claim.role)).all(|bounds| bounds.roles.iter().all(carries))
}

/// The desired replicas of a workload. Revisions are read from the pods: the counts of its status are stale right after an
/// edit, and do not say which ordinals they mean.
fn ordinals(view: &GroupView, workload: &RolledWorkload) -> Vec<Ordinal> {
    let none = Replicas::default();
    let replicas = view.roles.get(&workload.claim.role).map_or(&none, |role| &role.replicas);
    let lowest = || replicas.pods().find_map(|(_, pod)| pod.revision.as_ref()).map(ToString::to_string);
    let (update, base) = (workload.update_revision.clone(), workload.current_revision.clone().or_else(lowest));
    let is = |pod: &PodFacts, other: &Option<String>| pod.revision.as_deref() == other.as_deref();
    let ordinal = |ordinal: u32| {
        let Some(replica) = replicas.get(ordinal) else {
            return Ordinal { updated: update.is_some() && update == base, ..Ordinal::default() };
        };
        let pods = replicas.pods_of(ordinal);
        let updated = pods.iter().all(|pod| is(pod, &update));
        Ordinal {
            updated,
            ready: replica.is_ready(),
            held: replica.held > 0,
            given_up: !updated && pods.iter().all(|pod| !is(pod, &update) && !is(pod, &base)),
        }
    };
    (0..workload.desired).map(ordinal).collect()
}
