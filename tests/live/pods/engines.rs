//! Pods whose template asks for an engine are born with its numbers, whichever controller makes them.

use crate::common::prelude::*;
use crate::pods::support::{stage, stored};

/// One command line for every kind of workload.
const ARGS: [&str; 4] = [
    "--data-parallel-size=$(DP_SIZE)",
    "--data-parallel-size-local=$(DP_SIZE_LOCAL)",
    "--data-parallel-start-rank=$(DP_START_RANK)",
    "--data-parallel-address=$(DP_ADDRESS)",
];

fn group(engine: &str) -> Group {
    let template = json!({
        "metadata": { "annotations": { "rolegate.dev/engine": engine } },
        "spec": { "containers": [
            { "name": "main", "image": "registry.invalid/x:1", "args": ARGS, "env": [{ "name": "DP_RPC_PORT", "value": "1234" }] },
            { "name": "side", "image": "registry.invalid/x:1" },
        ] },
    });
    Group::new("llm").role("decode", 4, 2).template(&template)
}

/// The variables of a container, by name; of one that kubelet fills in, the path of the field.
fn env(pod: &Value, container: usize) -> BTreeMap<String, String> {
    let variables = pod["spec"]["containers"][container]["env"].as_array().unwrap();
    let value = |variable: &Value| {
        let path = &variable["valueFrom"]["fieldRef"]["fieldPath"];
        variable["value"].as_str().or(path.as_str()).unwrap().to_owned()
    };
    variables.iter().map(|variable| (variable["name"].as_str().unwrap().to_owned(), value(variable))).collect()
}

/// Every pod has the numbers of its place, and the user's own port.
async fn have_numbers(stage: &Stage, pods: usize, leader: &str, place: impl Fn(&str) -> (u32, u32)) {
    stage.pods.until("all pods", |now| now.count_all(|_| true) == pods).await;
    for pod in stored(stage).await {
        let pod = serde_json::to_value(pod).unwrap();
        let name = pod["metadata"]["name"].as_str().unwrap();
        let (rank, nodes) = place(name);
        let main = env(&pod, 0);
        assert_eq!(main["DP_SIZE"], (nodes * 2).to_string(), "{name}");
        assert_eq!(main["DP_SIZE_LOCAL"], "2", "{name}");
        assert_eq!(main["DP_START_RANK"], (rank * 2).to_string(), "{name}");
        assert_eq!(main["DP_ADDRESS"], format!("{leader}.{}.svc.cluster.local", stage.namespace), "{name}");
        assert_eq!((main["DP_RPC_PORT"].as_str(), env(&pod, 1)["DP_RPC_PORT"].as_str()), ("1234", "29550"), "{name}");
        assert_eq!(main["VLLM_NIXL_SIDE_CHANNEL_HOST"], "status.podIP", "{name}");
        assert_eq!(pod["spec"]["containers"][0]["args"], json!(ARGS), "{name}");
    }
}

#[tokio::test]
async fn pods_of_a_stateful_set_meet_in_one_rendezvous_of_their_role() {
    let (stage, _rolegate) = stage("engine-set").await.with_room(4).await.serve().await;
    let group = group("vllm; procsPerPod=2; scope=role");
    stage.create(group.coordination()).await;
    let mut set = group.set(&group.roles[0], &stage.namespace);
    set["spec"]["serviceName"] = json!("llm");
    set["spec"]["ordinals"] = json!({ "start": 5 });
    stage.create(set).await;
    let place = |name: &str| (name.rsplit_once('-').unwrap().1.parse::<u32>().unwrap() - 5, 4);
    have_numbers(&stage, 4, "llm-decode-5.llm", place).await;
    let told = stage.said(&["explain", "pod", "llm-decode-6"]).await;
    assert!(told.contains("engine   vllm (annotation rolegate.dev/engine): pod 2 of 4"), "{told}");
    assert!(told.contains("DP_START_RANK=2"), "{told}");
}

#[tokio::test]
async fn pods_of_a_leader_worker_set_meet_in_their_group_and_the_webhook_of_lws_changes_nothing() {
    let (stage, _rolegate) = stage("engine-lws").await.with_room(3).await.serve().await;
    let group = group("vllm; procsPerPod=2");
    let unique = json!({ "spec": { "networkConfig": { "subdomainPolicy": "UniquePerReplica" }, "replicas": 1 } });
    let set = group.leader_worker_set("decode", 3, &stage.namespace, &unique);
    stage.create(group.coordination_of("LeaderWorkerSet", &json!({}))).await;
    stage.create(set).await;
    // The leader is reviewed before and after LWS has written the Service of its group.
    let place = |name: &str| (name.strip_prefix("llm-decode-0-").map_or(0, |index| index.parse().unwrap()), 3);
    have_numbers(&stage, 3, "llm-decode-0.llm-decode-0", place).await;
}

#[tokio::test]
async fn a_pod_with_an_unknown_engine_is_refused_with_the_words_that_are_known() {
    let (stage, _rolegate) = stage("engine-unknown").await.serve().await;
    let mut pod = Group::new("llm").pod("decode", "p", &stage.namespace);
    pod["metadata"]["annotations"] = json!({ "rolegate.dev/engine": "vlm; procsPerPod=8" });
    let answer = stage.post(CORE, "pods?dryRun=All", &pod).await;
    let message = answer.body["message"].as_str().unwrap_or_default();
    assert!(message.contains("metadata.annotations[rolegate.dev/engine]"), "{message}");
    assert!(message.contains("did you mean \"vllm\"?"), "{message}");
}
