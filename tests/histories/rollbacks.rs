//! Rollouts that go back (KEP-32, Rollback capabilities), checked independently of the planner.

use rolegate::model::RolledWorkload;
use rolegate::model::moment::Moment;
use rolegate::model::rolling::FROZEN;

use crate::history::Step;
use crate::lockstep::{Ordinal, count, ordinals, role_of};
use crate::nature::is_ready;
use crate::prelude::*;
use crate::replica::{Answer, Request};
use crate::sets::{Set, revision_of};
use crate::settle::settle;
use crate::steps::now;

/// The image whose pods do not get ready, in histories that have one.
pub const BROKEN: u32 = 3;
/// Time after which a rollout fails.
pub const FAIL_AFTER: Duration = Duration::from_secs(60);

/// Returns the state of the rollout in a status.
fn state(status: &GroupStatus) -> Option<&RolloutState> {
    status.coordination_state.iter().find_map(|state| state.rollout.as_ref())
}

/// Returns the revisions from which the rollout went back.
fn tried(status: &GroupStatus) -> Option<&BTreeMap<String, String>> {
    state(status).filter(|state| state.rolled_back.is_some()).map(|state| &state.revisions)
}

/// Returns the claimed workloads with an open rollout.
fn open(snapshot: &Snapshot) -> impl Iterator<Item = &RolledWorkload> {
    let open = snapshot.workloads.iter().filter(|workload| workload.is_open() && !workload.unclaimed);
    open.filter(|workload| role_of(workload) < ROLLED)
}

/// Reports whether a status says that the rollout goes back from what the templates say now. A role that took no part and has no old
/// replica does not count: its edit was undone.
pub fn goes_back(status: &GroupStatus, snapshot: &Snapshot) -> bool {
    tried(status).is_some_and(|tried| {
        let is_same = |open: &RolledWorkload| match tried.get(&open.claim.role) {
            Some(tried) => Some(tried) == open.update_revision.as_ref(),
            None => count(&ordinals(open, snapshot), |_, seen| !seen.updated) == 0,
        };
        open(snapshot).filter(|open| open.observed).all(is_same)
    })
}

/// R16: checks that a partition is raised only above the top, for a rollout that goes back, and lowered for no such rollout.
pub fn moves((workload, to): (&RolledWorkload, u32), snapshot: &Snapshot, stored: &Stored) -> Result<(), Broken> {
    let (role, back) = (&workload.claim.role, goes_back(&stored.status, snapshot));
    hold!(
        back == (to > workload.partition) && (!back || to == FROZEN),
        "R16: the partition of {role} goes from {} to {to}, and its rollout goes back: {back}",
        workload.partition
    );
    Ok(())
}

/// R17: checks that a pod is deleted for a rollback only when that is stored, all controllers have seen that they must make its
/// successor at the old revision, and not too many are down.
pub fn deletes(
    replica: &Replica,
    pod: &PodRef,
    (snapshot, requests): (&Snapshot, &[Request]),
    stored: Option<&Stored>,
) -> Result<(), Broken> {
    let may = stored.filter(|stored| stored.wish != Wish::Wrong && snapshot.lets_go().is_none());
    let Some((rolling, stored)) = may.and_then(|stored| Some((stored.rolling?, stored))) else {
        return Err(Broken(format!("R17: {} is deleted for no rollout", pod.name)));
    };
    hold!(goes_back(&stored.status, snapshot), "R17: {} is deleted, and no rollback is stored", pod.name);
    for other in open(snapshot).filter(|other| other.current_revision != other.update_revision) {
        let is_frozen = other.observed && other.partition == FROZEN;
        hold!(is_frozen, "R17: {} is deleted, and {} may still make new pods", pod.name, other.claim.role);
    }
    let facts = snapshot.pods.iter().find(|known| known.pod == *pod);
    let of_role =
        |open: &&RolledWorkload| facts.is_some_and(|pod| pod.identity.role.as_deref() == Some(&*open.claim.role));
    let (Some(facts), Some(workload)) = (facts, open(snapshot).find(of_role)) else {
        return Err(Broken(format!("R17: {} is deleted, and is of no rollout", pod.name)));
    };
    hold!(
        facts.revision.as_deref() != workload.current_revision.as_deref(),
        "R17: {} is deleted, and is of the revision that the rollout goes back to",
        pod.name
    );
    if rolling.by_segment || !facts.ready || facts.held {
        return Ok(());
    }
    let is_this = |one: &Request, uid: &Arc<str>| matches!(one, Request::Undo(pod) if pod.uid == *uid);
    let goes = |uid: &Arc<str>| {
        let asked = requests.iter().chain(&replica.requests).any(|one| is_this(one, uid));
        let mut answers = replica.answers.iter();
        let answered = answers.any(|one| matches!(one, Answer::Deleted(pod, _) if pod.uid == *uid));
        asked || answered || replica.deleted.contains(uid) || replica.undeleted.contains(uid)
    };
    let is_down = |pod: &&Arc<PodFacts>| {
        let is_of = pod.identity.role.as_deref() == Some(&*workload.claim.role) && !pod.held;
        is_of && pod.ready && goes(&pod.pod.uid)
    };
    let leaving = u32::try_from(snapshot.pods.iter().filter(is_down).count()).unwrap();
    let down = leaving + count(&ordinals(workload, snapshot), |_, seen| seen.is_down());
    hold!(
        down <= rolling.unavailable,
        "R17: {down} of {} are down without {}, and {} may be",
        workload.claim.role,
        pod.name,
        rolling.unavailable
    );
    Ok(())
}

/// Checks what a status says of rollbacks.
pub fn says(
    replica: &Replica,
    status: &GroupStatus,
    stored: &Stored,
    snapshot: &Snapshot,
    at: Duration,
) -> Result<(), Broken> {
    begins(replica, status, stored, snapshot, at)?;
    stays(status, stored, snapshot)
}

/// R18: checks that a rollout goes back for a reason, and only where all its roles can.
fn begins(
    replica: &Replica,
    status: &GroupStatus,
    stored: &Stored,
    snapshot: &Snapshot,
    at: Duration,
) -> Result<(), Broken> {
    let Some(after) = state(status).filter(|after| after.rolled_back.is_some()) else { return Ok(()) };
    if tried(&stored.status) == Some(&after.revisions) {
        return Ok(());
    }
    for role in after.revisions.keys() {
        let workload = open(snapshot).find(|open| open.claim.role == *role);
        let has_old = workload.is_some_and(|open| open.current_revision != open.update_revision);
        hold!(has_old, "R18: the rollout goes back, and {role} cannot: {workload:?}");
    }
    let began = after.since.as_deref().and_then(Moment::parse);
    let asked = stored.meta.annotation(names::ROLLED_BACK_AT).and_then(Moment::parse);
    let by_hand = asked.zip(began).is_some_and(|(asked, began)| asked >= began);
    let is_late = |open: &RolledWorkload| {
        let seen = ordinals(open, snapshot);
        count(&seen, |ordinal, seen| (seen.updated || ordinal >= open.partition) && !seen.ready) > 0
    };
    // A request of a person may put the beginning off by a second.
    let in_time = began.is_some_and(|began| now(at) < began.after(FAIL_AFTER / 2));
    let is_late = open(snapshot).any(is_late) || stored.step_lacks(replica, after.step);
    let failed = stored.rolling.is_some_and(|rolling| rolling.back) && is_late && !in_time;
    hold!(by_hand || failed, "R18: the rollout goes back, and nothing failed: {after:?}");
    Ok(())
}

/// R19: checks that a status forgets a rollback only with an edit, or when no rollout is open.
fn stays(status: &GroupStatus, stored: &Stored, snapshot: &Snapshot) -> Result<(), Broken> {
    let (Some(before), Some(after)) = (tried(&stored.status), state(status)) else { return Ok(()) };
    let is_forgotten = after.rolled_back.is_none() && after.revisions == *before;
    let is_rolled = stored.rolling.is_some() && open(snapshot).next().is_some();
    hold!(!is_forgotten || !is_rolled, "R19: it is forgotten that the rollout went back from {before:?}");
    Ok(())
}

/// R20: checks that no role replaces its last old replica while another role has more than one left to update.
pub fn keeps_last(
    (workload, to): (&RolledWorkload, u32),
    snapshot: &Snapshot,
    rolling: Rolling,
    stored: &Stored,
) -> Result<(), Broken> {
    let is_back = |open: &RolledWorkload| open.current_revision == open.update_revision;
    let seen = ordinals(workload, snapshot);
    let is_old = |ordinal: u32, seen: Ordinal| !seen.updated && ordinal < to;
    if !rolling.back || is_back(workload) || count(&seen, is_old) > 0 {
        return Ok(());
    }
    for other in open(snapshot).filter(|other| !is_back(other)) {
        let floor = stored.kept_old(role_of(other), other.desired).max(other.asked_partition());
        let is_left = |ordinal: u32, seen: Ordinal| ordinal >= floor && (!seen.updated || seen.is_down());
        let left = count(&ordinals(other, snapshot), is_left);
        let most = u32::from(floor == 0 || other.key == workload.key);
        hold!(
            left <= most,
            "R20: {} replaces its last old replica, and {left} of {} are left",
            workload.claim.role,
            other.claim.role
        );
    }
    Ok(())
}

impl Set {
    /// Reports whether the status of a group says that the rollout of the set went back from its template.
    fn went_back(&self, role: usize, server: &Server) -> bool {
        let tried = server.group.as_ref().and_then(|group| tried(&group.status)?.get(ROLES[role]));
        self.is_open() && self.is_observed() && tried.is_some_and(|tried| tried == self.update_revision())
    }
}

impl Server {
    /// Reports whether the rollout of a role went back, and is not to go forth again.
    pub fn has_gone_back(&self, role: usize) -> bool {
        let is_rolled = |set: &Set| set.is_open() && set.is_claimed();
        let mut all = self.sets.iter().enumerate().filter(|(_, set)| is_rolled(set));
        is_rolled(&self.sets[role]) && all.all(|(role, set)| set.went_back(role, self))
    }

    /// Asks for the open rollout to go back, as `rolegate rollback` does.
    pub fn roll_back(&mut self) {
        let since = self.group.as_ref().and_then(|group| state(&group.status)?.since.clone());
        let Some(since) = since.as_deref().and_then(Moment::parse) else { return };
        let at = now(self.now).max(since);
        self.annotate(names::ROLLED_BACK_AT, at.text());
    }
}

/// R21: checks that no pod of a revision from which the rollout went back is made again.
pub fn never_again(server: &mut Server) -> Result<(), Broken> {
    for (role, set) in server.sets.clone().into_iter().enumerate() {
        let is_over = set.went_back(role, server) && set.current_revision() != set.update_revision();
        let is_tried = |pod: &&Arc<Pod>| {
            let name = pod.metadata.name.as_deref().unwrap();
            crate::places::role_of(name) == role && revision_of(pod) == Some(set.update_revision())
        };
        let there = server.pods.values().filter(is_tried).filter_map(|pod| pod.metadata.uid.clone());
        let there: BTreeSet<_> = there.collect();
        let before = server.tried.remove(&role).filter(|(revision, _)| revision == set.update_revision());
        if !is_over {
            continue;
        }
        // From when its controller has seen it.
        if before.is_none() && !set.is_frozen() {
            continue;
        }
        if let Some((revision, before)) = before {
            let new: Vec<_> = there.difference(&before).collect();
            hold!(new.is_empty(), "R21: the rollout of {} went back from {revision}, and {new:?} are new", ROLES[role]);
        }
        server.tried.insert(role, (set.update_revision().to_owned(), there));
    }
    Ok(())
}

/// R22: checks that at rest all pods of a role that went back are of one revision, and ready or held.
pub fn judge(server: &Server, role: usize) -> Result<(), Broken> {
    let set = &server.sets[role];
    let is_back = |ordinal: &u32| {
        let pod = server.pods.get(&server.pod_of_set(role, *ordinal));
        pod.is_some_and(|pod| {
            revision_of(pod) == Some(set.current_revision()) && (is_ready(pod) || crate::server::is_held(pod))
        })
    };
    let left: Vec<_> = (0..set.replicas()).filter(|ordinal| !is_back(ordinal)).collect();
    hold!(left.is_empty(), "R22: the rollout of {} went back, and {left:?} did not", ROLES[role]);
    Ok(())
}

#[test]
fn what_does_not_get_ready_goes_back_with_the_other_role_and_the_next_edit_takes_both_forth() {
    let rolling = Some(Rolling { skew: 100, unavailable: 1, back: true, ..Rolling::default() });
    let setup = Setup { rolling, broken: true, ..Setup::plain([3, 2, 0]) };
    let mut world = World::new(&setup, None);
    let edit = |role: usize, image: u32| Step::Set(role, SetStep::Image(image));
    let steps = [Step::Flow(15), edit(0, BROKEN), edit(1, 1), Step::Flow(15), Step::Wait(FAIL_AFTER), Step::Flow(40)];
    for step in steps {
        world.step(&step).unwrap();
    }
    for role in 0..ROLLED {
        assert!(world.server.has_gone_back(role), "{:?}", world.server.group.as_ref().unwrap().status);
        judge(&world.server, role).unwrap();
    }
    world.step(&edit(0, 2)).unwrap();
    settle(&mut world).unwrap();
    for set in &world.server.sets {
        assert!(!set.is_open() && set.current_revision() == set.update_revision(), "{:?}", set.object);
    }
}
