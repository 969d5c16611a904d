//! Builders for the tests of `plan`.

use serde_json::{Value, json};

use crate::api::RoleBasedGroup;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::model::{Group, GroupKey, PodIdentity, Queued, RolledWorkload, RolloutClaim, WorkloadKey, WorkloadKind};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::missing_pods::{Diagnosis, MissingPods, WhyMissing};
use crate::plan::evaluate::{Evaluation, Observation, evaluate};
use crate::plan::view::{GroupPods, GroupView, HeldPod, LabelledPlace, PodFacts, PodRef, Replicas, RoleView, Stamp};

pub fn mk_group(roles: &[(&str, u32)], coordination: &Value) -> Group {
    let roles: Vec<_> = roles.iter().map(|(name, replicas)| json!({"name": name, "replicas": replicas})).collect();
    let object =
        json!({"metadata": {"name": "pd", "namespace": "ns"}, "spec": {"roles": roles, "coordination": coordination}});
    let rbg: RoleBasedGroup = serde_json::from_value(object).unwrap();
    Group::from_rbg(ROLE_BASED_GROUP, &rbg)
}

pub fn mk_segments(name: &str, progression: &str, sizes: &[(&str, u32)]) -> Value {
    let sizes: serde_json::Map<_, _> = sizes.iter().map(|(role, size)| ((*role).to_owned(), json!(size))).collect();
    json!({"name": name, "strategy": {"segmentPlacement": {"segmentSize": sizes, "progression": progression}}})
}

/// Returns a role whose first `released` replicas are released, of which the first `ready` are ready.
pub fn mk_role(desired: u32, released: u32, ready: u32) -> RoleView {
    let mut replicas = Replicas::default();
    for ordinal in 0..desired {
        let (held, scheduled, ready) = (ordinal >= released, ordinal < released, ordinal < ready);
        let pod = PodFacts { held, scheduled, ready, ..mk_pod(&ordinal.to_string(), "role", ordinal) };
        replicas.add(&pod.into(), ordinal);
    }
    RoleView { desired, unknown: false, committed: Some(released), is_scaled: false, replicas }
}

/// Returns the last pods of a role of five as missing.
pub fn mk_missing(missing: u32) -> MissingPods {
    MissingPods {
        role: "decode".to_owned(),
        missing,
        of: 5,
        first: 5 - missing,
        newest: None,
        depends_on: None,
        sibling: None,
    }
}

pub fn mk_diagnosis(why: WhyMissing) -> Diagnosis {
    Diagnosis { role: "decode".to_owned(), why, text: "because".to_owned() }
}

/// Returns a held pod that is a replica of a role.
pub fn mk_pod(name: &str, role: &str, ordinal: u32) -> PodFacts {
    PodFacts {
        pod: PodRef { name: name.into(), uid: name.into() },
        identity: PodIdentity {
            group: GroupKey::new("ns", "pd"),
            role: Some(role.into()),
            ordinal: Some(ordinal),
            member: Some(0),
            replica_size: 1,
            made_at_once: false,
            unnumbered: None,
            named_by_us: true,
        },
        held: true,
        gated: false,
        foreign_gate: None,
        scheduled: false,
        ready: false,
        labelled: Some(LabelledPlace::at(1, ordinal)),
        ready_since: None,
        revision: None,
        cohort: None,
        adopted: false,
        draining: false,
        scale_pod: false,
        pod_groups: Vec::new(),
        queued: Queued::Not,
        created: None,
        stamp: Stamp { held: true, ..Stamp::default() },
        job: None,
        seen: 0,
    }
}

/// Returns a held pod at its ordinal.
pub fn mk_held(name: &str, role: &str, ordinal: u32) -> HeldPod {
    HeldPod { facts: mk_pod(name, role, ordinal).into(), ordinal }
}

pub fn shared(pods: &[PodFacts]) -> GroupPods {
    pods.iter().cloned().collect()
}

/// Returns the evaluation of a group without rollouts.
pub fn mk_evaluation(group: &Group, view: &GroupView, context: DecisionContext<'_>) -> Evaluation {
    let observation = Observation { view: view.clone(), ..Observation::default() };
    evaluate(group, observation, context, None)
}

/// Returns a workload of four replicas whose rollout is closed.
pub fn mk_workload(role: &str, revision: &str) -> RolledWorkload {
    RolledWorkload {
        key: WorkloadKey { namespace: "ns".to_owned(), kind: WorkloadKind::StatefulSet, name: role.to_owned() },
        uid: role.into(),
        resource_version: String::new(),
        generation: None,
        claim: RolloutClaim { group: GroupKey::new("ns", "pd"), role: role.to_owned() },
        desired: 4,
        observed: true,
        partition: 0,
        user_partition: None,
        rollout_id: None,
        update_revision: Some(revision.to_owned()),
        current_revision: Some(revision.to_owned()),
        unclaimed: false,
        at_once: None,
    }
}
