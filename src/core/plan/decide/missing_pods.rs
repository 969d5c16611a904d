//! Missing pods: replicas that may run and do not exist, with the reason as far as it is known. The reason comes from the
//! controller that creates the pods, and is read only after the wait has lasted.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::words::words;
use crate::model::{Coordination, Fact, Group, HoldReason, Role};
use crate::plan::decide::held::Held;
use crate::plan::view::{GroupView, ReplicaIs};

/// Replicas of one role that may run and lack pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPods {
    pub role: String,
    /// Replicas that lack pods.
    pub missing: u32,
    /// Replicas that may run.
    pub of: u32,
    /// The lowest ordinal that lacks pods.
    pub first: u32,
    /// The creation time of the youngest pod of the role, RFC 3339: earlier failures are over.
    pub newest: Option<Arc<str>>,
    /// A role that this role depends on and that is not ready: the RBG operator creates the workload of this role only
    /// afterwards.
    pub depends_on: Option<String>,
    /// The name of an existing pod of the role: its controller is asked if the workload is not known.
    pub sibling: Option<Arc<str>>,
    /// The uid of the Job that made the last pods of the role, if known: a Job that fails deletes them.
    pub job: Option<Arc<str>>,
}

words! {
/// The reason why pods are not created. The order is that of the table in `docs/held.md`.
pub enum WhyMissing {
    /// A quota of the namespace is exhausted.
    QuotaExceeded = "QuotaExceeded",
    /// The API server refuses the pods for another reason.
    CreationRefused = "CreationRefused",
    /// The Job of the pods has exceeded its `activeDeadlineSeconds`.
    JobDeadlineExceeded = "JobDeadlineExceeded",
    WorkloadPaused = "WorkloadPaused",
    /// The workload has fewer replicas than the group declares.
    FewerReplicas = "FewerReplicas",
    /// The workload creates its pods one after another.
    MadeOneByOne = "MadeOneByOne",
    /// The workload of the role is created when another role is ready.
    DependencyNotReady = "DependencyNotReady",
    /// The controller creates none of the pods and reports no reason.
    NotMade = "NotMade",
    WorkloadMissing = "WorkloadMissing",
}
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub role: String,
    pub why: WhyMissing,
    /// The observation and its source, as text.
    pub text: String,
}

impl MissingPods {
    /// Returns a text such as `role "decode" lacks 3 of 5 replicas: …`.
    pub fn text(&self, diagnosis: &Diagnosis) -> String {
        let Self { role, missing, of, .. } = self;
        format!("role {role:?} lacks {missing} of {of} replicas: {}", diagnosis.text)
    }
}

/// Returns the roles with replicas that may run and lack pods. `released` holds the allowed replicas of each batched role; a
/// role without batches that is rolled in lockstep may run all of its replicas.
pub(in crate::plan) fn missing_pods<'a>(
    group: &Group,
    view: &GroupView,
    released: impl IntoIterator<Item = (&'a String, &'a u32)>,
) -> Vec<MissingPods> {
    let of_role = |(role, released): (&String, u32)| {
        let seen = view.roles.get(role).filter(|seen| !seen.unknown)?;
        let first = seen.replicas.first_failing(released, ReplicaIs::Complete)?;
        let dependencies = group.role(role).map(|role| role.dependencies.as_slice()).unwrap_or_default();
        let is_ready =
            |name: &&String| view.roles.get(*name).is_none_or(|role| role.all_in(0..role.desired, ReplicaIs::Ready));
        Some(MissingPods {
            role: role.clone(),
            missing: released.saturating_sub(seen.replicas.count_in(..released, ReplicaIs::Complete)),
            of: released,
            first,
            newest: seen.replicas.newest().cloned(),
            depends_on: dependencies.iter().find(|name| !is_ready(name)).cloned(),
            sibling: seen.replicas.pods().map(|(_, pod)| &pod.pod.name).find(|name| !name.is_empty()).cloned(),
            job: None,
        })
    };
    let batched: BTreeMap<_, _> = released.into_iter().map(|(role, count)| (role, *count)).collect();
    let is_rolled = |role: &&Role| role.workload.reference.is_some() && group.rolls(&role.name);
    let rolled = group.roles.iter().filter(is_rolled).filter(|role| !batched.contains_key(&role.name));
    let rolled = rolled.filter_map(|role| Some((&role.name, view.roles.get(&role.name)?.desired)));
    batched.iter().map(|(role, count)| (*role, *count)).chain(rolled).filter_map(of_role).collect()
}

/// Returns the missing pods of a diagnosis.
pub(in crate::plan) fn of<'a>(missing: &'a [MissingPods], diagnosis: &Diagnosis) -> Option<&'a MissingPods> {
    missing.iter().find(|missing| missing.role == diagnosis.role)
}

/// Appends the reason why pods do not appear to the reason of the pods that wait for them.
pub(in crate::plan) fn explain<'a>(
    group: &Group,
    missing: &[MissingPods],
    diagnoses: &[Diagnosis],
    held: impl IntoIterator<Item = &'a mut Held>,
) {
    for held in held.into_iter().filter(|held| held.reason.is(Fact::AwaitsPods)) {
        let coordination = held.coordination.as_ref().and_then(|own| group.coordination(own.index));
        let Some(batching) = coordination.and_then(Coordination::batching) else { continue };
        let of_it = |diagnosis: &&Diagnosis| batching.sizes.contains_key(&diagnosis.role);
        let Some(found) = diagnoses.iter().find(of_it) else { continue };
        let Some(missing) = of(missing, found) else { continue };
        held.message = format!("{}; {}", held.message, missing.text(found));
        if found.why == WhyMissing::QuotaExceeded {
            held.reason = HoldReason::QuotaDeadlock;
        }
    }
}

#[cfg(test)]
#[path = "missing_pods_tests.rs"]
mod tests;
