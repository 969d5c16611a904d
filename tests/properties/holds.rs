//! What holds of every decision, whatever the coordinations, the pods and what was stamped on them: each held pod goes, or
//! is held for one reason.

use proptest::sample::select;
use rolegate::api::status::{CoordinationState, RoleProgress};
use rolegate::model::{Group, HoldReason, PodIdentity};
use rolegate::plan::rollout::Edit;
use rolegate::plan::view::{LabelledPlace, Stamp};
use rolegate::plan::{DecisionContext, Evaluation, Observation, PodFacts, PodRef, Snapshot, evaluate};

use crate::prelude::*;

const ROLES: [&str; 4] = ["prefill", "decode", "router", "nobody's"];

/// Which roles are in a coordination, and how many replicas of each make a batch: 0 is broken.
fn sizes() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(select(ROLES.to_vec()), prop_oneof![9 => 1..4_u32, 1 => Just(0)], 1..4)
        .prop_map(|sizes| sizes.into_iter().map(|(role, size)| (role.to_owned(), json!(size))).collect())
}

fn strategy() -> impl Strategy<Value = Value> {
    let progression = select(vec!["OrderedReady", "Ordered", "Parallel"]);
    let domain = select(vec![Value::Null, json!({ "topologyKey": "rack", "strategy": "RequireSegmentAffinity" })]);
    let segments = (sizes(), progression, domain).prop_map(|(sizes, progression, domain)| {
        json!({ "segmentPlacement": { "segmentSize": sizes, "progression": progression, "topologyAffinity": domain } })
    });
    prop_oneof![3 => segments, 1 => sizes().prop_map(|step| json!({ "rollingDeploy": { "roleDeployStep": step } }))]
}

fn group() -> impl Strategy<Value = Group> {
    let roles = prop::collection::vec(0..9_u32, 3);
    let committed = prop::option::of(prop::collection::vec(0..9_u32, ROLES.len()));
    (roles, prop::collection::vec(strategy(), 0..4), committed).prop_map(|(desired, strategies, committed)| {
        let roles: Vec<_> =
            ROLES.iter().zip(desired).map(|(name, replicas)| json!({ "name": name, "replicas": replicas })).collect();
        let entry = |(index, strategy)| json!({ "name": format!("c{index}"), "strategy": strategy });
        let coordination: Vec<_> = strategies.into_iter().enumerate().map(entry).collect();
        let object = json!({
            "metadata": { "name": "pd", "namespace": "ns" },
            "spec": { "roles": roles, "coordination": coordination },
        });
        let mut group = Group::from_rbg(ROLE_BASED_GROUP, &serde_json::from_value(object).expect("a group"));
        if let Some(counts) = committed {
            let released = |count| RoleProgress { released: Some(count), ..RoleProgress::default() };
            let progress = ROLES.iter().zip(counts).map(|(role, count)| ((*role).to_owned(), released(count)));
            let state = CoordinationState { progress: progress.collect(), ..CoordinationState::default() };
            group.status.coordination_state = vec![state];
        }
        group
    })
}

/// What there is of one pod: held, without a node, not ready, ready.
fn pod() -> impl Strategy<Value = PodFacts> {
    let role = prop_oneof![20 => select(ROLES.to_vec()), 1 => Just("")];
    let stamp = prop_oneof![4 => Just(None), 1 => select(vec![Some("c0-0"), Some("c1-1"), Some("old-0")])];
    (role, prop::option::weighted(0.9, 0..11_u32), 0..2_u32, 1..3_u32, 0..4_u8, stamp, any::<bool>()).prop_map(
        |(role, ordinal, member, size, state, stamp, carried)| PodFacts {
            identity: PodIdentity {
                group: GroupKey::new("ns", "pd"),
                role: (!role.is_empty()).then(|| role.into()),
                ordinal,
                member: Some(member),
                replica_size: size,
                made_at_once: size > 1,
                named_by_us: true,
                ..PodIdentity::default()
            },
            held: state == 0,
            gated: false,
            foreign_gate: None,
            scheduled: state > 1,
            unschedulable: None,
            ready: state > 2,
            labelled: ordinal.map(|ordinal| LabelledPlace::at(1, ordinal)),
            stamp: Stamp {
                batch: stamp.map(Into::into),
                carrier: carried.then_some(ROLE_BASED_GROUP),
                held: true,
                engine: (size > 1).then(|| "torch; scope=role".into()),
                ..Stamp::default()
            },
            ..PodFacts::default()
        },
    )
}

fn pods() -> impl Strategy<Value = Vec<PodFacts>> {
    prop::collection::vec(pod(), 0..40).prop_map(|mut pods| {
        for (number, pod) in pods.iter_mut().enumerate() {
            pod.pod = PodRef { name: format!("pod-{number}").into(), uid: format!("uid-{number}").into() };
        }
        pods
    })
}

fn evaluation(group: &Group, pods: &[PodFacts]) -> Evaluation {
    let snapshot = Snapshot { pods: pods.iter().cloned().collect(), ..Snapshot::default() };
    evaluate(
        group,
        Observation::of(group, &snapshot, None, |_| None, |_| Edit::long_ago()),
        DecisionContext::default(),
        None,
    )
}

proptest! {
    #![proptest_config(super::tried(2000))]

    #[test]
    fn every_held_pod_goes_or_is_held_for_one_reason(group in group(), pods in pods()) {
        let seen = evaluation(&group, &pods);
        let mut times: BTreeMap<&str, u32> =
            pods.iter().filter(|pod| pod.held).map(|pod| (&*pod.pod.uid, 0)).collect();
        let goes = seen.decision.release.iter().map(|release| release.pod.clone());
        for pod in goes.chain(seen.decision.held.iter().flat_map(|held| held.pods.each(&seen.view))) {
            let times = times.get_mut(&*pod.pod.uid);
            prop_assert!(times.is_some(), "{} is not held", pod.pod.name);
            *times.unwrap() += 1;
        }
        prop_assert!(times.values().all(|times| *times == 1), "{times:?}\n{:#?}", seen.decision);
        let held: u32 = seen.decision.held.iter().map(rolegate::plan::Held::count).sum();
        prop_assert_eq!(held as usize + seen.decision.release.len(), times.len());
        // A pod that is older than its group lacks the variables by which its processes would meet; a replica beyond the wanted
        // ones gets none.
        let lacks = |pod: &PodFacts| {
            let role = pod.identity.role.as_deref().and_then(|role| seen.view.roles.get(role));
            let is_wanted = role.is_some_and(|role| !role.unknown && pod.identity.ordinal < Some(role.desired));
            pod.stamp.asks_group() && pod.identity.ordinal.is_some() && is_wanted
        };
        prop_assert!(!seen.decision.release.iter().any(|release| lacks(&release.pod)));
        prop_assert_eq!(seen.status.summary.map(|summary| summary.held), group.is_claim().then_some(held));
    }

    /// Admission gives such a pod no gate.
    #[test]
    fn nothing_holds_a_pod_that_its_group_never_holds(group in group(), pods in pods()) {
        let seen = evaluation(&group, &pods);
        // Of a role that the group does not have, it knows nothing.
        let is_known = |pod: &&PodFacts| pod.identity.role.as_ref().is_some_and(|role| group.role(role).is_some());
        for pod in pods.iter().filter(is_known).filter(|pod| pod.held && group.never_holds(&pod.identity)) {
            let is_beside = |other: &&PodFacts| {
                (&other.identity.role, other.identity.ordinal) == (&pod.identity.role, pod.identity.ordinal)
            };
            // Other pods of its replica may say that it has more of them.
            let is_alone = pods.iter().filter(is_beside).count() == 1;
            let by = seen.decision.held.iter().find(|held| held.pods.each(&seen.view).any(|held| held.pod == pod.pod));
            let is_free = by.is_none() || !is_alone || pod.stamp.batch.is_some() || pod.identity.replica_size > 1;
            prop_assert!(is_free, "{pod:?}: {by:?}");
        }
    }

    #[test]
    fn a_batch_says_why_its_pods_are_held(group in group(), pods in pods()) {
        let seen = evaluation(&group, &pods);
        for batch in seen.batches(&group) {
            let is_in = |role: &str, ordinal: u32| {
                batch.roles.get(role).is_some_and(|share| share.ordinals.contains(&ordinal))
            };
            let of_it = seen.view.held().into_iter().filter(|pod| is_in(pod.role(), pod.ordinal));
            let reasons: Vec<HoldReason> = of_it
                .filter_map(|pod| seen.decision.held.iter().find(|held| held.pods.has(&pod)))
                .map(|held| held.reason)
                .collect();
            let beyond = batch.roles.iter().any(|(role, share)| {
                seen.decision.released.get(role).is_some_and(|released| share.ordinals.end() >= released)
            });
            let turn = seen.decision.turns.get(&batch.coordination).filter(|_| beyond);
            match batch.reason {
                None => prop_assert!(reasons.is_empty() && !beyond, "{batch:?}: {reasons:?}"),
                Some(reason) => prop_assert!(reasons.contains(&reason) || turn == Some(&reason), "{batch:?}: {reasons:?}"),
            }
        }
    }
}
