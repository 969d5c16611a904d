//! Pods whose template asks for an engine are born with its numbers, whichever controller makes them.

use crate::common::prelude::*;
use crate::pods::support::{change_pods, stage, stored, verdicts};

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

    stage.scale_set(&group, "decode", 6).await;
    stage.pods.until("the new pods", |now| now.count_all(|_| true) == 6).await;
    let scaled = "4 pods were created when 4 pods of the role met, and a pod created now meets as one of 6";
    stage.until_said(&["status", "llm"], &format!("role \"decode\": {scaled}")).await;
    let told = stage.said(&["explain", "pod", "llm-decode-6"]).await;
    assert!(told.contains("1 pod was created when 4 pods of the role met"), "{told}");
    let told = stage.said(&["explain", "pod", "llm-decode-10"]).await;
    assert!(told.contains("pod 6 of 6") && !told.contains("1 pod was created"), "{told}");
}

#[tokio::test]
async fn a_leader_worker_set_of_another_size_makes_its_pods_again_and_all_have_the_numbers_of_the_new_size() {
    let (stage, _rolegate) = stage("engine-resized").await.with_room(8).await.serve().await;
    let group = group("vllm; procsPerPod=2");
    stage.create(group.coordination_of("LeaderWorkerSet", &json!({}))).await;
    let more = json!({ "spec": { "replicas": 1 } });
    stage.create(group.leader_worker_set("decode", 2, &stage.namespace, &more)).await;
    let place = |size: u32| {
        move |name: &str| (name.strip_prefix("llm-decode-0-").map_or(0, |index| index.parse().unwrap()), size)
    };
    have_numbers(&stage, 2, "llm-decode-0.llm-decode", place(2)).await;
    stage.pods.until("both ready", |now| now.count_all(Pod::is_ready) == 2).await;
    let resize = json!({ "spec": { "leaderWorkerTemplate": { "size": 3 } } }).to_string();
    stage.kubectl(&["patch", "lws", "llm-decode", "--type=merge", "-p", &resize]);
    stage.pods.until("the new pods", |now| now.count_all(Pod::is_ready) == 3).await;
    have_numbers(&stage, 3, "llm-decode-0.llm-decode", place(3)).await;
    // A worker of the old size never runs beside a leader of the new one: they would meet at one address.
    let mut there: BTreeMap<String, String> = BTreeMap::new();
    for event in stage.pods.events() {
        let revision = &event.pod.labels["leaderworkerset.sigs.k8s.io/template-revision-hash"];
        match event.step {
            Step::Scheduled => _ = there.insert(event.pod.uid.clone(), revision.clone()),
            Step::Gone => _ = there.remove(&event.pod.uid),
            _ => {}
        }
        let revisions: BTreeSet<_> = there.values().collect();
        assert!(revisions.len() <= 1, "{there:?}");
    }
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

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn sidecars_that_are_injected_before_and_after_us_get_the_same_variables_once() {
        let (stage, rolegate) = stage("engine-sidecars").await.with_room(2).await.serve().await;
        let sidecar =
            |name: &str| format!(r#"Object.spec.containers{{ name: "{name}", image: "registry.invalid/x:1" }}"#);
        let [early, late] = ["early", "late"].map(sidecar);
        let ours = "has(object.metadata.annotations) && 'rolegate.dev/engine-variables' in object.metadata.annotations";
        let with = |containers: &str| format!("Object{{ spec: Object.spec{{ containers: [{containers}] }} }}");
        change_pods(&stage, &format!("{ours} ? {} : {}", with(&format!("{early}, {late}")), with(&early)));
        let probe = Group::new("probe").pod("main", "probe", &stage.namespace);
        let made = async || stage.post(CORE, "pods?dryRun=All", &probe).await.body["spec"]["containers"].take();
        until_found("the policy is at work", made, |all| all.as_array().map(Vec::len) == Some(2)).await;
        let before = verdicts(&rolegate).await;
        let mut group = group("vllm; procsPerPod=2; scope=role");
        group.roles[0].replicas = 2;
        stage.create(group.coordination()).await;
        let mut set = group.set(&group.roles[0], &stage.namespace);
        set["spec"]["serviceName"] = json!("llm");
        stage.create(set).await;
        stage.pods.until("all pods", |now| now.count_all(|_| true) == 2).await;
        let [patched, unchanged] = verdicts(&rolegate).await;
        let reviews = [patched - before[0], unchanged - before[1]];
        assert_eq!(reviews, [4, 0], "each pod comes by again with its last sidecar");
        for pod in stored(&stage).await {
            let pod = serde_json::to_value(pod).unwrap();
            let containers = pod["spec"]["containers"].as_array().unwrap();
            let names: BTreeSet<_> = containers.iter().map(|container| container["name"].as_str().unwrap()).collect();
            assert_eq!(names, BTreeSet::from(["early", "late", "main", "side"]));
            let place = |name: &str| containers.iter().position(|container| container["name"] == name).unwrap();
            let [early, late, main] = ["early", "late", "main"].map(place);
            assert_eq!(env(&pod, early), env(&pod, late));
            assert_eq!(env(&pod, early)["DP_SIZE"], "4");
            assert_eq!((env(&pod, main)["DP_SIZE"].as_str(), env(&pod, main)["DP_RPC_PORT"].as_str()), ("4", "1234"));
            for container in containers {
                let env = container["env"].as_array().unwrap();
                let once: BTreeSet<_> = env.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
                assert_eq!(once.len(), env.len(), "{container}");
            }
        }
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
}

/// As Helm installs them: the workload first. Nothing adds variables to a pod, so its pods are made anew before any of them runs.
#[tokio::test]
async fn pods_that_are_older_than_their_group_are_recreated_and_none_runs_without_its_numbers() {
    let (stage, _rolegate) = stage("engine-early").await.with_room(4).await.serve_with("allow", "recovery").await;
    let group = group("vllm; procsPerPod=2; scope=role");
    let mut set = group.set(&group.roles[0], &stage.namespace);
    set["spec"]["serviceName"] = json!("llm");
    stage.create(set).await;
    stage.pods.until("all are held", |now| now.count_all(Pod::is_held) == 4).await;
    let early: BTreeSet<_> = stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    stage.create(group.coordination()).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
    have_numbers(&stage, 4, "llm-decode-0.llm", |name| (name.rsplit_once('-').unwrap().1.parse().unwrap(), 4)).await;
    for event in stage.pods.events() {
        let ran = matches!(event.step, Step::Scheduled) && early.contains(&event.pod.uid);
        assert!(!ran, "{event:?}");
    }
}
