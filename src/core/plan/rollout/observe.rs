//! Observation of the open rollouts of a group.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::behind::Behind;
use super::cohorts::{RolledRole, cohorts};
use super::standing::{Standings, at_rest, observed, of_open};
use super::{Edit, Ordinal, Pauses, RoleRollout, RolloutPlan, Stage, floor};
use crate::api::status::{Cohorts, ObservedWorkload};
use crate::model::moment::Moment;
use crate::model::rolling::FROZEN;
use crate::model::{Group, OwnUpdate, RolledWorkload, RollingBounds};
use crate::plan::view::{GroupPods, GroupView, PodFacts, Replicas};
use crate::rules::Violation;

#[derive(Clone, Debug, Default)]
pub struct Rollouts {
    /// The bounds of the rolling updates.
    pub bounds: Vec<RollingBounds>,
    /// The open rollouts by role.
    pub roles: BTreeMap<String, RoleRollout>,
    /// The workload of each of these roles.
    pub workloads: BTreeMap<String, RolledWorkload>,
    /// Roles with rolling updates whose workload nothing claims.
    pub unclaimed: BTreeSet<String>,
    /// The standings of roles with rolling updates whose rollout is closed.
    pub closed: Standings,
    /// The workload of each role with rolling updates, as the status reports it.
    pub observed: BTreeMap<String, ObservedWorkload>,
    /// Workloads with an open rollout that nothing coordinates (any longer): they are thawed.
    pub strays: Vec<RolledWorkload>,
    /// The updates of StatefulSets by themselves, by role.
    pub updates: BTreeMap<String, OwnUpdate>,
    /// What such updates wait for, once decided.
    pub behind: BTreeMap<String, Behind>,
    /// The cohorts to commit before a partition moves.
    pub cohorts: Option<Cohorts>,
    /// Roles that are not rolled, each with the reason: what the group or the workload is set to.
    pub barred: BTreeMap<String, String>,
    /// The inputs on pauses.
    pub pauses: Pauses,
    /// The steps under way, once decided.
    pub stages: Vec<Stage>,
}

impl Rollouts {
    /// Observes the rollouts of a group. `now` is the current time; `edit` returns what is remembered of the last edit of a workload.
    pub(in crate::plan) fn observe(
        group: &Group,
        view: &GroupView,
        pods: &GroupPods,
        (workloads, now): (&[RolledWorkload], Option<Moment>),
        edit: impl Fn(&RolledWorkload) -> Edit,
    ) -> Self {
        let bounds = RollingBounds::all_of(group);
        let mut seen = Self::default();
        let is_held = |workload: &&RolledWorkload| workload.is_open() && workload.takes_partition;
        let (mut open, closed): (Vec<_>, Vec<_>) = workloads.iter().partition(is_held);
        seen.strays.extend(closed.iter().filter(|workload| workload.is_open()).map(|workload| (*workload).clone()));
        // If two workloads claim one role, the one that the role names wins.
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
            let base = base(view, workload);
            let ordinals = ordinals(view, workload, base.as_deref(), group.status.replicas_served(role));
            // Some controllers name the update revision as the base when all replicas have it.
            let is_left = ordinals.iter().any(|replica| !replica.updated);
            let rollout = RoleRollout {
                partition: workload.partition,
                floor: workload.asked_partition(),
                ordinals,
                judged: workload.observed && workload.update_revision.is_some(),
                round: edit.round,
                settled,
                stuck: false,
                may_run: 0,
                revision: workload.update_revision.clone(),
                remade: is_remade(&bounds, workload),
                at_once: workload.at_once,
                ordered: workload.ordered,
                back: is_left && base.is_some() && base == workload.update_revision,
                can_return: can_return(view, workload),
                resized: is_resized(view, workload),
                returns: false,
            };
            seen.roles.insert(role.clone(), rollout);
            seen.workloads.insert(role.clone(), workload.clone());
        }
        for name in seen.gone_back(group, &bounds) {
            if let (Some(role), Some(workload)) = (seen.roles.get_mut(&name), seen.workloads.get(&name)) {
                turn(role, view, workload);
            }
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
        let pauses = Pauses::of(group, &bounds, now);
        Self { bounds, cohorts, pauses, ..seen }
    }

    /// Returns the roles whose rollout goes back by the status. An edit of one of its roles, once observed, begins the rollout anew; a
    /// role that took no part and has nothing to update stays out of it.
    fn gone_back(&self, group: &Group, bounds: &[RollingBounds]) -> BTreeSet<String> {
        let back = |bounds: &RollingBounds| {
            let stored = group.status.coordination(&bounds.name)?.rollout.as_ref();
            let revisions = &stored.filter(|stored| stored.rolled_back.is_some())?.revisions;
            let is_out = |role: &String| {
                !revisions.contains_key(role) && !self.roles.get(role).is_some_and(RoleRollout::has_old)
            };
            let is_same = |(role, workload): (&String, &RolledWorkload)| {
                let known = workload.update_revision.as_ref().filter(|_| workload.observed && bounds.has(role));
                known.is_none() || known == revisions.get(role) || is_out(role)
            };
            let roles =
                || bounds.roles.iter().filter(|role| revisions.contains_key(*role)).cloned().collect::<Vec<_>>();
            self.workloads.iter().all(is_same).then(roles)
        };
        bounds.iter().filter_map(back).flatten().collect()
    }

    /// Reports whether the rollout of a role goes back.
    pub(in crate::plan) fn returns(&self, role: &str) -> bool {
        self.roles.get(role).is_some_and(|role| role.returns)
    }

    /// Returns the standing of each role with rolling updates.
    pub fn standings(&self, plan: &RolloutPlan) -> Standings {
        let open = |(name, role): (&String, &RoleRollout)| {
            (name.clone(), of_open(role, plan.get(name).map(|plan| plan.state)))
        };
        self.closed.clone().into_iter().chain(self.roles.iter().map(open)).collect()
    }
}

impl Rollouts {
    /// Notes the pods whose deletion is under way, by unique id: a replica that goes back is about to be made again.
    pub(in crate::plan) fn note_deleted(&mut self, view: &GroupView, deleted: &HashSet<Arc<str>>) {
        for (name, role) in self.roles.iter_mut().filter(|(_, role)| role.returns && !deleted.is_empty()) {
            let Some(seen) = view.roles.get(name) else { continue };
            for (ordinal, replica) in (0..).zip(&mut role.ordinals) {
                if seen.replicas.pods_of(ordinal).iter().any(|pod| deleted.contains(&pod.pod.uid)) {
                    *replica = Ordinal { updated: true, ..Ordinal::default() };
                }
            }
        }
    }

    /// Notes the roles that are not rolled: those of a group with a fault, and those whose segments cannot be updated as a whole, for
    /// their controllers update replicas one after another and no pod may be deleted.
    pub(in crate::plan) fn bar(&mut self, fault: Option<&Violation>, off: bool) {
        let fault = fault.map(|fault| format!("{}: {fault}", fault.rule));
        let singly = |name: &String| {
            let workload =
                self.workloads.get(name).filter(|_| off && self.roles.get(name).is_some_and(|role| role.remade))?;
            Some(format!(
                "`by: Segment` replaces the replicas of a segment together, {} replaces fewer at once, and rolegate runs without \
                 `--allow recovery`",
                workload.key
            ))
        };
        let why = |bounds: &RollingBounds| fault.clone().or_else(|| bounds.roles.iter().find_map(singly));
        let barred = self.bounds.iter().filter_map(|bounds| Some((bounds, why(bounds)?)));
        self.barred =
            barred.flat_map(|(bounds, why)| bounds.roles.iter().map(move |role| (role.clone(), why.clone()))).collect();
    }

    /// Reports whether a rollout of the role may have stopped one of these replicas: that it has no room then may be due to its new
    /// version, and each further one would follow.
    pub(in crate::plan) fn may_have_stopped(&self, role: &str, ordinals: Range<u32>) -> bool {
        let is_as_before = |rollout: &RoleRollout, ordinal| {
            let replica = rollout.at(ordinal);
            !(replica.updated || replica.given_up)
        };
        self.roles.get(role).is_some_and(|rollout| {
            rollout.returns || !rollout.judged || ordinals.into_iter().any(|ordinal| !is_as_before(rollout, ordinal))
        })
    }

    /// Notes the decision on pods: `released` replicas of each batched role may run, the held ones for which `displaced` returns true
    /// have lost their place, and pods for which `goes` returns true are about to be released, such as a pod that its workload has just
    /// recreated.
    pub(in crate::plan) fn decided(
        &mut self,
        view: &GroupView,
        released: &BTreeMap<String, u32>,
        displaced: impl Fn(&str, u32) -> bool,
        goes: impl Fn(&PodFacts) -> bool,
    ) {
        for (name, role) in &mut self.roles {
            role.may_run = released.get(name).copied().unwrap_or(u32::MAX);
            let Some(seen) = view.roles.get(name) else { continue };
            for (ordinal, replica) in (0..).zip(&mut role.ordinals).filter(|(_, replica)| replica.held) {
                replica.held = seen.replicas.pods_of(ordinal).iter().any(|pod| pod.held && !goes(pod));
                replica.displaced = replica.held && displaced(name, ordinal);
            }
        }
    }

    /// Returns the first of these replicas of a role that is old, and that the rollout makes new before it runs: its pods are held, so
    /// they may be deleted at once. Steps bound how many new pods there are, and a controller that makes pods in order would make none.
    pub(in crate::plan) fn made_new(&self, role: &str, mut ordinals: Range<u32>) -> Option<u32> {
        let rollout = self.roles.get(role).filter(|rollout| !rollout.returns && !rollout.ordered)?;
        rollout.at_once.filter(|_| !self.pauses.off && !self.barred.contains_key(role))?;
        let has_steps = |bounds: &RollingBounds| bounds.has(role) && !bounds.steps.is_empty();
        let floor = floor(&self.bounds, role, rollout);
        let is_old = |replica: Ordinal| replica.held && !(rollout.judged && replica.updated);
        let first = ordinals.find(|ordinal| *ordinal >= floor && is_old(rollout.at(*ordinal)));
        first.filter(|_| !self.bounds.iter().any(has_steps))
    }

    /// Reports whether old pods of a role without an open rollout are deleted, since they are not ready.
    pub(in crate::plan) fn deletes_broken(&self, role: &str) -> bool {
        self.behind.get(role).is_some_and(|behind| !behind.broken.is_empty())
    }

    /// Decides which controllers need help to replace old pods. `may_delete` reports whether pods may be deleted, and `rests` that none
    /// is released now: a controller does not wait for ever for those that are.
    pub(in crate::plan) fn help(
        &mut self,
        view: &GroupView,
        released: &BTreeMap<String, u32>,
        may_delete: bool,
        rests: bool,
    ) {
        for role in self.roles.values_mut() {
            role.remade = may_delete && (role.remade || rests && role.needs_deletions());
        }
        let own = self.updates.iter().filter(|(name, _)| !self.roles.contains_key(*name));
        let of_role = |(name, update): (&String, &OwnUpdate)| {
            Some((name.clone(), Behind::of(view.roles.get(name)?, *released.get(name)?, update, may_delete)?))
        };
        self.behind = own.filter_map(of_role).collect();
    }
}

/// Reports whether a coordination updates the role and the role does not refer to another workload. The default name of the
/// workload of a RoleBasedGroup's role does not count as a reference: the labels of a workload claim the role.
fn is_coordinated(group: &Group, bounds: &[RollingBounds], workload: &RolledWorkload) -> bool {
    let name = &workload.claim.role;
    let refers = group.role(name).is_some_and(|role| role.workload.reference.is_some());
    (!refers || is_named(group, workload)) && bounds.iter().any(|bounds| bounds.has(name))
}

/// Reports whether the role expects its pods from this workload.
fn is_named(group: &Group, workload: &RolledWorkload) -> bool {
    group.role(&workload.claim.role).is_some_and(|role| role.workload.key.as_ref() == Some(&workload.key))
}

/// Reports whether the controller of a workload replaces fewer pods at once than a segment has, and others may be deleted.
fn is_remade(bounds: &[RollingBounds], workload: &RolledWorkload) -> bool {
    let mut sizes = bounds.iter().filter_map(|bounds| bounds.segments.as_ref()?.get(&workload.claim.role));
    !workload.ordered && workload.at_once.is_some_and(|most| sizes.any(|size| most < *size))
}

/// Reports whether the controller of a workload makes replicas below the partition again at an older revision. A LeaderWorkerSet does
/// not tell its current revision: an old replica shows that it has one.
fn can_return(view: &GroupView, workload: &RolledWorkload) -> bool {
    let is_older = |revision: Option<&str>| revision.is_some() && revision != workload.update_revision.as_deref();
    match workload.current_revision.as_deref() {
        Some(current) => is_older(Some(current)),
        None => pods_of(view, workload).any(|pod| is_older(pod.revision.as_deref())),
    }
}

/// Reports whether a rollout changes the number of pods in a replica: a controller would make old replicas again with the new number.
fn is_resized(view: &GroupView, workload: &RolledWorkload) -> bool {
    let is_old =
        |pod: &&PodFacts| pod.revision.is_some() && pod.revision.as_deref() != workload.update_revision.as_deref();
    pods_of(view, workload).filter(is_old).any(|pod| pod.identity.replica_size != workload.replica_size)
}

/// Turns a rollout round. Before its controller has observed a partition above the top, a deleted pod would come back as it was.
fn turn(role: &mut RoleRollout, view: &GroupView, workload: &RolledWorkload) {
    if workload.current_revision.is_some() && workload.current_revision == workload.update_revision {
        return;
    }
    role.judged &= workload.partition == FROZEN;
    (role.partition, role.back, role.returns) = (FROZEN, true, true);
    let none = Replicas::default();
    let replicas = view.roles.get(&workload.claim.role).map_or(&none, |role| &role.replicas);
    for (ordinal, replica) in (0..).zip(&mut role.ordinals) {
        replica.updated = !replicas.pods_of(ordinal).iter().any(|pod| workload.leaves(pod.revision.as_deref()));
        replica.given_up = false;
    }
}

/// Reports whether all roles of each coordination of this workload carry its rollout id, edited or not. An id of an earlier
/// edit does not count.
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

fn pods_of<'a>(view: &'a GroupView, workload: &RolledWorkload) -> impl Iterator<Item = &'a PodFacts> + use<'a> {
    let pods = view.roles.get(&workload.claim.role).map(|role| role.replicas.pods()).into_iter().flatten();
    pods.map(|(_, pod)| &**pod)
}

/// Returns the revision that the pods of a workload come from: if it does not tell, that of its lowest pod.
fn base(view: &GroupView, workload: &RolledWorkload) -> Option<String> {
    let lowest = || pods_of(view, workload).find_map(|pod| pod.revision.as_ref()).map(ToString::to_string);
    workload.current_revision.clone().or_else(lowest)
}

/// Returns the desired replicas of a workload. Revisions are read from the pods: the counts of the workload status are stale
/// right after an edit, and do not say which ordinals they mean.
fn ordinals(view: &GroupView, workload: &RolledWorkload, base: Option<&str>, served: u32) -> Vec<Ordinal> {
    let none = Replicas::default();
    let role = view.roles.get(&workload.claim.role);
    let (replicas, served) = role.map_or((&none, served), |role| (&role.replicas, role.served(served)));
    let update = workload.update_revision.as_deref();
    let is = |pod: &PodFacts, other: Option<&str>| pod.revision.as_deref() == other;
    let ordinal = |ordinal: u32| {
        let Some(replica) = replicas.get(ordinal) else {
            let updated = update.is_some() && update == base;
            return Ordinal { updated, new: ordinal >= served, ..Ordinal::default() };
        };
        let pods = replicas.pods_of(ordinal);
        let updated = pods.iter().all(|pod| is(pod, update));
        Ordinal {
            updated,
            ready: replica.is_ready(),
            held: replica.held > 0,
            new: ordinal >= served,
            displaced: false,
            given_up: !updated && pods.iter().all(|pod| !is(pod, update) && !is(pod, base)),
        }
    };
    (0..workload.desired).map(ordinal).collect()
}
