//! LeaderWorkerSets and Deployments recover as StatefulSets do.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::scene::{Scene, launch, recovery, recreate};
use crate::common::pods::{Pod, View};
use crate::common::stage::typed;
use crate::common::status::Status;
use crate::common::{ControlPlane, Group, Stage};

const INDEX: &str = "rolebasedgroup.workloads.x-k8s.io/role-instance-index";

fn coordination(kind: &str, group: &Group) -> Value {
    let roles = group
        .roles
        .iter()
        .map(|role| json!({ "name": role.name, "workloadRef": { "kind": kind, "name": group.set_name(&role.name) } }));
    let sizes = group.roles.iter().map(|role| (role.name.clone(), json!(role.segment)));
    let placement = json!({ "segmentSize": sizes.collect::<serde_json::Map<_, _>>(), "recovery": recreate() });
    json!({
        "apiVersion": "rolegate.dev/v1alpha1",
        "kind": "RoleCoordination",
        "metadata": { "name": "llm" },
        "spec": {
            "roles": roles.collect::<Vec<_>>(),
            "coordination": [{ "name": "segments", "strategy": { "segmentPlacement": placement } }],
        },
    })
}

/// LeaderWorkerSets make a group anew by themselves when a pod of it goes; the other groups of its segment go with it.
#[tokio::test]
async fn groups_of_leaders_and_workers_come_back_with_their_segment() {
    let plane = ControlPlane::own(|| ControlPlane::start_with_groups("kwok,lws", &[])).await;
    let stage = Stage::on(plane, "recovery-lws").await;
    stage.add_node("all", 24).await;
    let _rolegate = launch(&stage).start().await;
    let group = Group::new("llm").role("prefill", 4, 2).of_pods(2).role("decode", 2, 1).of_pods(2);
    let statuses = stage.coordination_statuses("llm");
    for role in &group.roles {
        let template = group.set(role, &stage.namespace)["spec"]["template"].clone();
        let set = json!({
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": { "name": group.set_name(&role.name) },
            "spec": {
                "replicas": role.replicas,
                "leaderWorkerTemplate": {
                    "size": 2, "restartPolicy": "RecreateGroupOnPodRestart", "workerTemplate": template,
                },
            },
        });
        let sets = stage.objects("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
        sets.create(&PostParams::default(), &typed(set)).await.unwrap();
    }
    stage
        .coordinations()
        .create(&PostParams::default(), &typed(coordination("LeaderWorkerSet", &group)))
        .await
        .unwrap();
    let scene = Scene::complete(stage, group, statuses).await;
    scene.delete("llm-prefill-1-1").await;
    let status = scene.until_recovered(&[0], 1).await;
    scene.made_anew(&[0]);
    assert_eq!(recovery(&status, 0).unwrap()["lost"]["role"], json!("prefill"));
    scene.delete("llm-decode-1").await;
    scene.until_recovered(&[1], 1).await;
    scene.went_together(&[1]);
}

/// Pods of a Deployment have no numbers of their own: those that they were given tell the segments.
#[tokio::test]
async fn pods_that_are_alike_come_back_with_their_segment() {
    let stage = Stage::new("recovery-deployments").await;
    stage.add_node("all", 12).await;
    let _rolegate = launch(&stage).start().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    let statuses = stage.coordination_statuses("llm");
    stage.coordinations().create(&PostParams::default(), &typed(coordination("Deployment", &group))).await.unwrap();
    for role in &group.roles {
        let set = group.set(role, &stage.namespace);
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": group.set_name(&role.name) },
            "spec": {
                "replicas": role.replicas,
                "selector": set["spec"]["selector"],
                "template": set["spec"]["template"],
            },
        });
        stage.api::<Deployment>().create(&PostParams::default(), &typed(deployment)).await.unwrap();
    }
    let known = |status: &Status| {
        status.0["coordinationState"][0]["completeBatches"] == json!("0-1") && status.ready().starts_with("True")
    };
    statuses.until("it is complete", known).await;
    let segment = |pod: &Pod| {
        let index: u32 = pod.labels.get(INDEX).map_or(99, |index| index.parse().unwrap());
        index / if pod.role == "prefill" { 2 } else { 1 }
    };
    let of = |number: u32| {
        stage.pods.now(|now| {
            let all = now.all().filter(|pod| segment(pod) == number).map(|pod| pod.uid.clone());
            all.collect::<BTreeSet<_>>()
        })
    };
    let (first, second) = (of(0), of(1));
    assert_eq!((first.len(), second.len()), (3, 3));
    let lost = stage.pods.now(|now| now.of("decode").find(|pod| segment(pod) == 0).unwrap().name.clone());
    let pods = stage.api::<super::scene::ApiPod>();
    pods.delete(&lost, &kube::api::DeleteParams::default()).await.unwrap();
    let over = |status: &Status| {
        recovery(status, 0).is_some_and(|entry| entry["phase"] == "Complete") && status.ready().starts_with("True")
    };
    let status = statuses.until("recovered", over).await;
    stage.pods.until("all ready", |now: &View| now.count_all(Pod::is_ready) == 6).await;
    assert_eq!(of(1), second, "the other segment stays");
    assert!(of(0).is_disjoint(&first) && of(0).len() == 3, "{:?} {first:?}", of(0));
    assert_eq!(recovery(&status, 0).unwrap()["lost"]["pod"], json!(lost));
}
