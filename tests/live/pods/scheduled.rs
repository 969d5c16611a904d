//! Room as the scheduler counts it, on the real scheduler: what it keeps for pods that preempt, who preempts, what is resized,
//! and what nobody but the scheduler knows.

use crate::common::prelude::*;
use crate::pods::room::{add, asks, group, one_step};
use crate::pods::support::{RACK, deploy, stage, stored};

/// A pod of nobody's that asks for so many processors, with its finalizers and what else its spec has.
async fn another(stage: &Stage, name: &str, cpu: u32, spec: &Value, finalizers: &[&str]) {
    let mut pod = group("none", 1, 1).pod("none", name, &stage.namespace);
    json_patch::merge(&mut pod["spec"], &asks(&json!({ "cpu": cpu.to_string() }))["spec"]);
    pod["metadata"]["labels"] = json!({});
    pod["metadata"]["finalizers"] = json!(finalizers);
    json_patch::merge(&mut pod["spec"], spec);
    stage.create(pod).await;
}

fn priority_class(stage: &Stage, name: &str, value: i32, policy: &str) -> String {
    let name = format!("{}-{name}", stage.namespace);
    let class = json!({ "value": value, "preemptionPolicy": policy });
    let class = object("scheduling.k8s.io/v1", "PriorityClass", &name).with(&class);
    stage.plane.must(&["create", "-f", "-"], &class.to_string());
    name
}

async fn until_no_room(stage: &Stage, group: &Group) {
    stage.statuses(group).until("there is no room", |status| status.reason() == "NoRoom").await;
}

async fn nobody_goes(stage: &Stage, held: usize) {
    stage.pods.always(Duration::from_secs(2), "nobody goes", |now| now.count_all(Pod::is_held) == held).await;
}

/// One that preempts waits for its victim to end. Meanwhile there is room beside the victim, which is no room.
#[tokio::test]
async fn room_that_the_scheduler_keeps_for_a_pod_that_preempts_is_not_given_away() {
    let stage = stage("room-nominated").await;
    let (high, low) =
        (priority_class(&stage, "high", 1000, "PreemptLowerPriority"), priority_class(&stage, "low", -10, "Never"));
    add(&stage, "r1", "a", 20, &json!({ "cpu": "8" })).await;
    let finalizer = "example.com/stays";
    another(&stage, "victim", 4, &json!({ "priorityClassName": low }), &[finalizer]).await;
    another(&stage, "stays", 2, &json!({ "priorityClassName": high }), &[]).await;
    stage.pods.until("both run", |now| now.count_all(Pod::is_scheduled) == 2).await;
    another(&stage, "preemptor", 6, &json!({ "priorityClassName": high }), &[]).await;
    let pods = stage.api::<ApiPod>();
    let node = format!("{}-r1-a", stage.namespace);
    let kept = async || pods.get("preemptor").await.unwrap().status.and_then(|status| status.nominated_node_name);
    until_is("the scheduler keeps the node for it", kept, Some(node)).await;
    let _rolegate = stage.launch().start().await;
    let group = group("llm", 1, 1).template(&asks(&json!({ "cpu": "1" })));
    deploy(&stage, &group, &one_step(&group)).await;
    until_no_room(&stage, &group).await;
    nobody_goes(&stage, 2).await;
    stage.patch::<ApiPod>("victim", &json!({ "metadata": { "finalizers": null } })).await;
    let is_there = |pod: &Pod| pod.name == "preemptor" && pod.is_scheduled();
    stage.pods.until("it has its place", |now| now.count_all(is_there) == 1).await;
    pods.delete("preemptor", &DeleteParams::default().grace_period(0)).await.unwrap();
    until_ready(&stage, "llm", 2).await;
}

/// Waits until so many pods with such a name are ready.
async fn until_ready(stage: &Stage, name: &str, pods: usize) {
    let is_one = |pod: &Pod| pod.is_ready() && pod.name.starts_with(name);
    stage.pods.until("the batch runs", |now| now.count_all(is_one) == pods).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn pods_that_never_preempt_wait_for_room_under_preempt_as_well() {
        let stage = stage("room-never").await;
        let never = priority_class(&stage, "never", 1000, "Never");
        add(&stage, "r1", "a", 20, &json!({ "cpu": "4" })).await;
        another(&stage, "other", 4, &json!({}), &[]).await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_scheduled) == 1).await;
        let _rolegate = stage.launch().start().await;
        let mut template = asks(&json!({ "cpu": "1" }));
        template["spec"]["priorityClassName"] = json!(never);
        let group = group("llm", 1, 1).template(&template);
        let mut coordination = one_step(&group);
        coordination["whenNoFit"] = json!("preempt");
        deploy(&stage, &group, &coordination).await;
        until_no_room(&stage, &group).await;
        nobody_goes(&stage, 2).await;
        let told = stage.said(&["fit", "llm"]).await;
        assert!(told.contains("no rack fits step 1") && !told.contains("gave way"), "{told}");
        let why = "pods with preemptionPolicy Never take no other's place";
        let explained = stage.said(&["explain", "group", "llm"]).await;
        assert!(explained.contains(why), "{explained}");
        stage.api::<ApiPod>().delete("other", &DeleteParams::default().grace_period(0)).await.unwrap();
        stage.pods.until("the batch runs", |now| now.count_all(Pod::is_ready) == 2).await;
    }

    /// It was asked to shrink, and has not yet; then it is asked to grow beyond its node, which will never be.
    #[tokio::test]
    async fn a_pod_that_is_resized_takes_what_it_has_and_not_what_it_can_never_get() {
        let stage = stage("room-resized").await;
        add(&stage, "r1", "a", 20, &json!({ "cpu": "4" })).await;
        another(&stage, "other", 1, &json!({}), &[]).await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 1).await;
        let pods = stage.api::<ApiPod>();
        let has = async |cpu: u32, conditions: Value| {
            let mut status = serde_json::to_value(pods.get("other").await.unwrap()).unwrap()["status"].take();
            let mut all: Vec<_> = status["conditions"].as_array().unwrap().clone();
            all.retain(|condition| condition["type"] != "PodResizePending");
            all.extend(conditions.as_array().unwrap().iter().cloned());
            let container = &mut status["containerStatuses"][0];
            container["allocatedResources"] = json!({ "cpu": cpu.to_string() });
            container["resources"] = json!({ "requests": { "cpu": cpu.to_string() } });
            let status = json!({ "status": { "conditions": all, "containerStatuses": status["containerStatuses"] } });
            stage.patch_status::<ApiPod>("other", &status).await;
        };
        has(3, json!([])).await;
        let _rolegate = stage.launch().start().await;
        let first = group("llm", 1, 1).template(&asks(&json!({ "cpu": "1" })));
        deploy(&stage, &first, &one_step(&first)).await;
        until_no_room(&stage, &first).await;
        nobody_goes(&stage, 2).await;
        // It has shrunk.
        has(1, json!([])).await;
        until_ready(&stage, "llm", 2).await;
        // One processor is left, and that is what it takes for the scheduler, whatever it asks for.
        let resize = json!({ "spec": { "containers": [{ "name": "main", "resources": { "requests": { "cpu": "3" }, "limits": { "cpu": "3" } } }] } });
        let resize = resize.to_string();
        stage.kubectl(&["patch", "pod", "other", "--subresource=resize", "--type=strategic", "-p", &resize]);
        let second = group("next", 1, 0).template(&asks(&json!({ "cpu": "1" })));
        deploy(&stage, &second, &one_step(&group("next", 1, 1))).await;
        until_no_room(&stage, &second).await;
        has(1, json!([{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }])).await;
        until_ready(&stage, "next", 1).await;
    }

    /// An extender of the scheduler gives it: for a batch without the flag it would be lacking.
    #[tokio::test]
    async fn a_resource_that_no_node_has_keeps_no_batch_and_is_told() {
        let stage = stage("room-unknown").await;
        let device = "room-unknown.example.com/device";
        add(&stage, "r1", "a", 1, &json!({})).await;
        add(&stage, "r2", "a", 2, &json!({})).await;
        let _rolegate = stage.launch().flag("ignore-resources", "room-unknown.example.com/*").start().await;
        let group = group("llm", 1, 1).template(&asks(&json!({ "cpu": "1", (device): "1" })));
        deploy(&stage, &group, &one_step(&group)).await;
        stage.pods.until("it goes", |now| now.count_all(Pod::is_released) == 2).await;
        for pod in stored(&stage).await {
            let selector = pod.spec.unwrap().node_selector.unwrap();
            assert_eq!((selector[RACK].as_str(), selector.get("kubernetes.io/hostname")), ("r2", None), "{selector:?}");
        }
        let told = stage.said(&["fit", "llm", "--ignore-resources", "room-unknown.example.com/*"]).await;
        let what = format!(
            "the scheduler looks at more than this answer: resource {device}, which no node has in its allocatable"
        );
        assert!(told.contains(&what) && !told.contains("0 of 0"), "{told}");
        // Whoever hands it out need tell nobody.
        let room = json!({ (device): "2" });
        stage
            .patch_node_status("room-unknown-r2-a", &json!({ "status": { "allocatable": room, "capacity": room } }))
            .await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 2).await;
    }

    /// A pool at zero: nobody has the label, and an autoscaler makes nodes for pods only that it can see.
    #[tokio::test]
    async fn where_no_node_has_the_label_a_batch_goes_without_a_domain_and_stays_together() {
        let stage = stage("room-zero").await;
        let key = "example.com/pool-at-zero";
        let _rolegate = stage.launch().start().await;
        let group = group("llm", 2, 1).template(&asks(&json!({ "cpu": "1" })));
        let affinity =
            json!({ "topologyKey": key, "ratios": { "prefill": 2, "decode": 1 }, "batchMode": "Sequential" });
        let coordination =
            json!({ "name": "pd", "whenNoFit": "release", "strategy": { "affinityScheduling": affinity } });
        deploy(&stage, &group, &coordination).await;
        stage.pods.until("it goes", |now| now.count_all(Pod::is_released) == 3).await;
        for pod in stored(&stage).await {
            assert!(!pod.spec.unwrap().node_selector.unwrap_or_default().contains_key(key));
        }
        stage
            .until_event("RoomUnknown", &[&format!("batch 1 goes without a place: no node has the label {key}")])
            .await;
        for (number, room) in [("a", 2), ("b", 3)] {
            stage.add_node_with(number, room, json!({ key: "pool" })).await;
        }
        stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 3).await;
        let racks: BTreeSet<_> = stage.pods.now(|now| now.all().filter_map(|pod| pod.node.clone()).collect());
        assert!(!racks.is_empty(), "{racks:?}");
        // One that is made again goes to the domain in which the others are.
        stage.replace_pod("llm-decode-0", Pod::is_ready).await;
        stage.pods.until("all run again", |now| now.count_all(Pod::is_ready) == 3).await;
        let made = stage.api::<ApiPod>().get("llm-decode-0").await.unwrap();
        assert_eq!(made.spec.unwrap().node_selector.unwrap()[key], "pool");
    }
}
