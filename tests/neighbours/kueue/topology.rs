//! Who says on which nodes a pod runs.

use super::{KUEUE, QUEUE, TEAM, create_queued_sets, explain, plane, queue, queue_of, set_quota};
use crate::common::prelude::*;

const RACK: &str = "example.com/rack";

/// The group with segments that share a rack.
fn in_racks(group: &Group) -> Value {
    group.placed(&near(RACK, "RequireSegmentAffinity"))
}

/// What each pod asks for.
fn cpu() -> Value {
    asking(&json!({ "requests": { "cpu": "1" } }))
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn a_batch_is_placed_on_nodes_of_the_flavor_that_kueue_has_chosen() {
    let stage = Stage::on(plane().await, "kueue-flavor").await;
    queue(&stage, 4, &json!({ "nodeLabels": { "example.com/pool": "reserved" } }));
    // The one that fits best has no node of the flavor.
    for (rack, room, pool) in [("tempting", 6, "spot"), ("right", 12, "reserved")] {
        stage.add_node_with(rack, room, json!({ (RACK): rack, "example.com/pool": pool })).await;
    }
    let _rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("prefill", 4, 4).role("decode", 2, 2);
    let statuses = stage.statuses(&group);
    stage.create(in_racks(&group)).await;
    create_queued_sets(&stage, &group).await;
    statuses.until("it waits for Kueue", |status| status.reason() == "GatedByOthers").await;
    let explained = explain(&stage, "llm-prefill-0").await;
    assert!(explained.contains("GatedByOthers: segment 1 is held: "), "{explained}");
    assert!(explained.contains("Kueue, which may say on which nodes"), "{explained}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 6, "{now}"));
    set_quota(&stage, 6);
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 6).await;
    let right = format!("{}-right", stage.namespace);
    stage.pods.now(|now| assert!(now.all().all(|pod| pod.node.as_ref() == Some(&right)), "{now}"));
    let result = "works: Kueue first (`GatedByOthers`), then a rack with nodes of the flavor";
    KUEUE.record("a queued group whose segments rolegate places, flavor with node labels", result);
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn where_kueue_chooses_nodes_as_well_it_is_warned_and_kueue_comes_first() {
    let stage = Stage::on(plane().await, "kueue-tas").await;
    let name = stage.namespace.clone();
    let levels = json!([{ "nodeLabel": RACK }, { "nodeLabel": "kubernetes.io/hostname" }]);
    let topology = object("kueue.x-k8s.io/v1beta2", "Topology", &name).spec(json!({ "levels": levels }));
    stage.plane.must(&["create", "-f", "-"], &topology.to_string());
    queue_of(&stage, ("cpu", 40), &json!({ "topologyName": name }));
    for rack in ["a", "b", "c", "d"] {
        stage.add_node_with(rack, 8, json!({ (RACK): rack })).await;
    }
    let _rolegate = stage.launch().start().await;
    // One role, two segments of four, and a slice of Kueue's is four pods in one rack: both can agree.
    let asks =
        json!({ "kueue.x-k8s.io/podset-slice-required-topology": RACK, "kueue.x-k8s.io/podset-slice-size": "4" });
    let in_ab = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": RACK, "operator": "In", "values": ["a", "b"] }] },
    ] } } });
    let asks = json!({ "metadata": { "annotations": asks }, "spec": { "affinity": in_ab } });
    let group = Group::new("one").role("main", 8, 4).template(&asks).template(&cpu());
    create_queued_sets(&stage, &group).await;
    let coordination = group.coordination_of("StatefulSet", &near(RACK, "RequireSegmentAffinity"));
    let made = stage.post("/apis/rolegate.dev/v1alpha1", "rolecoordinations", &coordination).await;
    let warned = made.warnings.iter().any(|warning| warning.contains("ask Kueue for a place as well"));
    assert!(made.code == 201 && warned, "{made:?}");
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 8).await;
    KUEUE.record(
        "Kueue's topology-aware scheduling and rolegate's placement on one batch",
        "a warning (`topology-twice`); Kueue chooses first. Both agree on a single role whose segment is Kueue's slice",
    );

    // Two roles: what Kueue knows are two workloads, and it may put them where it likes.
    let group = Group::new("two").role("prefill", 4, 4).role("decode", 4, 4).template(&cpu());
    let statuses = stage.statuses(&group);
    stage.create(in_racks(&group)).await;
    for (role, rack) in [("prefill", "c"), ("decode", "d")] {
        let mut set = group.set(group.find(role), &name);
        set["metadata"]["labels"] = json!({ QUEUE: TEAM });
        let asks = json!({ "kueue.x-k8s.io/podset-required-topology": RACK });
        set["spec"]["template"]["metadata"]["annotations"] = asks;
        set["spec"]["template"]["spec"]["nodeSelector"][RACK] = json!(rack);
        stage.create(set).await;
    }
    statuses.until("it has no room in one rack", |status| status.reason() == "NoRoom").await;
    let explained = stage.said(&["explain", "group", "two"]).await;
    assert!(explained.contains("NoRoom"), "{explained}");
    let result = "does not run: held with `NoRoom`, and keeps its quota; use one of the two";
    KUEUE.record("the same of two roles which Kueue puts into two racks", result);
}
