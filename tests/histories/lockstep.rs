//! Checks rollouts in lockstep (KEP-30), independently of the planner.
//!
//! The skew between roles is checked only while a replica has seen each role at one revision at most since it last saw
//! no open rollout: only the loop remembers which of several edits belong together.

use rolegate::model::RolledWorkload;
use rolegate::model::rolling::FROZEN;

use crate::history::Step;
use crate::machines::MachineStep;
use crate::places::{Place, Places};
use crate::prelude::*;
use crate::rollbacks;
use crate::segments;
use crate::sets::revision_of;
use crate::settle::settle;
use crate::steps;

/// Committed cohorts by role and revision, while pods of the revision exist.
#[derive(Default)]
pub struct Ledger {
    recorded: BTreeMap<(usize, String), String>,
    /// The carrier of the commits; a new one starts over.
    carrier: String,
}

/// The revisions of open rollouts that a replica has seen since it last saw none open.
#[derive(Default)]
pub struct Edits {
    revisions: BTreeSet<(String, String)>,
    /// Whether it has seen a group without lockstep meanwhile.
    interrupted: bool,
}

impl Edits {
    pub fn note(&mut self, snapshot: &Snapshot, stored: Option<&Stored>) {
        let open = || snapshot.workloads.iter().filter(|workload| workload.is_open());
        if open().next().is_none() {
            *self = Self::default();
        }
        self.interrupted |= stored.is_none_or(|stored| stored.rolling.is_none());
        let known = open().filter(|workload| workload.observed);
        let known = known.filter_map(|set| Some((set.claim.role.clone(), set.update_revision.clone()?)));
        self.revisions.extend(known);
    }

    /// Reports whether each role was edited at most once.
    fn are_one_each(&self) -> bool {
        let roles: BTreeSet<_> = self.revisions.iter().map(|(role, _)| role).collect();
        !self.interrupted && roles.len() == self.revisions.len()
    }
}

pub fn role_of(workload: &RolledWorkload) -> usize {
    ROLES.iter().position(|role| *role == workload.claim.role).unwrap()
}

/// A replica of a role, as a pass sees it.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a replica")]
#[derive(Clone, Copy, Default)]
pub struct Ordinal {
    pub updated: bool,
    pub ready: bool,
    pub held: bool,
    /// None of its pods was ready since the role has so many replicas.
    pub new: bool,
    /// It has yet to serve, and counts for no share.
    pub out: bool,
    /// At neither of the set's two revisions.
    pub strange: bool,
}

impl Ordinal {
    /// Reports whether it does not serve, and should.
    pub fn is_down(self) -> bool {
        !(self.ready || self.held || self.new)
    }
}

pub fn ordinals(workload: &RolledWorkload, snapshot: &Snapshot) -> Vec<Ordinal> {
    let (to, from) = (workload.update_revision.as_deref(), workload.current_revision.as_deref());
    // Below the partition, a missing pod is recreated at the current revision.
    let missing = Ordinal { updated: to == from, ..Ordinal::default() };
    let mut ordinals = vec![missing; workload.desired as usize];
    let is_of = |pod: &&Arc<PodFacts>| pod.identity.role.as_deref() == Some(&*workload.claim.role);
    for pod in snapshot.pods.iter().filter(is_of) {
        let Some(ordinal) = pod.identity.ordinal.and_then(|ordinal| ordinals.get_mut(ordinal as usize)) else {
            continue;
        };
        let revision = pod.revision.as_deref();
        *ordinal = Ordinal {
            updated: revision == to,
            ready: pod.ready && !pod.held,
            held: pod.held,
            strange: revision != to && revision != from,
            ..Ordinal::default()
        };
    }
    let (role, group) = (&workload.claim.role, snapshot.claims.as_ref().map(|claims| &claims.group));
    let top = (1..).zip(&ordinals).filter(|(_, seen)| seen.ready).map(|(number, _)| number).max().unwrap_or(0);
    let served = group.map_or(0, |group| group.status.replicas_served(role)).max(top);
    // What is held beyond the replicas that the group declares is not let go, whatever was committed before.
    let declared = group.and_then(|group| group.role(role)).filter(|role| role.workload.reference.is_none());
    let most = declared.map_or(u32::MAX, |role| role.desired);
    let committed = group.and_then(|group| group.committed(role)).unwrap_or(0).min(most);
    let has_lost_its_place = |ordinal: u32| {
        let mut batches = group.into_iter().flat_map(|group| group.batches_of(role, ordinal));
        batches.any(|batch| domain_of(&batch.group.status, batch.coordination.index, batch.index) == Some(""))
    };
    for (ordinal, seen) in (0..).zip(&mut ordinals) {
        seen.new = ordinal >= served;
        seen.out = seen.new || seen.held && (ordinal >= committed || has_lost_its_place(ordinal));
    }
    ordinals
}

/// Returns the domain of a batch; an empty one is lost.
fn domain_of(status: &GroupStatus, coordination: usize, batch: u32) -> Option<&str> {
    let name = format!("c{coordination}");
    let state = status.coordination_state.iter().find(|state| state.name == name)?;
    state.domains.get(&batch.to_string()).map(String::as_str)
}

/// R24: checks that a batch loses its place only while nothing of it runs, and no rollout has stopped it for a new version.
fn loses_places(
    (status, group): (&GroupStatus, &Group),
    (snapshot, places): (&Snapshot, &Places),
    stored: &Stored,
) -> Result<(), Broken> {
    for (index, one) in stored.wish.coordinations().into_iter().enumerate() {
        for pod in snapshot.pods.iter() {
            let Place { role, ordinal, .. } = places[&*pod.pod.name];
            let desired = group.role(ROLES[role]).map_or(0, |role| role.desired);
            if one.sizes[role] == 0 || ordinal >= desired {
                continue;
            }
            let batch = ordinal / one.sizes[role];
            let (before, after) = (domain_of(&stored.status, index, batch), domain_of(status, index, batch));
            if after != Some("") || before == after {
                continue;
            }
            hold!(before.is_some(), "R24: batch {batch} has lost its place, and never had one");
            hold!(pod.held, "R24: batch {batch} has lost its place, and {} runs", pod.pod.name);
            let is_new = |open: &RolledWorkload| {
                let is_its = open.claim.role == ROLES[role] && open.is_open() && !open.unclaimed;
                is_its && (!open.observed || open.update_revision.as_deref() == pod.revision.as_deref())
            };
            let open = snapshot.workloads.iter().find(|open| role < ROLLED && is_new(open));
            hold!(
                open.is_none(),
                "R24: batch {batch} has lost its place, and {} may be made new: {open:?}",
                pod.pod.name
            );
        }
    }
    Ok(())
}

pub fn count(ordinals: &[Ordinal], test: impl Fn(u32, Ordinal) -> bool) -> u32 {
    let count = (0..).zip(ordinals).filter(|(ordinal, replica)| test(*ordinal, **replica)).count();
    u32::try_from(count).unwrap()
}

/// Checks a decision to set a partition.
pub fn decided(
    replica: &Replica,
    (workload, partition, ends): (&RolledWorkload, u32, bool),
    snapshot: &Snapshot,
    stored: Option<&Stored>,
    server: &Server,
) -> Result<(), Broken> {
    let role = &workload.claim.role;
    let known = snapshot.workloads.iter().find(|known| known.key == workload.key);
    hold!(known == Some(workload), "R1: the partition of {role} is set on what is not known: {workload:?}");
    hold!(workload.is_open(), "R1: the partition of {role} is set, and it has no open rollout");
    let rolling =
        stored.and_then(|stored| stored.rolling).filter(|_| snapshot.lets_go().is_none() && !workload.unclaimed);
    let seen = ordinals(workload, snapshot);
    if ends {
        let asked = workload.user_partition.unwrap_or(0);
        hold!(partition == asked, "R2: {role} gets {partition} back, and its user asked for {asked}");
        let is_over = workload.observed && seen.iter().all(|seen| seen.updated && !seen.is_down());
        hold!(is_over || rolling.is_none(), "R2: {role} is given back, and its rollout is not over");
        if snapshot.lets_go().is_some() {
            hold!(server.was_ignored, "S7: the namespace has never opted out");
        } else if stored.is_none() {
            hold!(
                replica.absence.verified,
                "S7: {role} is given back, and nobody has looked whether the group is gone"
            );
        }
        return Ok(());
    }
    let Some((rolling, stored)) = rolling.zip(stored) else {
        return Err(Broken(format!("R3: the partition of {role} is lowered, and nothing coordinates it")));
    };
    rollbacks::moves((workload, partition), snapshot, stored)?;
    if partition > workload.partition {
        return Ok(());
    }
    hold!(
        partition < workload.partition,
        "R3: the partition of {role} is {}, and {partition} is set",
        workload.partition
    );
    hold!(workload.observed, "R3: the partition of {role} is lowered before its controller has seen its last change");
    hold!(stored.wish != Wish::Wrong, "R3: the partition of {role} is lowered by a group that breaks a rule");
    let kept = stored.kept_old(role_of(workload), workload.desired);
    hold!(partition >= kept, "R4: {kept} of {} {role} stay old, and {partition} is set", workload.desired);
    let revision = workload.update_revision.as_deref().unwrap_or_default();
    hold!(
        stored.cohort(role, revision).is_some(),
        "R5: the partition of {role} is lowered, and the cohort of {revision} is not committed: {:?}",
        stored.status.cohorts
    );
    if rolling.by_segment {
        return segments::allow((workload, partition), snapshot, rolling, stored);
    }
    within_budget(workload, partition, &seen, rolling)?;
    rollbacks::keeps_last((workload, partition), snapshot, rolling, stored)?;
    steps::allow((workload, partition), snapshot, rolling, stored)?;
    if replica.edits.are_one_each() {
        within_skew(workload, partition, snapshot, rolling)?;
    }
    Ok(())
}

/// Checks that serving pods are replaced only within the allowed number of unavailable replicas.
fn within_budget(workload: &RolledWorkload, to: u32, seen: &[Ordinal], rolling: Rolling) -> Result<(), Broken> {
    let leaves = |from: u32, ordinal: u32, seen: Ordinal| ordinal >= from && !seen.updated && seen.ready;
    let newly = count(seen, |ordinal, seen| ordinal < workload.partition && leaves(to, ordinal, seen));
    // Pods of an abandoned revision may stay unavailable forever, and do not hold back the others.
    if newly == 0 || seen.iter().any(|seen| seen.strange) {
        return Ok(());
    }
    let down = count(seen, |ordinal, seen| leaves(to, ordinal, seen) || seen.is_down());
    hold!(
        down <= rolling.unavailable,
        "R6: {down} of {} are unavailable with partition {to}, and {} may be",
        workload.claim.role,
        rolling.unavailable
    );
    Ok(())
}

/// Checks that a role's updated replicas are not too far ahead of another role's updated and serving ones.
fn within_skew(workload: &RolledWorkload, to: u32, snapshot: &Snapshot, rolling: Rolling) -> Result<(), Broken> {
    let seen = ordinals(workload, snapshot);
    let newly = |ordinal: u32, seen: Ordinal| !seen.out && !seen.updated && (to..workload.partition).contains(&ordinal);
    let (reach, desired) =
        (count(&seen, |ordinal, seen| !seen.out && (seen.updated || ordinal >= to)), count(&seen, |_, seen| !seen.out));
    if count(&seen, newly) == 0 {
        return Ok(());
    }
    // An edit that is taken back: what is to stay old is updated already, and the others never come as far.
    let is_beyond = count(&seen, |ordinal, seen| seen.updated && ordinal < rolling.kept_old(workload.desired)) > 0;
    let others = snapshot.workloads.iter().filter(|other| other.claim.role != workload.claim.role);
    for other in others.filter(|other| other.is_open() && !other.unclaimed && other.desired > 0) {
        let theirs = ordinals(other, snapshot);
        let (done, of) = (count(&theirs, |_, seen| seen.updated && seen.ready), count(&theirs, |_, seen| !seen.out));
        let stays = rolling.kept_old(other.desired);
        let is_left = |ordinal: u32, seen: Ordinal| ordinal >= stays && !seen.out && !(seen.updated && seen.ready);
        let goes_last = rolling.goes_last(desired) || is_beyond && count(&theirs, is_left) == 0;
        let is_last = goes_last && done >= of - rolling.kept_old(of);
        // The skew bounds the way to the shares of a step only.
        let is_last = is_last || rolling.steps != Steps::None;
        hold!(
            is_last || of == 0 || rolling.allows((reach, desired), (done, of)),
            "R7: {reach} of {desired} {} may be updated, and {done} of {of} {} are",
            workload.claim.role,
            other.claim.role
        );
    }
    Ok(())
}

/// Applies a partition at the API server.
pub fn set_partition(
    server: &mut Server,
    workload: &RolledWorkload,
    (ends, carrier): (bool, Option<&str>),
    patch: &Value,
) -> Result<Answered<SeenWorkload>, Broken> {
    let role = role_of(workload);
    let before = server.sets[role].clone();
    let done = server.patch_set(role, patch);
    if done.is_err() {
        return Ok(done);
    }
    let after = &server.sets[role];
    hold!(before.is_open(), "R1: the partition of {} is set, and it has no open rollout", ROLES[role]);
    hold!(ends != after.is_open(), "R2: {} is open: {}, and its rollout ends: {ends}", ROLES[role], after.is_open());
    if ends {
        return Ok(done);
    }
    let (old, new) = (before.partition(), after.partition());
    if new == FROZEN {
        return Ok(done);
    }
    hold!(new < old, "R3: the partition of {} is raised from {old} to {new}", ROLES[role]);
    if let Some(group) = server.group.as_ref().filter(|group| Some(group.uid()) == carrier && group.rolling.is_some()) {
        let revision = after.update_revision();
        hold!(
            group.cohort(ROLES[role], revision).is_some(),
            "R5: the partition of {} is lowered, and the cohort of {revision} is not stored",
            ROLES[role]
        );
    }
    Ok(done)
}

impl Stored {
    /// Returns the committed cohort of a revision.
    fn cohort(&self, role: &str, revision: &str) -> Option<&str> {
        let known = self.status.cohorts.as_ref()?.roles.get(role)?;
        known.iter().find(|known| known.revision == revision).map(|known| known.cohort.as_str())
    }
}

/// R8: checks that the committed cohort of a revision stays while one of its pods exists.
pub fn cohorts_stay(server: &mut Server) -> Result<(), Broken> {
    let Some(group) = server.group.clone() else { return Ok(()) };
    let mut ledger = std::mem::take(&mut server.ledger);
    if ledger.carrier != group.uid() || group.rolling.is_none() {
        ledger = Ledger { carrier: group.uid().to_owned(), ..Ledger::default() };
    }
    let has_pods = |role: usize, revision: &str| {
        server.pods.values().any(|pod| {
            crate::places::role_of(pod.metadata.name.as_deref().unwrap()) == role && revision_of(pod) == Some(revision)
        })
    };
    ledger.recorded.retain(|(role, revision), _| has_pods(*role, revision));
    for (role, name) in ROLES.iter().enumerate().take(ROLLED) {
        let known = group.status.cohorts.iter().filter_map(|cohorts| cohorts.roles.get(*name));
        for known in known.flatten() {
            let before = ledger.recorded.insert((role, known.revision.clone()), known.cohort.clone());
            hold!(
                before.as_ref().is_none_or(|before| *before == known.cohort),
                "R8: the cohort of {} was {before:?}, and is {} while it has pods",
                known.revision,
                known.cohort
            );
        }
    }
    server.ledger = ledger;
    Ok(())
}

/// R8: checks that a pod keeps its cohort.
pub fn keeps_cohort(before: &Pod, after: &Pod) -> Result<(), Broken> {
    let cohort = |pod: &Pod| pod.metadata.label(names::COHORT).map(str::to_owned);
    let (old, new) = (cohort(before), cohort(after));
    hold!(old.is_none() || old == new, "R8: the cohort of a pod goes from {old:?} to {new:?}");
    Ok(())
}

/// R10: checks that no pod of an old revision is left when the status reports a ready group or a complete rollout,
/// except those to keep.
pub fn says(
    (status, group): (&GroupStatus, &Group),
    (snapshot, places): (&Snapshot, &Places),
    stored: &Stored,
) -> Result<(), Broken> {
    loses_places((status, group), (snapshot, places), stored)?;
    if stored.rolling.is_none() {
        return Ok(());
    }
    let is_true = |kind: &str| {
        let ours = |reason: &str| ["AllReplicasReady", "RolloutPaused", "AllReplicasUpdated"].contains(&reason);
        status.conditions.iter().any(|told| told.r#type == kind && told.status == "True" && ours(&told.reason))
    };
    let (ready, complete) = (is_true("Ready"), is_true("RolloutComplete"));
    let is_coordinated = |workload: &&RolledWorkload| {
        let role = group.role(&workload.claim.role);
        let is_named = |key| key == Some(&workload.key);
        let refers = role.is_some_and(|role| role.workload.reference.is_some());
        let is_meant = !refers || is_named(role.and_then(|role| role.workload.key.as_ref()));
        is_meant && role_of(workload) < ROLLED && !workload.unclaimed
    };
    for workload in snapshot.workloads.iter().filter(|workload| workload.is_open()).filter(is_coordinated) {
        let role = &workload.claim.role;
        hold!(!ready || workload.observed, "R10: it is ready, and nobody knows whether pods of {role} are old");
        hold!(!complete || workload.observed, "R10: its rollout is complete, and that of {role} is not seen yet");
        let kept = stored.kept_old(role_of(workload), workload.desired);
        let floor = kept.max(workload.asked_partition());
        let seen = ordinals(workload, snapshot);
        let old: Vec<_> = (0..).zip(&seen).filter(|(_, seen)| !seen.updated).map(|(ordinal, _)| ordinal).collect();
        let stay = old.iter().all(|ordinal: &u32| *ordinal < floor);
        let stay = stay || steps::pauses(status);
        hold!(!ready || stay, "R10: it is ready, and {role} {old:?} are old, of which {floor} are to stay so");
        hold!(!complete || old.is_empty(), "R10: its rollout is complete, and {role} {old:?} are old");
    }
    Ok(())
}

/// Reports whether pods of a claimed workload are of an old revision and must be replaced: they wait for the group to
/// be fixed, or, without an open rollout, for a held replica above them, such as one beyond the size of the group.
pub fn has_old_pods(server: &Server) -> bool {
    let Some(group) = server.group.as_ref().filter(|group| group.rolling.is_some()) else { return false };
    server.sets.iter().enumerate().take(ROLLED).any(|(role, set)| {
        let floor = if set.is_open() { group.kept_old(role, set.replicas()) } else { set.partition() };
        let goes_to = if server.has_gone_back(role) { set.current_revision() } else { set.update_revision() };
        let is_old = |ordinal: u32| match server.pods.get(&server.pod_of_set(role, ordinal)) {
            Some(pod) => revision_of(pod).is_some_and(|revision| revision != goes_to),
            None => set.is_open(),
        };
        set.is_claimed() && !set.is_nobodys() && (floor..set.replicas()).any(is_old)
    })
}

/// R9: checks that at rest no rollout is held without need.
pub fn judge(server: &Server) -> Result<(), Broken> {
    let rolls = server.group.as_ref().filter(|_| !server.ignored);
    let rolling = rolls.filter(|group| group.rolling.is_some());
    // A held pod of a replica that served waits for room, or for the rest of its batch.
    let waits = server.pods.iter().any(|(name, pod)| {
        let place = crate::places::role_of(name);
        let committed = rolling.and_then(|group| group.committed(place)).unwrap_or(0);
        let has_served = server.setup.named(name).is_none_or(|place| place.ordinal < committed);
        crate::server::is_held(pod) && place < ROLLED && has_served
    });
    // A gang scheduler waits for the pods that a workload with fewer replicas than its role does not make.
    let are_unmade =
        rolls.is_some_and(|group| server.sets.iter().zip(group.replicas).any(|(set, n)| set.replicas() < n));
    let waits = waits || are_unmade && server.pods.keys().any(|pod| server.lacks_members(pod));
    for (role, set) in server.sets.iter().enumerate() {
        let name = ROLES[role];
        hold!(set.is_open() || set.partition() == 0, "R9: {name} keeps partition {}", set.partition());
        if !set.is_open() || set.is_nobodys() {
            continue;
        }
        let Some(group) = rolling.filter(|_| set.is_claimed()) else {
            return Err(Broken(format!("R9: nothing coordinates {name}, and its rollout is open")));
        };
        if waits || group.wish == Wish::Wrong {
            continue;
        }
        if server.has_gone_back(role) && set.current_revision() != set.update_revision() {
            rollbacks::judge(server, role)?;
            continue;
        }
        let kept = group.kept_old(role, set.replicas());
        let updated = |ordinal: &u32| {
            let pod = server.pods.get(&server.pod_of_set(role, *ordinal));
            pod.is_some_and(|pod| {
                let rests = crate::nature::is_ready(pod) || crate::server::is_held(pod);
                revision_of(pod) == Some(set.update_revision()) && rests
            })
        };
        let old: Vec<_> = (kept..set.replicas()).filter(|ordinal| !updated(ordinal)).collect();
        hold!(
            old.is_empty(),
            "R9: {name} {old:?} are not updated, and nothing is in the way: {:?}",
            group.status.conditions
        );
        let paused = (0..kept).any(|ordinal| !updated(&ordinal));
        hold!(paused, "R9: all of {name} are updated, and its rollout is open");
    }
    Ok(())
}

/// The update is taken back before the group was ever whole, and the controller waits for the highest replica, which the group has
/// given up meanwhile: the old pods below are deleted in step.
#[test]
fn a_group_that_never_was_whole_takes_an_edit_back_below_a_held_pod() {
    let wish = Wish::All(vec![Coordination::of(Progression::OrderedReady, [1, 3, 0])]);
    let rolling = Some(Rolling { unavailable: 5, ..Rolling::default() });
    let setup = Setup { wish, rolling, ..Setup::plain([3, 4, 0]) };
    let mut world = World::new(&setup, None);
    let (edited, scaled) = (Step::Set(1, SetStep::Image(3)), Step::Scale(1, 3));
    let taken_back = Step::Set(1, SetStep::Image(0));
    for step in [edited, Step::Flow(8), scaled, Step::Flow(2), taken_back] {
        world.step(&step).unwrap();
    }
    settle(&mut world).unwrap();
    assert!(!world.server.sets[1].is_open() && !has_old_pods(&world.server));
    let status = &world.server.group.as_ref().unwrap().status;
    let told = |kind: &str| status.condition(kind).map(|told| (told.reason.as_str(), told.message.as_str()));
    assert_eq!(told("Ready"), Some(("AllReplicasReady", "6/6 pods ready")));
}

/// Returns three segments that go as a whole, of two roles that are updated in step.
fn three_segments(progression: Progression, by_segment: bool) -> Setup {
    let whole = Coordination { placed: Placed::InCluster, ..Coordination::of(progression, [2, 1, 0]) };
    let rolling = Some(Rolling { skew: 25, unavailable: 1, by_segment, ..Rolling::default() });
    Setup { wish: Wish::All(vec![whole]), rolling, racks: true, operator: true, ..Setup::plain([6, 3, 0]) }
}

/// Edits the images of both roles.
fn edited() -> impl Iterator<Item = Step> {
    (0..2).map(|role| Step::Set(role, SetStep::Image(3)))
}

/// Lets everything act, with time between for what settles.
fn goes_on(before: u32, after: u32) -> [Step; 3] {
    [Step::Flow(before), Step::Wait(Duration::from_secs(12)), Step::Flow(after)]
}

/// There is room for two of three segments. Old pods of the third, held ones are deleted and made anew meanwhile: for that moment none
/// waits for room. Those below are updated in step all the same, while the third waits.
#[test]
fn a_segment_without_room_does_not_keep_those_below_it_old() {
    for (progression, refers) in [Progression::OrderedReady, Progression::Ordered, Progression::Parallel]
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let mut world = World::new(&Setup { refers, ..three_segments(progression, false) }, None);
        let full = (2..6).map(|n| Step::Machine(n, MachineStep::Room(0)));
        for step in full.chain(goes_on(60, 60)).chain(edited()).chain(goes_on(60, 300)) {
            world.step(&step).unwrap();
        }
        let held = updated_but_held(&world, &format!("{progression:?} {refers}"));
        assert_eq!(held, ["decode-2", "prefill-4", "prefill-5"], "{progression:?}");
        let released = [0, 1].map(|role| world.server.group.as_ref().unwrap().committed(role));
        assert_eq!(released, [Some(4), Some(2)], "{progression:?} {refers}");
        settle(&mut world).unwrap();
    }
}

/// Checks that all pods are updated, and are ready or held. Returns those that are held.
fn updated_but_held(world: &World, what: &str) -> Vec<String> {
    let server = &world.server;
    let is_done = |pod: &Pod| crate::server::is_held(pod) || crate::nature::is_ready(pod);
    let is_new = |pod: &Pod| (0..2).any(|role| revision_of(pod) == Some(server.sets[role].update_revision()));
    let old = server.pods_that(|pod| !(is_new(pod) && is_done(pod)));
    let GroupStatus { conditions, coordination_state, .. } = &server.group.as_ref().unwrap().status;
    assert_eq!(old, Vec::<String>::new(), "{what}: {conditions:?} {coordination_state:?}");
    server.pods_that(crate::server::is_held)
}

/// All three segments ran, each on its own node, and one of the nodes is lost: the others are updated in step all the same.
#[test]
fn a_segment_that_lost_its_room_does_not_keep_the_others_old() {
    let ways = [Progression::OrderedReady, Progression::Ordered, Progression::Parallel];
    for (progression, lost) in ways.into_iter().flat_map(|one| (0..3).map(move |lost| (one, lost))) {
        let mut world = World::new(&three_segments(progression, false), None);
        let mut steps: Vec<_> = (1..6).map(|n| Step::Machine(n, MachineStep::Room(0))).collect();
        steps.extend(goes_on(60, 60));
        for node in 1..3 {
            steps.push(Step::Machine(node, MachineStep::Room(3)));
            steps.extend(goes_on(60, 60));
        }
        steps.push(Step::Machine(lost, MachineStep::Go));
        steps.extend(goes_on(60, 60));
        steps.extend(edited().chain(goes_on(60, 60)).chain([Step::Flow(300)]));
        steps.iter().for_each(|step| world.step(step).unwrap());
        let held = updated_but_held(&world, &format!("{progression:?} {lost}"));
        let of_segment = [(1, lost), (0, 2 * lost), (0, 2 * lost + 1)].map(|(role, n)| format!("{}-{n}", ROLES[role]));
        assert_eq!(held, of_segment, "{progression:?}");
        settle(&mut world).unwrap();
    }
}

/// The new pods need more than there is, which the rollout finds out with the first segment that it replaces: those below stay.
#[test]
fn a_rollout_whose_pods_have_no_room_does_not_take_down_what_runs() {
    for (progression, by_segment) in [Progression::OrderedReady, Progression::Ordered, Progression::Parallel]
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let mut world = World::new(&three_segments(progression, by_segment), None);
        let full = (0..6).map(|n| Step::Machine(n, MachineStep::Room(0)));
        let steps = goes_on(120, 60).into_iter().chain(edited()).chain(full).chain(goes_on(60, 300));
        steps.for_each(|step| world.step(&step).unwrap());
        let mut held = world.server.pods_that(crate::server::is_held);
        held.retain(|pod| !["decode-2", "prefill-4", "prefill-5"].contains(&&**pod));
        assert_eq!(held, Vec::<String>::new(), "{progression:?} {by_segment}");
        settle(&mut world).unwrap();
    }
}
