//! Somebody else changes pods as well, after we did: we are asked again.

use crate::common::prelude::*;
use crate::pods::support::{BATCH, HOST, change_pods, deploy, rolling_deploy, stage, stored, verdicts};

/// A policy that changes the pods of a stage before we do, and again when it sees that they are held.
fn meddle(stage: &Stage) {
    let held = format!("has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == '{GATE}')");
    let change = format!(
        r#"{held} ? Object{{
            metadata: Object.metadata{{ labels: {{"example.com/seen": "held"}} }},
            spec: Object.spec{{ containers: [Object.spec.containers{{
                name: "main", env: [Object.spec.containers.env{{ name: "SIDE", value: "car" }}],
            }}] }},
        }} : Object{{ metadata: Object.metadata{{ labels: {{"example.com/seen": "free"}} }} }}"#
    );
    change_pods(stage, &change);
}

#[tokio::test]
async fn a_pod_that_another_changes_meanwhile_is_held_once_and_has_each_term_once() {
    let (stage, rolegate) = stage("meddled").await.with_room(8).await.serve().await;
    meddle(&stage);
    let probe = Group::new("probe").pod("main", "probe", &stage.namespace);
    let made = async || stage.post(CORE, "pods?dryRun=All", &probe).await.body["metadata"]["labels"].take();
    until_found("the policy is at work", made, |labels| labels["example.com/seen"] == "held").await;
    let before = verdicts(&rolegate).await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    deploy(&stage, &group, &rolling_deploy("host", "hard", &json!({ "prefill": 2, "decode": 1 }))).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 6).await;
    let [patched, unchanged] = verdicts(&rolegate).await;
    assert_eq!([patched - before[0], unchanged - before[1]], [6, 6], "the second look finds nothing left to do");
    for pod in stage.pods.births() {
        assert_eq!((pod.gates, pod.labels["example.com/seen"].as_str()), (vec![GATE.to_owned()], "held"));
    }
    for pod in stored(&stage).await {
        let pod = serde_json::to_value(pod).unwrap();
        assert_eq!(pod["spec"]["containers"][0]["env"], json!([{ "name": "SIDE", "value": "car" }]));
        let affinity = &pod["spec"]["affinity"];
        let near = &affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let far = &affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!([near, far].map(|terms| terms.as_array().map(Vec::len)), [Some(1), Some(1)], "{affinity}");
    }
}

#[tokio::test]
async fn a_container_for_debugging_can_be_added_to_a_held_pod() {
    let (stage, _rolegate) = stage("debugged").await.serve().await;
    let group = Group::new("llm").role("main", 2, 1);
    let affinity = json!({ "topologyKey": HOST, "ratios": { "main": 1 } });
    deploy(&stage, &group, &json!({ "name": "one", "strategy": { "affinityScheduling": affinity } })).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 2).await;
    let before: Value = serde_json::to_value(stored(&stage).await.pop()).unwrap();
    let debug = json!({ "spec": { "ephemeralContainers": [{ "name": "look", "image": "registry.invalid/look:1" }] } });
    let pods = stage.api::<ApiPod>();
    let (params, debug) = (PatchParams::default(), Patch::Strategic(debug));
    let patched = pods.patch_ephemeral_containers("llm-main-1", &params, &debug).await.unwrap();
    let patched = serde_json::to_value(patched).unwrap();
    assert_eq!(patched["spec"]["ephemeralContainers"][0]["name"], "look");
    for field in ["affinity", "schedulingGates", "containers"] {
        assert_eq!(patched["spec"][field], before["spec"][field]);
    }
    assert_eq!(patched["metadata"]["labels"], before["metadata"]["labels"]);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_dry_run_shows_the_pod_as_it_would_be_and_makes_nothing() {
        let (stage, _rolegate) = stage("as-it-would-be").await.serve().await;
        let group = Group::new("llm").role("main", 4, 2);
        deploy(&stage, &group, &rolling_deploy("rack", "hard", &json!({ "main": 2 }))).await;
        stage.pods.until("all pods", |now| now.count_all(|_| true) == 4).await;
        let mut pod = group.pod("main", "try-3", &stage.namespace);
        pod["metadata"]["ownerReferences"] = json!([owner("apps/v1", "StatefulSet", "try", "0")]);
        let tried = stage.post(CORE, "pods?dryRun=All", &pod).await;
        assert_eq!(tried.code, 201, "{tried:?}");
        assert_eq!(tried.body["metadata"]["labels"][BATCH], "pd-1");
        assert_eq!(tried.body["spec"]["schedulingGates"], json!([{ "name": GATE }]));
        let near = &tried.body["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(near[0]["topologyKey"], "example.com/rack");
        let look = async || stage.pods.now(|now| now.count_all(|_| true));
        stays(Duration::from_millis(500), "there are four pods", look, 4).await;
    }
}
