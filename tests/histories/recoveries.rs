//! Checks recoveries of batches, independently of the planner.
//!
//! R1: no pod of another batch is deleted. R2: a batch never has two recoveries at once. R3: each recovery ends
//! complete or exhausted. R4: at most one recovery per group is under way, not counting those longer than ten minutes.
//! R5: no recovery begins while the group reports that recoveries are paused. R6: nor while at least three batches, and more than a
//! third of all, are broken by pods that are not ready, wait for a recovery with such pods, or are being recreated.

use rolegate::api::status::RecoveryState;
use rolegate::model::moment::Moment;

use crate::places::Places;
use crate::prelude::*;

/// R1: checks that a deleted pod is of a batch whose recovery is committed, and is not held.
pub fn deletes(
    pod: &PodRef,
    (snapshot, places): (&Snapshot, &Places),
    stored: Option<&std::sync::Arc<Stored>>,
) -> Result<(), Broken> {
    let known = snapshot.pods.iter().find(|known| known.pod == *pod);
    hold!(known.is_some_and(|known| !known.held), "R1: {} is deleted, and is {known:?}", pod.name);
    let stored = stored.ok_or_else(|| Broken(format!("R1: {} is deleted for no group", pod.name)))?;
    let place = places[&*pod.name];
    let recoveries = stored.recoveries_of(place.role, place.ordinal);
    let is_made_anew = recoveries.iter().any(|(entry, _)| entry.is_some_and(|entry| entry.phase == "Recreating"));
    hold!(is_made_anew, "R1: {} is deleted, and what is committed of its batches is {recoveries:?}", pod.name);
    Ok(())
}

/// Reports whether the batch of a replica is being recovered, looked at, or broken while recoveries are paused: S3
/// does not apply to it.
pub fn holds(stored: &Stored, (role, ordinal): (usize, u32), is_looked_at: bool) -> bool {
    stored.recoveries_of(role, ordinal).iter().any(|(entry, was_complete)| {
        let waits = entry.is_some_and(|entry| matches!(entry.phase.as_str(), "Waiting" | "Recreating"));
        waits || *was_complete && (is_looked_at || says_paused(&stored.status))
    })
}

/// Reports whether a recovery of the group is under way.
pub fn are_under_way(stored: &Stored) -> bool {
    stored.status.recoveries.iter().any(|entry| matches!(entry.phase.as_str(), "Waiting" | "Recreating"))
}

/// Checks that a pod of a recovering batch is released only when the release is committed and no old pod is left.
pub fn goes(server: &Server, pod: &Pod) -> Result<(), Broken> {
    let (Some(group), false) = (&server.group, server.ignored || server.uncounted || server.setup.two) else {
        return Ok(());
    };
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let Some(place) = server.setup.named(name) else { return Ok(()) };
    for (entry, _) in group.recoveries_of(place.role, place.ordinal) {
        let Some(entry) = entry else { continue };
        hold!(entry.phase != "Recreating", "{name} goes, and its batch still is {entry:?}");
        let old = server.old.get(&(entry.coordination.clone(), entry.batch));
        // Replicas beyond the desired number are of no batch.
        let is_wanted = |pod: &Pod| {
            let place = pod.metadata.name.as_deref().and_then(|name| server.setup.named(name));
            place.is_none_or(|place| place.ordinal < server.desired(place.role))
        };
        let is_old = |pod: &&std::sync::Arc<Pod>| {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            pod.status.phase != "Failed" && old.is_some_and(|old| old.contains(uid)) && is_wanted(pod)
        };
        let left = server.pods.values().find(is_old).and_then(|pod| pod.metadata.name.clone());
        hold!(entry.phase != "Releasing" || left.is_none(), "{name} goes, and {left:?} is an old pod of its batch");
    }
    Ok(())
}

/// R2: checks the progress of recoveries.
pub fn goes_on(server: &mut Server, before: &Stored, after: &Stored) -> Result<(), Broken> {
    let key = |entry: &RecoveryState| (entry.coordination.clone(), entry.batch);
    let all: BTreeSet<_> = after.status.recoveries.iter().map(key).collect();
    hold!(all.len() == after.status.recoveries.len(), "R2: two of one batch: {:?}", after.status.recoveries);
    for entry in &after.status.recoveries {
        let was = before.status.recoveries.iter().find(|was| key(was) == key(entry));
        let from = was.map_or("", |was| was.phase.as_str());
        let may = match entry.phase.as_str() {
            "Waiting" => matches!(from, "" | "Complete" | "Waiting"),
            "Recreating" => matches!(from, "" | "Complete" | "Waiting" | "Recreating"),
            "Releasing" => matches!(from, "Recreating" | "Releasing"),
            "Complete" => true,
            "Exhausted" => matches!(from, "" | "Complete" | "Exhausted"),
            _ => false,
        };
        hold!(may, "R2: a recovery goes from {from:?} to {entry:?}");
        let goes_on = was.is_some_and(|was| was.phase == entry.phase && entry.phase != "Complete");
        hold!(
            !goes_on || was.is_some_and(|was| was.since == entry.since && was.attempt == entry.attempt),
            "R2: {entry:?} begins while {was:?} is under way"
        );
        if entry.phase == "Recreating" && from != "Recreating" {
            let began = |entry: &RecoveryState| entry.attempts.last().and_then(|at| Moment::parse(at));
            let is_beside = |other: &&RecoveryState| {
                let is_under_way = matches!(other.phase.as_str(), "Recreating" | "Releasing");
                let counts = began(other).is_some_and(|at| began(entry).is_none_or(|begins| begins.0 < at.0 + 600));
                key(other) != key(entry) && is_under_way && counts
            };
            let beside = after.status.recoveries.iter().find(is_beside);
            hold!(beside.is_none(), "R4: {entry:?} begins beside {beside:?}");
            hold!(!says_paused(&after.status), "R5: {entry:?} begins, and recoveries are paused");
            let in_batch = |role: usize| {
                let own = |ordinal: &u32| {
                    let recoveries = after.recoveries_of(role, *ordinal);
                    recoveries.iter().any(|(one, _)| one.is_some_and(|one| key(one) == key(entry)))
                };
                (0..server.desired(role)).rev().find(own)
            };
            for (role, name) in ROLES.iter().enumerate() {
                let (last, may) = (in_batch(role), before.committed(role));
                // The desired replicas of a referenced workload may be unknown.
                hold!(
                    server.setup.refers || last.is_none() || last < may,
                    "{entry:?} is of {last:?} {name}, of which {may:?} were let go"
                );
            }
            let places = server.places();
            let of_batch = |(name, pod): &(&String, &std::sync::Arc<Pod>)| {
                let place = places.get(*name);
                let is_in = place.is_some_and(|place| {
                    let recoveries = after.recoveries_of(place.role, place.ordinal);
                    recoveries.iter().any(|(one, _)| one.is_some_and(|one| key(one) == key(entry)))
                });
                is_in && !pod.has_gate(names::GATE) && server.setup.makers[place.unwrap().role] != Maker::Alike
            };
            let old = server.pods.iter().filter(of_batch).filter_map(|(_, pod)| pod.metadata.uid.clone()).collect();
            server.old.insert(key(entry), old);
        }
    }
    let desired = |role: usize| server.desired(role);
    for was in before.status.recoveries.iter().filter(|was| was.phase == "Recreating" || was.phase == "Releasing") {
        let is_left = (0..ROLES.len()).any(|role| {
            (0..desired(role)).any(|ordinal| {
                after.wish == before.wish
                    && before.recoveries_of(role, ordinal).iter().any(|(one, _)| *one == Some(was))
            })
        });
        let is_there = after.status.recoveries.iter().any(|entry| key(entry) == key(was));
        hold!(is_there || !is_left, "R3: a recovery is forgotten: {was:?}");
    }
    Ok(())
}

/// R6: checks that a status begins no recovery while one cause, however slow, is likely.
pub fn is_braked(
    (group, status): (&Group, &GroupStatus),
    stored: &Stored,
    (snapshot, places): (&Snapshot, &Places),
    server: &Server,
    now: Duration,
) -> Result<(), Broken> {
    let is_resumed = status.condition("RecoveryPaused").is_some_and(|told| told.reason == "Resumed");
    let begins = |entry: &&RecoveryState| {
        let is_same = |known: &RecoveryState| {
            (known.batch, &known.coordination, &*known.phase) == (entry.batch, &entry.coordination, "Recreating")
        };
        entry.phase == "Recreating" && !stored.status.recoveries.iter().any(is_same)
    };
    let Some(begun) = status.recoveries.iter().find(begins).filter(|_| !is_resumed) else { return Ok(()) };
    let (mut all, mut broken) = (0, 0);
    let desired = |role: usize| group.role(ROLES[role]).map_or(0, |role| role.desired);
    for (index, one) in stored.wish.coordinations().iter().enumerate().filter(|(_, one)| one.recovers(&stored.makers)) {
        let sized = || (0..ROLES.len()).filter(|role| one.sizes[*role] > 0);
        let total = sized().map(|role| desired(role).div_ceil(one.sizes[role])).max().unwrap_or(0);
        all += total;
        for batch in 0..total {
            let ordinals = |role: usize| {
                let size = one.sizes[role];
                (batch * size).min(desired(role))..((batch + 1) * size).min(desired(role))
            };
            let is_of_it = |pod: &&Arc<PodFacts>| {
                places.get(&*pod.pod.name).is_some_and(|place| ordinals(place.role).contains(&place.ordinal))
            };
            let wanted: u32 = sized()
                .map(|role| server.setup.replica_size(role) * u32::try_from(ordinals(role).len()).unwrap())
                .sum();
            let pods: Vec<_> = snapshot.pods.iter().filter(is_of_it).filter(|pod| !pod.held).collect();
            let may_come_back = pods.len() == wanted as usize && pods.iter().any(|pod| !pod.ready);
            let Some(first) = sized().find(|role| !ordinals(*role).is_empty()) else { continue };
            let name = format!("c{index}");
            let of_it = stored.recoveries_of(first, ordinals(first).start);
            let known = stored.status.recoveries.iter().find(|one| one.batch == batch && one.coordination == name);
            let last_attempt = known.and_then(|entry| Moment::parse(entry.attempts.last()?));
            let is_late = last_attempt.is_none_or(|at| crate::steps::now(now) >= at.after(Duration::from_secs(600)));
            let is_broken = match known.map(|entry| entry.phase.as_str()) {
                Some("Recreating") => !is_late,
                Some("Releasing") => !is_late && pods.iter().any(|pod| !pod.ready),
                Some("Waiting") => may_come_back,
                _ => may_come_back && of_it.iter().any(|(entry, was_complete)| *was_complete && *entry == known),
            };
            broken += u32::from(is_broken);
        }
    }
    hold!(broken < 3 || broken * 3 <= all, "R6: {begun:?} begins, and {broken} of {all} batches are broken");
    Ok(())
}

/// Reports whether the status says that recoveries are paused.
pub fn says_paused(status: &GroupStatus) -> bool {
    status.condition("RecoveryPaused").is_some_and(|told| told.status == "True")
}

/// R3: checks that at rest each recovery is complete or exhausted.
pub fn judge(server: &Server) -> Result<(), Broken> {
    let Some(group) = server.group.as_ref().filter(|_| !server.ignored) else { return Ok(()) };
    // A workload smaller than the group leaves a batch incomplete forever.
    if (0..ROLES.len()).any(|role| server.workloads[role] < server.desired(role)) {
        return Ok(());
    }
    for entry in &group.status.recoveries {
        let is_over = matches!(entry.phase.as_str(), "Complete" | "Exhausted");
        hold!(is_over, "R3: at rest, there is {entry:?}");
        let says = group.status.conditions.iter().any(|condition| condition.r#type == "RecoveryExhausted");
        hold!(says || entry.phase != "Exhausted", "R3: {entry:?} is not said");
    }
    Ok(())
}
