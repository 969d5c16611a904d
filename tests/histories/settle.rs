//! The end of each history: faults stop, and everything must come to rest in the right state (S7, S8, L1, L2).

use rolegate::api::pod_group::KUBE_POD_GROUP;
use rolegate::cluster::read::pod_groups::stays;
use rolegate::model::HoldReason;

use crate::elastic;
use crate::lockstep;
use crate::nature::{is_ready, is_unscheduled};
use crate::prelude::*;
use crate::server::is_held;

/// Maximum number of rounds and of jumps of the clock until rest.
const ROUNDS: u32 = 300;
/// Maximum pause between retries of a write.
const RETRY: Duration = Duration::from_secs(30);
/// Time without writes that counts as rest, longer than any deadline: missing or surplus pods are diagnosed once a
/// minute until then.
const QUIET: Duration = Duration::from_secs(660);
/// Interval of updates of the counts in the status.
const COUNTS: Duration = Duration::from_secs(1);

/// Lets everything come to rest, and checks the result.
pub fn settle(world: &mut World) -> Result<(), Broken> {
    (world.server.setup.gated_by_others, world.server.setup.broken) = (false, false);
    for pod in world.server.pods_that(|pod| pod.has_gate(FOREIGN)) {
        world.server.lift(&pod, FOREIGN);
    }
    world.server.heal_machines();
    world.server.fulfil();
    // Current leaders continue, even two of them; at least one replica must lead.
    if !world.replicas.iter().any(|replica| replica.leads) {
        world.replicas[0].leads = true;
    }
    for replica in &mut world.replicas {
        replica.lead(replica.leads, world.now);
    }
    if let (true, false, Some(group)) = (world.server.setup.operator, world.server.setup.refers, &world.server.group) {
        let replicas = group.replicas;
        (0..ROLES.len()).for_each(|role| world.server.scale_workload(role, replicas[role]));
    }
    rest(world)?;
    // Somebody ends each pause, of which there are two at most in a rollout, and a rollout may be behind another.
    for _ in 0..4 {
        if world.server.resume() {
            rest(world)?;
        }
    }
    judge(world)?;
    // At rest a new leader has nothing to do.
    for index in 0..world.replicas.len() {
        let leads = world.replicas[index].leads;
        world.replicas[index].lead(leads, world.now);
    }
    hold!(!world.turn()?, "L2: at rest there is something to do: {:?}", requests(world));
    // A replica that starts now reaches the same state.
    let pods = world.server.log[0].len();
    let sabotage = world.sabotage;
    world.replicas = vec![Replica::new(world.now, true, sabotage)];
    rest(world)?;
    hold!(world.server.log[0].len() == pods, "a new leader releases what was at rest");
    judge(world)
}

fn requests(world: &World) -> Vec<String> {
    world.replicas.iter().flat_map(|replica| &replica.requests).map(|request| format!("{request:?}")).collect()
}

fn rest(world: &mut World) -> Result<(), Broken> {
    world.outage(false);
    let (mut moving, mut quiet, mut version) = (0, Duration::ZERO, world.server.version);
    for _ in 0..ROUNDS {
        if world.flow()? {
            moving += 1;
            continue;
        }
        let Some(next) = world.replicas.iter().filter_map(Replica::next).min() else { return Ok(()) };
        let wait = next.saturating_sub(world.now);
        if wait > RETRY || (wait > COUNTS && !world.replicas.iter().any(Replica::retries)) {
            nothing_is_in_the_way(world)?;
        }
        quiet = if version == world.server.version { quiet + wait } else { Duration::ZERO };
        version = world.server.version;
        if quiet > QUIET {
            return Ok(());
        }
        world.now = world.now.max(next);
    }
    Err(Broken(format!(
        "L2: no rest after {ROUNDS} rounds, in {moving} of which something moved: {:?}",
        requests(world)
    )))
}

/// L1: checks that every held pod waits for something other than time.
fn nothing_is_in_the_way(world: &World) -> Result<(), Broken> {
    let server = &world.server;
    let Some(group) = server.group.as_ref().filter(|_| !server.ignored) else { return Ok(()) };
    let is_complete = (0..ROLES.len()).all(|role| server.workloads[role] >= server.desired(role));
    let places = server.places();
    let waits =
        crate::recoveries::are_under_way(group) || crate::racks::lacks_nodes(server) || crate::canaries::pauses(group);
    let waits = waits || crate::readiness::waits(server, group) || crate::growth::waits(world);
    let made_new = crate::segments::are_made_new(server);
    for pod in server.pods_that(is_held) {
        let place = places[&pod];
        hold!(!group.wish.of_role(place.role).is_empty(), "S7: nothing batches {pod}, and it is held");
        let committed = group.committed(place.role);
        let beyond = place.ordinal >= server.desired(place.role);
        let size = |role| server.setup.replica_size(role);
        let pods = |role: usize, ordinal: u32| {
            let there = places.iter().filter(|(_, place)| (place.role, place.ordinal) == (role, ordinal));
            there.fold((0, 0), |(all, held), (name, _)| (all + 1, held + u32::from(is_held(&server.pods[name]))))
        };
        if group.waits_for_batch((place.role, place.ordinal), |role| server.desired(role), size, pods) {
            hold!(!is_complete, "L1: {pod} waits for pods that are there");
            continue;
        }
        if crate::recoveries::holds(group, (place.role, place.ordinal), false) {
            continue;
        }
        if made_new && place.ordinal >= group.status.replicas_served(ROLES[place.role]) {
            continue;
        }
        hold!(beyond || Some(place.ordinal) >= committed, "S3: {pod} may go ({committed:?} are committed) and is held");
        hold!(
            // Batches after one that is being recovered or placed again wait for it.
            beyond || !is_complete || group.wish == Wish::Wrong || waits,
            "L1: nothing is in the way of {pod}, and it is held: {:?}",
            group.status.summary
        );
    }
    Ok(())
}

/// Checks the state at rest, and that the status gives a reason for held pods.
fn judge(world: &World) -> Result<(), Broken> {
    nothing_is_in_the_way(world)?;
    lockstep::judge(&world.server)?;
    elastic::judge(&world.server)?;
    crate::recoveries::judge(&world.server)?;
    crate::racks::judge(&world.server)?;
    crate::requests::judge(&world.server)?;
    segments_are_labelled(&world.server)?;
    let server = &world.server;
    let held: Vec<_> = server.pods_that(is_held);
    let nobody = server.ignored || server.group.is_none();
    hold!(!nobody || held.is_empty(), "S7: nobody holds them, and they are held: {held:?}");
    let Some(group) = server.group.as_ref().filter(|_| !nobody) else { return Ok(()) };
    let places = server.places();
    for name in group.committed_pod_groups(|role| server.desired(role)) {
        let present = server.pod_groups.get(&name);
        // A pod that was let go for an earlier group may name it too, of another batch.
        let is_of_it = |pod: &str| group.pod_group_of(places[pod].role, places[pod].ordinal).as_ref() == Some(&name);
        let names_it = |(pod, object): (&String, &Arc<Pod>)| {
            object.metadata.label(names::KUBE_POD_GROUP) == Some(name.as_str()) && is_of_it(pod)
        };
        let is_named = server.pods.iter().any(names_it);
        hold!(
            !is_named || present.is_some_and(|meta| stays(meta, group.uid())),
            "L2: the batch is committed, and its PodGroup {name} is {present:?}"
        );
    }
    let lasting = group.committed_pod_groups_of(&|role| Some(server.desired(role)), |role| server.desired(role));
    let left: Vec<_> = server
        .owned_by(group.uid())
        .into_iter()
        .filter(|found| found.kind == KUBE_POD_GROUP)
        .map(|found| found.name)
        .collect();
    let left: Vec<_> = left.iter().filter(|name| !lasting.contains(name)).collect();
    let named = |name: &str| server.pods.values().any(|pod| pod.metadata.label(names::KUBE_POD_GROUP) == Some(name));
    // A new loop looks for PodGroups only if the group asks for some, or a pod names one: the last such pod may be gone.
    let asks = group.with_pod_groups().next().is_some();
    hold!(
        !asks || left.iter().all(|name| named(name)),
        "the batches of PodGroups {left:?} are no more: {lasting:?} last"
    );
    no_gang_waits(server, group)?;
    if !group.is_told() {
        let said = group.status.summary.is_some() || !group.status.coordination_state.is_empty();
        hold!(
            held.is_empty() && !said,
            "nothing is coordinated, {held:?} are held, and the status says {:?}",
            group.status
        );
        return Ok(());
    }
    let summary = group.status.summary.clone().unwrap_or_default();
    hold!(summary.held as usize == held.len(), "S8: {held:?} are held, and the status says {summary:?}");
    let known = HoldReason::ALL.iter().any(|reason| reason.as_str() == summary.reason);
    let deferred = summary.reason == HoldReason::ScaleInDeferred.as_str();
    // A segment without pods waits as well.
    let not_accepted = summary.reason == HoldReason::SegmentNotAccepted.as_str();
    let deferred = deferred || not_accepted && held.is_empty() && crate::readiness::waits(server, group);
    // A pod whose gate others have lifted runs anywhere.
    let strays = summary.reason == HoldReason::BatchSplit.as_str() && crate::racks::has_unplaced(server);
    hold!(
        strays || deferred || known != held.is_empty(),
        "S8: {held:?} are held, and the status says why: {summary:?}"
    );
    let failed = ["PatchFailed", "PodGroupMissing"].contains(&&*summary.reason);
    hold!(!failed, "S8: nothing fails any more, and the status says {summary:?}");
    let told = world.replicas.iter().any(|replica| replica.leads && replica.said.contains(&summary.reason));
    hold!(held.is_empty() || told, "S8: no Event has said {:?}", summary.reason);
    for leader in world.replicas.iter().filter(|replica| replica.leads) {
        let reasons: u32 = leader.reconciler.held().map(|(_, pods)| pods).sum();
        hold!(reasons as usize == held.len(), "S8: {held:?} are held, and the metric says {reasons}");
    }
    let places = server.places();
    let ready = (0..ROLES.len()).all(|role| {
        let pods = places.iter().filter(|(name, place)| {
            place.role == role && place.ordinal < server.desired(role) && is_ready(&server.pods[*name])
        });
        pods.count() == (server.desired(role) * server.setup.replica_size(role)) as usize
    });
    let ready = ready && !lockstep::has_old_pods(server);
    let said =
        group.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True");
    hold!(ready == said, "the condition Ready is {said}, and that all are ready is {ready}");
    Ok(())
}

/// G1: checks that no released pod waits for members of its gang that will never come.
fn no_gang_waits(server: &Server, group: &Stored) -> Result<(), Broken> {
    let is_complete = (0..ROLES.len()).all(|role| server.workloads[role] >= server.desired(role));
    if !is_complete || crate::recoveries::are_under_way(group) || group.wish == Wish::Wrong {
        return Ok(());
    }
    let waits = server.pods_that(is_unscheduled).into_iter().filter(|pod| server.lacks_members(pod));
    let waits: Vec<_> = waits.collect();
    hold!(waits.is_empty(), "G1: {waits:?} wait for their gangs: {:?}", server.members);
    Ok(())
}

/// Checks the labels that routers pair by: each segment label occurs on as many pods of a role as run in the segment.
fn segments_are_labelled(server: &Server) -> Result<(), Broken> {
    let Some(group) = server.group.as_ref().filter(|_| !server.ignored) else { return Ok(()) };
    let places = server.places();
    for (role, name) in ROLES.iter().enumerate() {
        let known = group.group().role(name).is_some_and(|role| !role.workload.desired_is_unknown);
        let Some(size) = group.group().batch_size(name).filter(|_| known) else { continue };
        let (mut runs, mut said) = (BTreeMap::<u32, u32>::new(), BTreeMap::<u32, u32>::new());
        for (pod, place) in places.iter().filter(|(pod, place)| place.role == role && !is_held(&server.pods[*pod])) {
            *runs.entry(place.ordinal / size).or_default() += 1;
            let label = server.pods[pod].metadata.label(names::SEGMENT).map(|label| label.parse().unwrap());
            label.into_iter().for_each(|segment| *said.entry(segment).or_default() += 1);
        }
        hold!(runs == said, "pods of {name} that run in each segment: {runs:?}, and that say so: {said:?}");
    }
    Ok(())
}
