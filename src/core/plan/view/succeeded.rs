//! Succeeded replicas stay succeeded, even after the pods of a Job, or the Job itself, are cleaned up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::status::Succeeded;
use crate::model::{Group, PodIdentity};
use crate::plan::view::Numbers;
use crate::plan::view::{JobOf, LabelledPlace, PodFacts, PodRef, Replica, RoleView};

/// Succeeded replicas by role.
pub type AllSucceeded = BTreeMap<String, Vec<Succeeded>>;

/// Merges the succeeded replicas of a role: remembered replicas count as existing ones, and existing replicas that have
/// succeeded are remembered. `before` holds the remembered ones.
pub(in crate::plan) fn remember(
    group: &Group,
    (name, role): (&str, &mut RoleView),
    before: &[Succeeded],
) -> Vec<Succeeded> {
    // Most roles have no Jobs; one workload creates all pods of such a role.
    if before.is_empty() && role.replicas.pods().next().is_none_or(|(_, pod)| pod.job.is_none()) {
        return Vec::new();
    }
    let before: Vec<_> = before.iter().filter(|known| still_holds(known, role)).collect();
    let mut done: BTreeMap<(Box<str>, u32), BTreeSet<u32>> = BTreeMap::new();
    for known in &before {
        let numbers = Numbers::parse(&known.replicas);
        let those = done.entry((known.job.as_str().into(), known.size.max(1))).or_default();
        those.extend((0..role.desired).filter(|ordinal| numbers.has(*ordinal)));
    }
    let missing: Vec<_> = done.clone().into_iter().collect();
    for (ordinal, replica) in role.replicas.iter().filter(|(ordinal, _)| *ordinal < role.desired) {
        if let Some(job) = job_that_is_done(role, ordinal, *replica) {
            done.entry((job, replica.size)).or_default().insert(ordinal);
        }
    }
    for ((job, size), those) in missing {
        for ordinal in those.into_iter().filter(|ordinal| role.replicas.get(*ordinal).is_none()).collect::<Vec<_>>() {
            let pods = (0..size).map(|member| gone(group, (name, &job), (ordinal, member, size)));
            pods.for_each(|pod| role.replicas.add(&Arc::new(pod), ordinal));
        }
    }
    let entry = |((job, size), those): ((Box<str>, u32), BTreeSet<u32>)| {
        let mut numbers = Numbers::default();
        those.into_iter().for_each(|ordinal| numbers.push(ordinal));
        Succeeded { job: job.into(), replicas: numbers.text(), size }
    };
    done.into_iter().filter(|(_, those)| !those.is_empty()).map(entry).collect()
}

/// Returns the Job of a replica whose pods have all succeeded.
fn job_that_is_done(role: &RoleView, ordinal: u32, replica: Replica) -> Option<Box<str>> {
    let pods = role.replicas.pods_of(ordinal);
    let all_done = replica.is_ready() && pods.iter().all(|pod| pod.job.as_ref().is_some_and(|job| job.is_done));
    let job = pods.first()?.job.as_ref().filter(|_| all_done)?;
    Some(job.uid.clone())
}

/// Reports whether remembered replicas still count as succeeded. They do not if another Job creates the pods now: for a single
/// Job any pod of another creator shows that, for one of several Jobs a pod in the place of a succeeded replica.
fn still_holds(known: &Succeeded, role: &RoleView) -> bool {
    let numbers = Numbers::parse(&known.replicas);
    role.replicas.pods().all(|(ordinal, pod)| match &pod.job {
        Some(job) => *job.uid == *known.job || (job.is_one_of_many && !numbers.has(ordinal)),
        None => false,
    })
}

/// Returns a placeholder for a pod that has succeeded.
fn gone(group: &Group, (role, job): (&str, &str), (ordinal, member, size): (u32, u32, u32)) -> PodFacts {
    PodFacts {
        pod: PodRef { name: "".into(), uid: format!("{role}-{ordinal}-{member}").into() },
        identity: PodIdentity {
            group: group.key.clone(),
            role: Some(role.into()),
            ordinal: Some(ordinal),
            member: Some(member),
            replica_size: size,
            made_at_once: false,
            unnumbered: None,
            named_by_us: true,
        },
        scheduled: true,
        ready: true,
        labelled: group.batch_size(role).map(|size| LabelledPlace::at(size, ordinal)),
        job: Some(Arc::new(JobOf { uid: job.into(), is_one_of_many: true, is_done: true })),
        ..PodFacts::default()
    }
}

#[cfg(test)]
#[path = "succeeded_tests.rs"]
mod tests;
