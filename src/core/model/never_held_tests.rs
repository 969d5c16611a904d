use serde_json::{Value, json};

use super::*;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::build;
use crate::model::{GroupKey, Unnumbered};

fn mk_group(coordination: &Value) -> Group {
    let roles = [("prefill", 8), ("decode", 4), ("router", 1)];
    Group::from_rbg(ROLE_BASED_GROUP, &build::typed(build::group("pd", &roles, coordination)))
}

fn mk_segments(progression: &str, sizes: &Value) -> Value {
    json!({ "strategy": { "segmentPlacement": { "progression": progression, "segmentSize": sizes } } })
}

fn mk_pod() -> PodIdentity {
    PodIdentity {
        group: GroupKey::new("ns", "pd"),
        role: Some("prefill".into()),
        ordinal: Some(7),
        member: Some(0),
        replica_size: 1,
        named_by_us: true,
        ..PodIdentity::default()
    }
}

#[test]
fn a_group_that_lets_all_batches_go_at_once_never_holds() {
    let pair = mk_segments("Parallel", &json!({ "prefill": 2, "decode": 1 }));
    let others = mk_segments("OrderedReady", &json!({ "router": 1 }));
    for coordination in [json!([]), json!([pair]), json!([pair, pair]), json!([pair, others]), json!([others])] {
        assert!(mk_group(&coordination).never_holds(&mk_pod()), "{coordination}");
    }
}

#[test]
fn whatever_may_hold_a_batch_keeps_the_gate() {
    let pair = mk_segments("Parallel", &json!({ "prefill": 2, "decode": 1 }));
    let with = |path: &str, value: Value| {
        let mut entry = pair.clone();
        entry["strategy"]["segmentPlacement"][path] = value;
        json!([entry])
    };
    let soft = json!({ "topologyKey": "rack", "strategy": "BestEffort" });
    let gang = json!({ "podGroupPolicy": { "kubeScheduling": { "scheduleTimeoutSeconds": 1 } } });
    let steps = json!({ "rollingDeploy": { "roleDeployStep": { "prefill": 2 }, "deployTopologyConstraint": gang } });
    let near = json!({ "batchMode": "Parallel", "topologyKey": "host", "ratios": { "prefill": 2 } });
    let table = [
        ("by default", with("progression", Value::Null)),
        ("in order", with("progression", json!("Ordered"))),
        ("in order, once ready", with("progression", json!("OrderedReady"))),
        ("a word that nobody knows", with("progression", json!("AllAtOnce"))),
        ("a domain", with("topologyAffinity", json!({ "topologyKey": "rack" }))),
        ("a domain that is only preferred", with("topologyAffinity", soft)),
        ("no batches", with("segmentSize", json!({ "prefill": 0, "decode": 1 }))),
        ("no batches of another role", with("segmentSize", json!({ "prefill": 2, "decode": -1 }))),
        ("a role that the group does not have", with("segmentSize", json!({ "prefill": 2, "cache": 1 }))),
        ("steps with a PodGroup", json!([{ "strategy": steps }])),
        ("steps", json!([{ "strategy": { "rollingDeploy": { "roleDeployStep": { "prefill": 2 } } } }])),
        ("batches that share a node", json!([{ "strategy": { "affinityScheduling": near } }])),
        ("another coordination of the role", json!([pair, mk_segments("Ordered", &json!({ "prefill": 4 }))])),
        ("one that blocks its coordination", json!([pair, mk_segments("Ordered", &json!({ "decode": 4 }))])),
    ];
    for (why, coordination) in table {
        assert!(!mk_group(&coordination).never_holds(&mk_pod()), "{why}");
    }
}

#[test]
fn a_pod_that_does_not_go_alone_and_at_once_keeps_the_gate() {
    let group = mk_group(&json!([mk_segments("Parallel", &json!({ "prefill": 2 }))]));
    assert!(group.never_holds(&mk_pod()));
    let unnumbered = Some(Unnumbered::default());
    let table = [
        ("no role", PodIdentity { role: None, ..mk_pod() }),
        ("no number", PodIdentity { ordinal: None, unnumbered: unnumbered.clone(), ..mk_pod() }),
        ("a number from the loop", PodIdentity { unnumbered, ..mk_pod() }),
        ("a number that its maker does not say", PodIdentity { ordinal: None, ..mk_pod() }),
        ("beyond the desired replicas", PodIdentity { ordinal: Some(8), ..mk_pod() }),
        ("a replica of several pods", PodIdentity { replica_size: 2, ..mk_pod() }),
    ];
    for (why, pod) in table {
        assert!(!group.never_holds(&pod), "{why}");
    }
}

#[test]
fn a_role_whose_desired_replicas_are_not_known_keeps_the_gate_and_those_beside_it() {
    let mk_group = |spec: &Value| {
        let coordination = json!([mk_segments("Parallel", &json!({ "prefill": 2, "decode": 1 }))]);
        let mut object = json!({ "metadata": { "name": "pd", "namespace": "ns" }, "spec": spec });
        object["spec"]["coordination"] = coordination;
        Group::from_role_coordination(ROLE_COORDINATION, &serde_json::from_value(object).unwrap(), &())
    };
    let of_set = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "decode" });
    let roles = |decode: Value| json!({ "roles": [{ "name": "prefill", "replicas": 8 }, decode] });
    let known = roles(json!({ "name": "decode", "replicas": 4, "workloadRef": of_set }));
    assert!(mk_group(&known).never_holds(&mk_pod()));
    let unknown = roles(json!({ "name": "decode", "workloadRef": of_set }));
    assert!(!mk_group(&unknown).never_holds(&mk_pod()));
    let reference = json!({ "groupRef": { "apiVersion": "workloads.x-k8s.io/v1alpha1", "name": "pd" } });
    assert!(!mk_group(&reference).never_holds(&mk_pod()));
}
