//! LeaderWorkerSets and Deployments recover as StatefulSets do.

use super::scene::{Scene, launch, recovery, recreate};
use crate::common::prelude::*;
use crate::pods::support::stage as with_leader_worker_sets;

const INDEX: &str = "rolebasedgroup.workloads.x-k8s.io/role-instance-index";

/// LeaderWorkerSets make a group anew by themselves when a pod of it goes; the other groups of its segment go with it.
#[tokio::test]
async fn groups_of_leaders_and_workers_come_back_with_their_segment() {
    let stage = with_leader_worker_sets("recovery-lws").await.with_room(24).await;
    let _rolegate = launch(&stage).start().await;
    let group = Group::new("llm").role("prefill", 4, 2).of_pods(2).role("decode", 2, 1).of_pods(2);
    let statuses = stage.coordination_statuses("llm");
    for role in &group.roles {
        let more = json!({ "spec": { "leaderWorkerTemplate": { "restartPolicy": "RecreateGroupOnPodRestart" } } });
        stage.create(group.leader_worker_set(&role.name, 2, &stage.namespace, &more)).await;
    }
    stage.create(group.coordination_of("LeaderWorkerSet", &json!({ "recovery": recreate() }))).await;
    let scene = Scene::complete(stage, group, statuses).await;
    let status = scene.loses("llm-prefill-1-1", 0).await;
    assert_eq!(recovery(&status, 0).unwrap()["lost"]["role"], json!("prefill"));
    scene.delete("llm-decode-1").await;
    scene.until_recovered(&[1], 1).await;
    scene.went_together(&[1]);
}

/// Pods of a Deployment have no numbers of their own: those that they were given tell the segments.
#[tokio::test]
async fn pods_that_are_alike_come_back_with_their_segment() {
    let stage = Stage::new("recovery-deployments").await.with_room(12).await;
    let _rolegate = launch(&stage).start().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    let statuses = stage.coordination_statuses("llm");
    stage.create(group.coordination_of("Deployment", &json!({ "recovery": recreate() }))).await;
    for role in &group.roles {
        stage.create(group.deployment(&role.name, &stage.namespace, &json!({}))).await;
    }
    let known = |status: &Status| {
        status.0["coordinationState"][0]["completeBatches"] == json!("0-1") && status.ready().starts_with("True")
    };
    statuses.until("it is complete", known).await;
    let segment = |pod: &Pod| {
        let index: u32 = pod.labels.get(INDEX).map_or(99, |index| index.parse().unwrap());
        index / if pod.role == "prefill" { 2 } else { 1 }
    };
    let of = |number: u32| -> BTreeSet<_> {
        stage.pods.now(|now| now.all().filter(|pod| segment(pod) == number).map(|pod| pod.uid.clone()).collect())
    };
    let (first, second) = (of(0), of(1));
    assert_eq!((first.len(), second.len()), (3, 3));
    let lost = stage.pods.now(|now| now.of("decode").find(|pod| segment(pod) == 0).unwrap().name.clone());
    stage.delete::<ApiPod>(&lost).await;
    let over = |status: &Status| {
        recovery(status, 0).is_some_and(|entry| entry["phase"] == "Complete") && status.ready().starts_with("True")
    };
    let status = statuses.until("recovered", over).await;
    stage.pods.until("all ready", |now: &View| now.count_all(Pod::is_ready) == 6).await;
    assert_eq!(of(1), second, "the other segment stays");
    assert!(of(0).is_disjoint(&first) && of(0).len() == 3, "{:?} {first:?}", of(0));
    assert_eq!(recovery(&status, 0).unwrap()["lost"]["pod"], json!(lost));
}
