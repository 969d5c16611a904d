//! Checks each step, independently of the planner.

use rolegate::api::pod_group::KUBE_POD_GROUP;
use rolegate::model::{HoldReason, MemberKey};
use rolegate::plan::MemberEdit;
use rolegate::plan::reconcile::owned_memory::OwnedId;

use crate::elastic;
use crate::growth;
use crate::lockstep;
use crate::places::{Place, Places, Standing, role_of};
use crate::prelude::*;
use crate::racks;
use crate::recoveries;
use crate::replica::{GRACE, MISSING, Request};
use crate::rollbacks;
use crate::segments;
use crate::spec::released;

/// Minimum time before a failed request is retried.
const PAUSE: Duration = Duration::from_millis(200);

/// Applies a release at the API server, and checks it.
pub fn release(server: &mut Server, pod: &PodRef, patch: &Value) -> Result<Answered<Arc<Pod>>, Broken> {
    let before = server.pods.get(&*pod.name).cloned();
    let done = server.patch_pod(&pod.name, patch);
    if let (Some(before), Ok(after)) = (before, &done) {
        let uid = after.metadata.uid.as_deref().unwrap_or_default();
        hold!(*uid == *pod.uid, "S5: {} was decided on with {} and released with {uid}", pod.name, pod.uid);
        let others = |pod: &Pod| {
            let gates = pod.spec.scheduling_gates.iter().flatten().filter(|gate| gate.name != names::GATE);
            gates.cloned().collect::<Vec<_>>()
        };
        hold!(others(&before) == others(after), "S4: {} lost another gate than ours", pod.name);
        lockstep::keeps_cohort(&before, after)?;
        recoveries::goes(server, after)?;
        racks::goes(server, after)?;
        no_more_run_than_may(server, role_of(&pod.name))?;
        none_has_the_number_of(server, after)?;
        server.begun.extend(MemberKey::Label(names::KUBE_POD_GROUP).read(&after.metadata).map(str::to_owned));
    }
    Ok(done)
}

/// S1, for the pods of a Deployment, which are interchangeable: checks that no more replicas of a role run than were
/// ever committed. Two simultaneous leaders may each release a different pod.
fn no_more_run_than_may(server: &Server, role: usize) -> Result<(), Broken> {
    let always_batched = server.history.values().all(|stored| !stored.wish.of_role(role).is_empty());
    if server.setup.makers[role] != Maker::Alike || server.setup.two || server.uncounted || !always_batched {
        return Ok(());
    }
    let runs =
        |(name, pod): &(&String, &Arc<Pod>)| role_of(name) == role && !pod.is_gone() && !pod.has_gate(names::GATE);
    let running = u32::try_from(server.pods.iter().filter(runs).count()).unwrap();
    let most = server.history.values().filter_map(|stored| stored.committed(role)).max().unwrap_or(0);
    hold!(running <= most, "S1: {running} of {} run, and at most {most} were ever committed", ROLES[role]);
    Ok(())
}

/// Checks that running pods of a Deployment have distinct numbers. Two simultaneous leaders may assign the same number.
fn none_has_the_number_of(server: &Server, pod: &Pod) -> Result<(), Broken> {
    let number = |pod: &Pod| pod.metadata.label(names::KEP75_INSTANCE_INDEX).map(str::to_owned);
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let role = role_of(name);
    if server.setup.makers[role] != Maker::Alike || server.setup.two || number(pod).is_none() || pod.is_gone() {
        return Ok(());
    }
    let is_twin = |(other, twin): &(&String, &Arc<Pod>)| {
        *other != name
            && role_of(other) == role
            && !twin.is_gone()
            && !twin.has_gate(names::GATE)
            && number(twin) == number(pod)
    };
    let twin = server.pods.iter().find(is_twin).map(|(twin, _)| twin);
    hold!(
        twin.is_none(),
        "{name} is released as {:?} of {}, which {} is",
        number(pod),
        ROLES[role],
        twin.map_or("", |twin| twin)
    );
    Ok(())
}

/// Applies a status write at the API server, and checks it.
pub fn write(server: &mut Server, group: &Group, patch: &Value) -> Result<Answered<Arc<Stored>>, Broken> {
    let before = server.group.clone();
    let done = server.patch_status(&group.carrier.name, patch);
    lockstep::cohorts_stay(server)?;
    if let (Some(before), Ok(after)) = (before, &done) {
        recoveries::goes_on(server, &before, after)?;
        for (role, name) in ROLES.iter().enumerate() {
            let desired = group.role(name).map_or(0, |role| role.desired);
            let (old, new) = (before.committed(role), after.committed(role));
            let fell = !after.wish.of_role(role).is_empty() && new < old.map(|old| old.min(desired));
            hold!(!fell, "S2: the released count of {} fell from {old:?} to {new:?}, desired are {desired}", name);
        }
    }
    Ok(done)
}

/// Checks the decisions of a pass.
pub fn pass(
    replica: &mut Replica,
    snapshot: &Snapshot,
    requests: &[Request],
    server: &Server,
    now: Duration,
) -> Result<(), Broken> {
    replica.seen.check(snapshot)?;
    hold!(requests.is_empty() || replica.leads, "a follower acts: {requests:?}");
    hold!(requests.is_empty() || replica.is_synced(), "S6: something is done before all was listed: {requests:?}");
    let group = snapshot.claims.as_ref().map(|claims| &*claims.group);
    let version = |group: &Group| server.history.get(&group.carrier.resource_version.parse().unwrap());
    let stored = group.and_then(version);
    let known = stored.map(Arc::as_ref);
    if replica.leads && replica.is_synced() {
        replica.edits.note(snapshot, known);
        growth::note(replica, group.zip(known), now);
    }
    let places = places(replica, snapshot, requests, server);
    racks::note_unbound(replica, (snapshot, &places), known, now);
    if snapshot.lets_go().is_some() {
        let gives_back = |request: &Request| match request {
            Request::SetPartition { ends, .. } => *ends,
            Request::Release { .. } | Request::RemoveOwned(_) | Request::FindOwned(_) => true,
            Request::Mark(mark) => [names::DRAINING, names::SCALE_POD].iter().any(|key| mark.says(key) == Some(false)),
            _ => false,
        };
        let more = requests.iter().find(|request| !gives_back(request));
        hold!(more.is_none(), "where nothing is held more is done than to let go: {more:?}");
    }
    let naming = |id: &OwnedId| {
        let name = id.name.clone();
        snapshot.pods.iter().filter(move |pod| pod.pod_groups.iter().any(|(_, named)| **named == *name))
    };
    for request in requests {
        match request {
            Request::Release { pod, pin, pod_groups, .. } => {
                let failed = replica.failed.get(&pod.uid).filter(|failed| now < **failed + PAUSE);
                hold!(failed.is_none(), "S9: {} is released at {now:?}, which failed at {failed:?}", pod.name);
                may_be_released(replica, (pod, pin), (snapshot, &places), stored, server, now)?;
                joins(pod, pod_groups, (snapshot, &places), (stored, server))?;
            }
            Request::Write { group, status } => {
                let stored = version(group).ok_or_else(|| Broken("a status of no version that ever was".to_owned()))?;
                commit(replica, (group, status), stored, (snapshot, &places), server, now)?;
                recoveries::is_braked((group, status), stored, (snapshot, &places), server, now)?;
                crate::requests::is_bounded(status)?;
                tells_of_all(replica, status, stored, (snapshot, &places))?;
                lockstep::says((status, group), (snapshot, &places), stored)?;
                crate::steps::passed(replica, status, stored, now)?;
                rollbacks::says(replica, status, stored, snapshot, now)?;
            }
            Request::Ensure { id, .. } => {
                let is_present = group.is_some_and(|group| group.carrier.uid == id.owner);
                hold!(is_present, "PodGroup {} is made for {}, which carries nothing", id.name, id.owner);
            }
            Request::SetPartition { workload, partition, ends, .. } => {
                lockstep::decided(replica, (workload, *partition, *ends), snapshot, known, server)?;
            }
            Request::Scale { group, workload, replicas, .. } => {
                elastic::decided((workload, *replicas), group, version(group).map(Arc::as_ref), snapshot)?;
            }
            Request::Mark(mark) => {
                let marked = snapshot.pods.iter().find(|pod| pod.pod == mark.pod);
                let is_new = |pod: &Arc<PodFacts>| {
                    let leaves = mark.says(names::DRAINING).is_none_or(|says| pod.draining != says);
                    let is_alone = mark.labels.len() == 1;
                    let stands = mark.says(names::SCALE_POD).filter(|_| is_alone);
                    leaves && stands.is_none_or(|says| pod.scale_pod != says && !(says && pod.held))
                };
                hold!(marked.is_some_and(is_new), "{mark:?} says nothing new");
            }
            Request::Delete { pod, .. } => recoveries::deletes(pod, (snapshot, &places), stored)?,
            Request::Renew(pod) => segments::deletes(pod, snapshot, known)?,
            Request::Undo(pod) => rollbacks::deletes(replica, pod, (snapshot, requests), known)?,
            Request::Gather(pod) => racks::is_gathered(pod, (snapshot, &places))?,
            Request::Recreate(pod) => racks::is_made_again(replica, pod, (snapshot, &places), known, now)?,
            Request::Create(id) => crate::requests::is_created(replica, id, group)?,
            Request::RemoveOwned(id) if id.kind != KUBE_POD_GROUP => {
                crate::requests::is_removed(replica, id, group.filter(|_| snapshot.lets_go().is_none()))?;
            }
            Request::RemoveOwned(id) => {
                let named = naming(id).next();
                hold!(named.is_none(), "PodGroup {} is removed, and a pod names it: {named:?}", id.name);
            }
            Request::RelaxPodGroup(id, members) => {
                let named = naming(id).count();
                hold!(named == *members as usize, "PodGroup {} waits for {members} pods, and {named} name it", id.name);
            }
            Request::LookAtLosses(_)
            | Request::FindOwned(_)
            | Request::Reread
            | Request::Confirm
            | Request::ConfirmPods
            | Request::Verify
            | Request::Look(_) => {}
        }
    }
    if group.is_none() {
        replica.absence.verified = false;
    }
    if let (Some(group), Some(stored), true) = (group, stored, replica.leads && replica.is_synced()) {
        racks::begin_whole(replica, (snapshot, &places), requests, (group, stored))?;
        come_back_at_once(replica, (snapshot, &places), requests, (group, stored), server)?;
        segments::are_deleted_at_once(replica, snapshot, requests, stored)?;
    }
    Ok(())
}

/// Returns the places of the pods that a replica sees.
fn places(replica: &Replica, snapshot: &Snapshot, requests: &[Request], server: &Server) -> Places {
    let asked = |pod: &PodFacts| {
        let now = requests.iter().find_map(|request| match request {
            Request::Release { pod: asked, labels, .. } if *asked == pod.pod => Some(labels),
            _ => None,
        });
        now.or_else(|| replica.asked.get(&pod.pod.uid)).map(Vec::as_slice)
    };
    let standing = |pod: &Arc<PodFacts>| Standing::seen(pod, asked(pod), replica.moved.get(&pod.pod.uid).copied());
    let group = snapshot.claims.as_ref().map(|claims| &claims.group);
    let desired = |role: usize| {
        let name = ROLES[role];
        let role = group.and_then(|group| group.role(name)).filter(|role| !role.workload.desired_is_unknown);
        let scaled =
            group.filter(|group| group.scaled().is_some_and(|(_, batching)| batching.sizes.contains_key(name)));
        let committed = scaled.and_then(|group| group.committed(name)).unwrap_or(u32::MAX);
        role.map_or(u32::MAX, |role| role.desired.min(committed))
    };
    let stored = group.and_then(|group| server.history.get(&group.carrier.resource_version.parse().unwrap()));
    let home = |place: Place| stored.and_then(|stored| stored.home_of(place));
    server.setup.places(snapshot.pods.iter().map(standing).collect(), desired, home)
}

/// S1, S5: checks that a pod is released only when a stored status allows it, or when nothing holds it (S7).
fn may_be_released(
    replica: &Replica,
    (pod, pin): (&PodRef, &Pin),
    (snapshot, places): (&Snapshot, &Places),
    stored: Option<&Arc<Stored>>,
    server: &Server,
    now: Duration,
) -> Result<(), Broken> {
    hold!(snapshot.pods.iter().any(|known| known.pod == *pod && known.held), "{} is not held", pod.name);
    if snapshot.lets_go().is_some() {
        hold!(server.was_ignored, "S7: the namespace has never opted out");
        return Ok(());
    }
    let place = places[&*pod.name];
    if let Some(stored) = stored {
        let newer = server.changed_before(&pod.uid).filter(|changed| *changed > stored.version());
        hold!(
            newer.is_none(),
            "S1: {} is released by version {} of the group, and when it was made there was {newer:?}",
            pod.name,
            stored.version()
        );
        let committed = stored.committed(place.role);
        let free = stored.wish.of_role(place.role).is_empty();
        hold!(
            free || Some(place.ordinal) < committed,
            "S5: {} is released, and committed are {committed:?} in version {}",
            pod.name,
            stored.version()
        );
        if let Some(name) = stored.pod_group_of(place.role, place.ordinal) {
            let made = server.made.contains(&(stored.uid().to_owned(), name.clone()));
            hold!(made, "{} is released before PodGroup {name} of {} was made", pod.name, stored.uid());
        }
        racks::begins_ungated(pod, place, (snapshot, places), stored)?;
        racks::is_pinned(replica, (pod, pin), place, stored, (places, server))?;
        return Ok(());
    }
    let grace = if replica.absence.carried { GRACE } else { MISSING };
    let since = replica.absence.since.map(|since| now.saturating_sub(since));
    hold!(
        replica.absence.verified && since >= Some(grace),
        "S7: {} is released, the group is not there since {since:?}, looked for: {}",
        pod.name,
        replica.absence.verified
    );
    Ok(())
}

/// G2: checks that a pod is released into the PodGroup that it has in the version of the decision. G3: checks that a PodGroup waits
/// for all its pods when the first of them is released.
fn joins(
    pod: &PodRef,
    edits: &[MemberEdit],
    (snapshot, places): (&Snapshot, &Places),
    (stored, server): (Option<&Arc<Stored>>, &Server),
) -> Result<(), Broken> {
    let Some(stored) = stored.filter(|_| snapshot.lets_go().is_none()) else { return Ok(()) };
    let key = MemberKey::Label(names::KUBE_POD_GROUP);
    let known = snapshot.pods.iter().find(|known| known.pod == *pod);
    let named = known.and_then(|known| known.pod_group(key)).map(str::to_owned);
    let edited = edits.iter().find(|(edited, _)| *edited == key);
    let named = edited.map_or(named, |(_, name)| name.clone());
    let place = places[&*pod.name];
    let wanted = stored.pod_group_of(place.role, place.ordinal);
    if let Some(name) = wanted.as_ref().filter(|name| !server.begun.contains(*name)) {
        let group = snapshot.claims.as_ref().map(|claims| &claims.group);
        let of_gang = |other: &&Arc<PodFacts>| {
            let Place { role, ordinal, .. } = places[&*other.pod.name];
            let desired = group.and_then(|group| group.role(ROLES[role])).map_or(0, |role| role.desired);
            ordinal < desired && stored.pod_group_of(role, ordinal).as_ref() == Some(name)
        };
        // What was let go before it had this PodGroup does not start with it.
        let starts = |other: &&Arc<PodFacts>| other.held || other.pod_group(key) == Some(name.as_str());
        let (pods, members) = (snapshot.pods.iter().filter(of_gang).filter(starts).count(), server.members.get(name));
        let waits = members.is_some_and(|members| *members as usize >= pods);
        hold!(waits, "G3: {} is released, and PodGroup {name} waits for {members:?} of {pods} pods", pod.name);
    }
    let own = stored.wish.coordinations().into_iter().enumerate().filter(|(_, one)| one.sizes[place.role] > 0);
    let prefixes: Vec<_> = own.map(|(index, _)| format!("{GROUP}-c{index}")).collect();
    let is_ours = named.as_ref().is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    hold!(
        named == wanted || wanted.is_none() && !is_ours,
        "G2: {} is released into PodGroup {named:?}, and in version {} it has {wanted:?}",
        pod.name,
        stored.version()
    );
    Ok(())
}

/// A replica of a role, as a pass sees it.
#[derive(Default)]
struct Seen {
    pods: u32,
    held: u32,
    scheduled: u32,
    ready: u32,
}

type View = BTreeMap<(usize, u32), Seen>;

/// Returns the replicas that a pass sees. `counts` reports whether a pod of a role counts as ready.
fn view((snapshot, places): (&Snapshot, &Places), counts: impl Fn(&PodFacts, usize) -> bool) -> View {
    let mut view = View::new();
    for pod in snapshot.pods.iter() {
        let place = places[&*pod.pod.name];
        let seen = view.entry((place.role, place.ordinal)).or_default();
        seen.pods += 1;
        seen.held += u32::from(pod.held);
        seen.scheduled += u32::from(pod.scheduled);
        seen.ready += u32::from(counts(pod, place.role));
    }
    view
}

/// Returns the released count of a role before a decision: the committed count, or beyond it the free replicas without
/// a gap; without a commit, the free replicas.
fn before(role: usize, desired: u32, stored: &Stored, view: &View, size: u32) -> u32 {
    let free = |ordinal: &u32| view.get(&(role, *ordinal)).is_some_and(|seen| seen.held == 0 && seen.pods >= size);
    let without_gap = u32::try_from((0..desired).take_while(free).count()).unwrap();
    let seen = u32::try_from((0..desired).filter(free).count()).unwrap();
    stored.committed(role).map_or(seen, |committed| committed.max(without_gap)).min(desired)
}

/// S1, S2, C1, C2, C3: checks that the commit of a pass follows from its view.
fn commit(
    replica: &Replica,
    (group, status): (&Group, &GroupStatus),
    stored: &Stored,
    seen: (&Snapshot, &Places),
    server: &Server,
    now: Duration,
) -> Result<(), Broken> {
    let view = view(seen, |pod, role| stored.counts(pod, role, now));
    let desired = |role: usize| group.role(ROLES[role]).map_or(0, |role| role.desired);
    let count = |role| before(role, desired(role), stored, &view, server.setup.replica_size(role));
    for role in (0..ROLES.len()).filter(|role| !stored.wish.of_role(*role).is_empty()) {
        if group.role(ROLES[role]).is_none_or(|role| role.workload.desired_is_unknown) {
            continue;
        }
        let (old, new) = (count(role), released(status, ROLES[role]).unwrap_or(0));
        hold!(new >= old, "S2: {} falls from {old} to {new}, desired are {}", ROLES[role], desired(role));
        hold!(new <= desired(role), "{} of {} {} are to be released", new, desired(role), ROLES[role]);
        hold!(new == old || stored.wish != Wish::Wrong, "a group that breaks a rule goes on");
        let all = stored.wish.coordinations();
        let own: Vec<_> = all.into_iter().enumerate().filter(|(_, one)| one.sizes[role] > 0).collect();
        for (ordinal, (index, coordination)) in (old..new).flat_map(|ordinal| own.iter().map(move |one| (ordinal, one)))
        {
            let segment = ordinal / coordination.sizes[role];
            let is_new = |other: &usize| {
                let size = coordination.sizes[*other];
                let ordinals = segment * size..((segment + 1) * size).min(desired(*other));
                let runs = |ordinal: u32| view.get(&(*other, ordinal)).is_some_and(|seen| seen.held < seen.pods);
                ordinals.is_empty() || count(*other) <= ordinals.start && !ordinals.clone().any(runs)
            };
            if (0..ROLES.len()).filter(|role| coordination.sizes[*role] > 0).all(|role| is_new(&role)) {
                growth::commits(replica, (*index, segment), &format!("{} {ordinal}", ROLES[role]), now)?;
                segments::begin_new((coordination, segment), seen.0, stored)?;
            }
            if group.scaled().is_some() {
                let is_there = |role, ordinal| {
                    let seen = view.get(&(role, ordinal));
                    seen.is_some_and(|seen| seen.held == 0 && seen.pods >= server.setup.replica_size(role))
                };
                elastic::goes_on(stored, segment, |role, ordinal| is_there(role, ordinal) || ordinal < count(role))?;
            }
            if let Some(missing) = first_failing(coordination, segment, desired, count, &view, server) {
                return Err(Broken(format!(
                    "S1: {} {ordinal} (segment {segment}) is to be released, but {missing} of an earlier segment is not {:?}",
                    ROLES[role], coordination.progression
                )));
            }
        }
    }
    crate::readiness::goes_on(replica, status, stored, seen, (desired, count), now)
}

/// S8: checks that a status counts all pods that stay held, and those whose release was refused, and that it says of no group
/// without room that all its batches are released.
fn tells_of_all(
    replica: &Replica,
    status: &GroupStatus,
    stored: &Stored,
    (snapshot, places): (&Snapshot, &Places),
) -> Result<(), Broken> {
    let stays = |pod: &&Arc<PodFacts>| {
        let place = places[&*pod.pod.name];
        let free = stored.wish.of_role(place.role).is_empty();
        let waits = !free && released(status, ROLES[place.role]).is_none_or(|count| place.ordinal >= count);
        pod.held && (waits || replica.refused.contains(&pod.pod.uid))
    };
    let staying: Vec<_> = snapshot.pods.iter().filter(stays).map(|pod| &*pod.pod.name).collect();
    if !stored.is_told() {
        return Ok(());
    }
    let summary = status.summary.clone().unwrap_or_default();
    // A rollout that waits for pods about to be released has a reason too, and so have released pods without a node.
    let waits = [
        HoldReason::RolloutBehindHeldBatch,
        HoldReason::ScaleInDeferred,
        HoldReason::PlacedNotBound,
        HoldReason::BatchSplit,
        HoldReason::CanaryPaused,
        HoldReason::SegmentNotAccepted,
    ];
    let waits = waits.map(HoldReason::as_str).contains(&&*summary.reason)
        || ["RolloutStalled", "RolledBack", "RolloutPaused"].contains(&&*summary.reason);
    let has_reason = summary.reason.is_empty() == (summary.held == 0) || waits;
    let told = summary.held as usize >= staying.len() && has_reason;
    hold!(told, "S8: {staying:?} stay, and the status says {summary:?}");
    let mut progress = status.coordination_state.iter().flat_map(|state| state.progress.values());
    let is_complete = progress.all(|role| role.state == "Complete" && role.strategy != "rollingUpdate");
    hold!(summary.reason != HoldReason::NoRoom.as_str() || !is_complete, "S8: complete, and {summary:?}");
    Ok(())
}

/// Returns the first replica of the previous segments that does not satisfy the progression.
fn first_failing(
    coordination: &Coordination,
    segment: u32,
    desired: impl Fn(usize) -> u32,
    count: impl Fn(usize) -> u32,
    view: &View,
    server: &Server,
) -> Option<String> {
    for role in (0..ROLES.len()).filter(|role| coordination.sizes[*role] > 0) {
        let size = server.setup.replica_size(role);
        for ordinal in 0..(segment * coordination.sizes[role]).min(desired(role)) {
            let seen = view.get(&(role, ordinal));
            let complete = |seen: &&Seen| seen.held == 0 && seen.pods >= size;
            let holds = match coordination.progression {
                Progression::Parallel => true,
                Progression::Ordered => ordinal < count(role),
                Progression::Scheduled => seen.filter(complete).is_some_and(|seen| seen.scheduled >= size),
                Progression::OrderedReady | Progression::Canary => {
                    seen.filter(complete).is_some_and(|seen| seen.ready >= size)
                }
            };
            if !holds {
                return Some(format!("{} {ordinal}", ROLES[role]));
            }
        }
    }
    None
}

/// S3: checks that a held pod of a released replica is released at once, or was refused and waits for a retry.
fn come_back_at_once(
    replica: &Replica,
    (snapshot, places): (&Snapshot, &Places),
    requests: &[Request],
    (group, stored): (&Group, &Stored),
    server: &Server,
) -> Result<(), Broken> {
    let view = view((snapshot, places), |pod, _| pod.ready);
    for pod in snapshot.pods.iter().filter(|pod| pod.held) {
        let place = places[&*pod.pod.name];
        let desired = group.role(ROLES[place.role]).map_or(0, |role| role.desired);
        let free = stored.wish.of_role(place.role).is_empty();
        let may = Some(place.ordinal) < stored.committed(place.role).map(|count| count.min(desired));
        if snapshot.lets_go().is_none() && stored.is_placed(place.role) {
            // The pod waits for room.
            continue;
        }
        let seen = &view[&(place.role, place.ordinal)];
        let whole = seen.pods >= server.setup.replica_size(place.role) || seen.held < seen.pods;
        if !(snapshot.lets_go().is_some() || free || (may && whole)) {
            continue;
        }
        let desired = |role: usize| group.role(ROLES[role]).map_or(0, |role| role.desired);
        let size = |role| server.setup.replica_size(role);
        let pods = |role, ordinal| view.get(&(role, ordinal)).map_or((0, 0), |seen| (seen.pods, seen.held));
        if snapshot.lets_go().is_none() && stored.waits_for_batch((place.role, place.ordinal), desired, size, pods) {
            continue;
        }
        if snapshot.lets_go().is_none() && racks::waits_for_gates(place, (snapshot, places), stored, desired) {
            continue;
        }
        if snapshot.lets_go().is_none()
            && recoveries::holds(stored, (place.role, place.ordinal), replica.looks_at_losses(requests))
        {
            continue;
        }
        if snapshot.lets_go().is_none() && segments::is_made_new_first(pod, snapshot, stored) {
            continue;
        }
        // A batch goes when all its PodGroups are there.
        let of_batch = stored.wish.of_role(place.role).into_iter().flat_map(|one| {
            let batch = place.ordinal / one.sizes[place.role];
            let ordinals = move |role: usize| batch * one.sizes[role]..(batch + 1) * one.sizes[role];
            (0..ROLES.len()).flat_map(move |role| ordinals(role).map(move |ordinal| (role, ordinal)))
        });
        let mut pod_groups = of_batch.filter_map(|(role, ordinal)| stored.pod_group_of(role, ordinal));
        if snapshot.lets_go().is_none() && pod_groups.any(|name| replica.makes_pod_group(stored.uid(), &name, requests))
        {
            continue;
        }
        let asked =
            requests.iter().any(|request| matches!(request, Request::Release { pod: asked, .. } if *asked == pod.pod));
        hold!(
            asked
                || replica.is_under_way(&pod.pod.uid)
                || replica.is_busy_with(&pod.pod.uid)
                || replica.refused.contains(&pod.pod.uid)
                || replica.confirms(requests),
            "S3: {} may go and is not released at once",
            pod.pod.name
        );
    }
    Ok(())
}
