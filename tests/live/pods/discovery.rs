//! Pods of a group that opted in find the first pod of each role by their environment.

use crate::common::prelude::*;
use crate::pods::support::{stage, stored};

/// Two roles whose pods have variables of their own.
fn group() -> Group {
    let main = json!({ "name": "main", "image": "registry.invalid/x:1", "env": [
        { "name": "LEADER", "value": "$(PREFILL_ADDR):8080" },
        { "name": "ROLE_NAME", "value": "mine" },
    ]});
    let containers = json!({ "spec": {
        "containers": [main, { "name": "side", "image": "registry.invalid/x:1" }],
        "initContainers": [{ "name": "first", "image": "registry.invalid/x:1" }],
    }});
    Group::new("llm").role("prefill", 2, 1).role("de-code", 2, 1).template(&containers)
}

/// A RoleCoordination over the StatefulSets of the group.
async fn create_coordination(stage: &Stage, annotation: &str) {
    let mut coordination = group().coordination();
    coordination["metadata"]["annotations"] = json!({ "rolegate.dev/discovery": annotation });
    stage.create(coordination).await;
}

/// The StatefulSets behind one Service, with their pods or yet without. The last role comes first, and only the first has pods.
async fn create_sets(stage: &Stage, group: &Group, with_pods: bool) {
    for role in group.roles.iter().rev() {
        let mut set = group.set(role, &stage.namespace);
        set["spec"]["replicas"] = json!(if with_pods && role.name == "prefill" { role.replicas } else { 0 });
        set["spec"]["serviceName"] = json!("llm");
        // One that starts to count later: its first pod has another name.
        set["spec"]["ordinals"] = json!({ "start": if role.name == "prefill" { 0 } else { 5 } });
        stage.create(set).await;
    }
}

/// The coordination and its StatefulSets, which have no pods yet.
async fn prepare(stage: &Stage, annotation: &str) -> Group {
    let group = group();
    create_coordination(stage, annotation).await;
    create_sets(stage, &group, false).await;
    group
}

async fn scale_up(stage: &Stage, group: &Group) {
    for role in &group.roles {
        stage.scale_set(group, &role.name, role.replicas).await;
    }
    stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == 4).await;
}

#[tokio::test]
async fn pods_of_stateful_sets_know_themselves_and_the_first_of_each_role() {
    let (stage, _rolegate) = stage("discovery").await.with_room(4).await.serve().await;
    let group = prepare(&stage, "enabled").await;
    scale_up(&stage, &group).await;
    for pod in stored(&stage).await {
        let pod = serde_json::to_value(pod).unwrap();
        let (name, ordinal) = pod["metadata"]["name"].as_str().unwrap().rsplit_once('-').unwrap();
        let (role, start) = if name == "llm-prefill" { ("prefill", 0) } else { ("de-code", 5) };
        let index = ordinal.parse::<u32>().unwrap() - start;
        let ours = json!([
            { "name": "ROLE_NAME", "value": role },
            { "name": "ROLE_INDEX", "value": index.to_string() },
            { "name": "PREFILL_ADDR", "value": "llm-prefill-0.llm.discovery.svc.cluster.local" },
            { "name": "DE_CODE_ADDR", "value": "llm-de-code-5.llm.discovery.svc.cluster.local" },
        ]);
        let spec = &pod["spec"];
        assert_eq!((&spec["initContainers"][0]["env"], &spec["containers"][1]["env"]), (&ours, &ours));
        let mut with_own = ours.as_array().unwrap().clone();
        with_own.push(json!({ "name": "LEADER", "value": "$(PREFILL_ADDR):8080" }));
        assert_eq!(spec["containers"][0]["env"], json!(with_own));
    }
}

#[tokio::test]
async fn pods_that_come_before_their_workloads_are_known_find_all_roles() {
    let stage = stage("hasty-discovery").await;
    let proxy = Proxy::before(stage.plane.server.strip_prefix("https://").unwrap().parse().unwrap()).await;
    let _rolegate = stage.launch().through(&proxy).start().await;
    create_coordination(&stage, "enabled").await;
    let group = group();
    // It hears of everything late, and of the pods at once.
    proxy.delay(Duration::from_millis(400));
    create_sets(&stage, &group, true).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 2).await;
    for pod in stored(&stage).await {
        let pod = serde_json::to_value(pod).unwrap();
        let env = pod["spec"]["containers"][1]["env"].as_array().into_iter().flatten();
        let names: Vec<_> = env.map(|variable| variable["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ROLE_NAME", "ROLE_INDEX", "PREFILL_ADDR", "DE_CODE_ADDR"], "{}", pod["metadata"]["name"]);
    }
}

/// Pods keep the variables of their own, and get none.
async fn are_left_alone(stage: &Stage, annotation: &str) {
    stage.add_node("all", 4).await;
    let group = prepare(stage, annotation).await;
    scale_up(stage, &group).await;
    for pod in stored(stage).await {
        let pod = serde_json::to_value(pod).unwrap();
        assert!(pod["spec"]["containers"][1]["env"].is_null(), "{pod}");
        assert_eq!(pod["spec"]["containers"][0]["env"].as_array().map(Vec::len), Some(2));
    }
}

#[tokio::test]
async fn pods_are_left_alone_where_discovery_is_off_whatever_their_group_says() {
    let (stage, _rolegate) = stage("discovery-off").await.serve_with("discovery", "off").await;
    are_left_alone(&stage, "enabled").await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn pods_of_groups_that_did_not_opt_in_are_left_alone() {
        let (stage, _rolegate) = stage("no-discovery").await.serve().await;
        are_left_alone(&stage, "disabled").await;
    }
}
