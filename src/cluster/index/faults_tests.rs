use serde_json::{Value, json};

use super::adoption_tests::{key, stored};
use super::*;
use crate::api::cluster_topology::{CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75};
use crate::api::workload::{LeaderWorkerSet, StatefulSet};
use crate::build;
use crate::model::WorkloadObject as _;
use crate::plan::rollout::Edit;
use crate::plan::{DecisionContext, Observation, evaluate};

fn with_group(coordination: &Value) -> Index {
    let mut index = Index::default();
    index.apply_carrier(None, carrier(coordination, 1, &json!({})));
    index
}

fn carrier(coordination: &Value, version: u32, status: &Value) -> CarrierObject {
    let mut group = build::group("pd", &[("prefill", 2), ("decode", 2)], &json!([coordination]));
    group["spec"]["roles"][1]["workload"] = json!({ "kind": "LeaderWorkerSet" });
    stored(group, "u", version, status)
}

/// Returns the rules that the group breaks, and the reason of its condition.
fn faults(index: &Index) -> (Vec<&'static str>, String) {
    let snapshot = index.snapshot(&key());
    let group = snapshot.claims.as_ref().unwrap().group.clone();
    let observation = Observation::of(&group, &snapshot, None, |_| None, |_| Edit::long_ago());
    let context = DecisionContext { faults: &snapshot.faults, ..DecisionContext::default() };
    let status = evaluate(&group, observation, context, None).status;
    let progressing = status.conditions.into_iter().find(|condition| condition.r#type == "Progressing").unwrap();
    (snapshot.faults.iter().map(|fault| fault.rule).collect(), progressing.reason)
}

fn topology(layer: &str) -> Report<Layers> {
    let object =
        json!({ "metadata": { "name": "t" }, "spec": { "layers": [{ "name": layer, "key": "example.com/l" }] } });
    let layers = Layers::parse(CLUSTER_TOPOLOGY, &serde_json::from_value(object).unwrap());
    ((Arc::from(""), Arc::from("t")), Some(7), Some(layers))
}

#[test]
fn a_topology_that_loses_the_layer_stops_the_group_until_it_is_repaired() {
    let constraint = json!({ "clusterTopologyName": "t", "topologyLayerName": "rack" });
    let deploy = json!({ "roleDeployStep": { "prefill": 1, "decode": 1 }, "deployTopologyConstraint": constraint });
    let mut index = with_group(&json!({ "name": "pd", "strategy": { "rollingDeploy": deploy } }));
    let moving = faults(&index);
    assert!(moving.0.is_empty(), "one that is not seen (yet) is held against nobody");
    let changes = [
        (Change::Listed(vec![topology("rack")]), false),
        (Change::Applied(topology("block")), true),
        (Change::Applied(topology("rack")), false),
        (Change::Applied(topology("block")), true),
        (Change::Deleted(topology("block")), false),
    ];
    for (change, is_fault) in changes {
        index.take_dirty();
        index.looked_up_change(1, CLUSTER_TOPOLOGY, change);
        assert_eq!(index.take_dirty(), HashSet::from([key()]), "the group is planned anew");
        let expected =
            if is_fault { (vec!["topology-reference"], "InvalidCoordination".to_owned()) } else { moving.clone() };
        assert_eq!(faults(&index), expected);
    }
}

#[test]
fn a_workload_that_surges_stops_the_group_until_it_does_not() {
    let update =
        json!({ "name": "pd", "roles": ["prefill", "decode"], "strategy": { "rollingUpdate": { "maxSkew": "10%" } } });
    let mut index = with_group(&update);
    let set = |surge: u32, partition: u32| {
        let bounds = json!({ "maxSurge": surge, "partition": partition });
        let object = json!({
            "metadata": { "name": "pd-decode", "namespace": "ns" },
            "spec": { "replicas": 2, "rolloutStrategy": { "rollingUpdateConfiguration": bounds } },
        });
        SeenWorkload::of(&serde_json::from_value::<LeaderWorkerSet>(object).unwrap())
    };
    for (surge, rules) in [(0, vec![]), (1, vec!["lws-surge"]), (0, vec![])] {
        index.apply_workload(Some(1), set(surge, 0));
        assert_eq!(faults(&index).0, rules, "maxSurge {surge}");
    }
    index.take_dirty();
    index.apply_workload(Some(1), set(0, 1));
    assert!(index.take_dirty().is_empty(), "the loop moves the partition itself");
}

/// It is admitted after its group, with a warning for what it brings about alone.
#[test]
fn what_a_group_forbids_of_a_workload_is_told_when_it_comes() {
    let roles = json!([{ "name": "prefill", "workloadRef": { "kind": "StatefulSet", "name": "p" } }, { "name": "decode", "replicas": 2 }]);
    let update = json!({ "rollingUpdate": { "by": "Segment" }, "segmentPlacement": { "segmentSize": { "prefill": 2, "decode": 2 } } });
    let object = json!({
        "metadata": { "name": "pd", "namespace": "ns", "uid": "u", "resourceVersion": "1" },
        "spec": { "roles": roles, "coordination": [{ "name": "s", "roles": ["prefill", "decode"], "strategy": update }] },
    });
    let mut index = Index::default();
    index.apply_carrier(None, CarrierObject::coordination(serde_json::from_value(object).unwrap()));
    let set = |spec: Value| {
        let labels = json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": "prefill" });
        let mut object = json!({
            "metadata": { "name": "p", "namespace": "ns", "labels": labels },
            "spec": { "replicas": 4, "podManagementPolicy": "Parallel", "template": { "metadata": { "labels": labels } } },
        });
        json_patch::merge(&mut object, &json!({ "spec": spec }));
        serde_json::from_value::<StatefulSet>(object).unwrap()
    };
    let told = |index: &Index, spec: Value, recovery: bool| {
        let options = Options { allowed: Allowed { recovery, ..Allowed::default() }, ..Options::default() };
        let found = index.forbids(&key(), &Arc::new(set(spec).workload()), options);
        found.iter().map(|found| found.rule).collect::<Vec<_>>()
    };
    let on_delete = || json!({ "updateStrategy": { "type": "OnDelete" } });
    for (spec, recovery, rules) in [
        (json!({}), true, vec![]),
        (json!({}), false, vec!["rollout-by"]),
        (on_delete(), true, vec!["role-update-strategy"]),
        (json!({ "updateStrategy": { "type": "Recreate" } }), true, vec!["role-update-strategy"]),
        (json!({ "updateStrategy": { "rollingUpdate": { "partition": 3 } } }), true, vec!["partition-in-manifest"]),
    ] {
        assert_eq!(told(&index, spec.clone(), recovery), rules, "{spec}");
    }
    index.apply_workload(Some(1), SeenWorkload::of(&set(on_delete())));
    assert_eq!(told(&index, on_delete(), true), [""; 0], "it was told when it came");
    assert_eq!(index.faults(&key()).iter().map(|fault| fault.rule).collect::<Vec<_>>(), ["role-update-strategy"]);
}

#[test]
fn a_status_alone_does_not_have_the_group_judged_again() {
    let segments =
        |size: u32| json!({ "name": "s", "strategy": { "segmentPlacement": { "segmentSize": { "nobody": size } } } });
    let mut index = with_group(&segments(1));
    let judged = index.snapshot(&key()).faults;
    assert_eq!(judged.iter().map(|fault| fault.rule).collect::<Vec<_>>(), ["coordination-role-unknown"]);
    let status = json!({ "observedGeneration": 1, "summary": { "held": 3 } });
    index.apply_carrier(None, carrier(&segments(1), 2, &status));
    let snapshot = index.snapshot(&key());
    assert_eq!(snapshot.claims.unwrap().group.carrier.resource_version, "2", "the status is taken in all the same");
    assert!(Arc::ptr_eq(&judged, &snapshot.faults));
    index.apply_carrier(None, carrier(&segments(0), 3, &status));
    assert!(!Arc::ptr_eq(&judged, &index.snapshot(&key()).faults), "an edit is judged");
}

#[test]
fn a_topology_that_was_read_before_its_deletion_was_seen_does_not_come_back() {
    let mut index = Index::default();
    let read = |index: &mut Index, at| {
        index.read_outside(CLUSTER_TOPOLOGY, topology("rack").0, Some(at), topology("rack").2.unwrap());
    };
    let (name, ..) = topology("rack");
    index.looked_up_change(1, CLUSTER_TOPOLOGY, Change::Deleted((name, Some(7), None::<Layers>)));
    read(&mut index, 6);
    assert!(index.looked_up::<Layers>(&GroupKey::new("", "t")).is_none(), "nobody would ever tell that it is gone");
    read(&mut index, 8);
    assert!(index.looked_up::<Layers>(&GroupKey::new("", "t")).is_some(), "its successor");
}

#[test]
fn of_two_topologies_of_one_name_that_of_rolegate_counts_whichever_was_seen_last() {
    let mut index = Index::default();
    let layer = |index: &Index| {
        let known = index.looked_up::<Layers>(&GroupKey::new("", "t"))?;
        Some(known.narrow_to_wide().into_iter().map(|layer| layer.name).collect::<String>())
    };
    index.looked_up_change(1, CLUSTER_TOPOLOGY, Change::Listed(vec![topology("rack")]));
    index.looked_up_change(2, CLUSTER_TOPOLOGY_KEP75, Change::Listed(vec![topology("block")]));
    index.looked_up_change(2, CLUSTER_TOPOLOGY_KEP75, Change::Applied(topology("block")));
    assert_eq!(layer(&index).as_deref(), Some("rack"));
    index.looked_up_change(1, CLUSTER_TOPOLOGY, Change::Deleted(topology("rack")));
    assert_eq!(layer(&index).as_deref(), Some("block"), "the other one is still there");
    index.looked_up_change(2, CLUSTER_TOPOLOGY_KEP75, Change::Deleted(topology("block")));
    assert_eq!(layer(&index), None);
}
