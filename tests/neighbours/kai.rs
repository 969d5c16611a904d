//! KAI: its scheduler, binder, podgrouper and the controllers of PodGroups and queues, without GPUs. Its admission webhooks are
//! not run: they listen on all addresses.

use std::sync::LazyLock;

use crate::common::prelude::*;
use crate::gangs::{self, Gangs, gang_stories};
use crate::program::{Neighbour, Running};

static KAI: Neighbour = Neighbour { name: "kai", module: "github.com/NVIDIA/KAI-scheduler" };
const SCHEDULER: &str = "kai-scheduler";
/// By which a pod says which PodGroup it is in.
const ANNOTATION: &str = "pod-group-name";
/// Label of namespaces whose pods its podgrouper groups.
const GROUPED: &str = "example.com/podgrouper";

struct World {
    plane: Arc<ControlPlane>,
    _programs: [Running; 5],
}

static WORLD: LazyLock<Arc<World>> = LazyLock::new(|| gangs::start(begin));

fn begin() -> World {
    let plane = gangs::plane(&KAI, &["crds"]);
    let unlimited = json!({ "quota": -1, "limit": -1, "overQuotaWeight": 1 });
    let resources = json!({ "cpu": unlimited, "gpu": unlimited, "memory": unlimited });
    for (name, parent) in [("company", None), ("team", Some("company")), ("default-queue", Some("company"))] {
        let queue = object("scheduling.run.ai/v2", "Queue", name)
            .spec(json!({ "parentQueue": parent, "resources": resources }));
        plane.must(&["create", "-f", "-"], &queue.to_string());
    }
    let kubeconfig = [("KUBECONFIG", plane.kubeconfig.to_str().unwrap())];
    // -1 is no port: this one it would open on all addresses, for plugins that are not there.
    let scheduler = ["--listen-address=127.0.0.1:0", "--plugin-server-port=-1", "--schedule-period=200ms"];
    let nowhere = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let with = |more: &[&'static str]| [&nowhere, more].concat();
    let selector = format!("--namespace-label-selector={GROUPED}=true");
    let programs = [
        KAI.start("scheduler", &scheduler, &kubeconfig),
        KAI.start("binder", &nowhere, &kubeconfig),
        KAI.start("podgrouper", &[nowhere[0], nowhere[1], &selector], &kubeconfig),
        KAI.start("podgroupcontroller", &with(&["--enable-podgroup-webhook=false"]), &kubeconfig),
        KAI.start("queuecontroller", &["--metrics-listen-address=127.0.0.1:0", "--enable-webhook=false"], &kubeconfig),
    ];
    World { plane, _programs: programs }
}

fn gangs() -> Gangs {
    Gangs {
        neighbour: &KAI,
        scheduler: SCHEDULER,
        api: ("scheduling.run.ai", "v2alpha2"),
        policy: json!({ "kai": { "queue": "team" } }),
    }
}

async fn stage(name: &str) -> Stage {
    Stage::on(WORLD.plane.clone(), name).await
}

gang_stories!("kai", gangs(), stage, "make neighbours builds kai");

/// Prefill and decode of one batch, three pods, and a node for two of them.
async fn with_room_for_two(stage: &Stage, gangs: &Gangs) -> Group {
    let group = gangs.group("llm", 1);
    stage.add_node("a", 2).await;
    gangs.deploy(stage, &group).await;
    stage.pods.until("the batch is released", |now| now.count_all(Pod::is_released) == 3).await;
    group
}

#[tokio::test]
#[ignore = "make neighbours builds kai"]
async fn its_podgrouper_takes_pods_out_of_the_gang_of_their_batch() {
    let plane = WORLD.plane.clone();
    make_namespace(&plane.client().await, "kai-grouped", &json!({ GROUPED: "true" })).await;
    let (stage, _rolegate) = Stage::within(plane, "kai-grouped").await.serve().await;
    with_room_for_two(&stage, &gangs()).await;
    let is_theirs = |pod: &Pod| pod.annotations[ANNOTATION].starts_with("pg-llm-");
    stage.pods.until("each StatefulSet has a PodGroup of its own", |now| now.count_all(is_theirs) == 3).await;
    stage.pods.until("the gang is none", |now| now.count_all(Pod::is_scheduled) == 2).await;
    let said = stage.said(&["explain", "pod", "llm-prefill-0"]).await;
    assert!(said.contains("and not \"kai-grouped.llm-pd-0\", that of the pod's batch"), "{said}");
    for pod in stage.pods.births() {
        assert_eq!(pod.annotations[ANNOTATION], "kai-grouped.llm-pd-0");
    }
    let result = "does not work: it moves the pods of each StatefulSet into a PodGroup with `minMember` 1, which `explain pod` and `doctor` report. Exclude the namespace (`namespaceLabelSelector`), as all other rows do";
    KAI.record("its podgrouper looks at the pods as well", result);
}

#[tokio::test]
#[ignore = "make neighbours builds kai"]
async fn a_queue_that_is_not_there_is_told_by_nobody() {
    let (stage, rolegate) = stage("kai-queue").await.serve().await;
    stage.add_node("a", 6).await;
    let lost = Gangs { policy: json!({ "kai": { "queue": "nobody" } }), ..gangs() };
    let group = lost.group("lost", 1);
    lost.deploy(&stage, &group).await;
    stage.pods.until("the batch is released", |now| now.count_all(Pod::is_released) == 3).await;
    // What came later has its turn, and was bound.
    let later = gangs().group("later", 1);
    gangs().deploy(&stage, &later).await;
    gangs().until_ready(&stage, &later, 1).await;
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_scheduled), 3, "{now}"));
    drop(rolegate);
    let stored = stage.list::<ApiPod>().await;
    let lost = |pod: &&ApiPod| pod.metadata.name.as_deref().is_some_and(|name| name.starts_with("lost"));
    for pod in stored.iter().filter(lost) {
        assert_eq!(gangs::verdict(pod).0, "SchedulingGated", "said by the API server, when it was made");
    }
    let result = "nothing is bound, and KAI reports nothing";
    KAI.record("the policy names a queue that is not there", result);
}

#[tokio::test]
#[ignore = "make neighbours builds kai"]
async fn groups_of_one_name_in_two_namespaces_are_two() {
    let (here, there) = (stage("kai-here").await, stage("kai-there").await);
    let rolegates = [here.launch().start().await, there.launch().start().await];
    let group = gangs().group("llm", 1);
    // Two of three fit here, all there: had they one gang in KAI's eyes, pods of either would be bound.
    with_room_for_two(&here, &gangs()).await;
    there.add_node("a", 3).await;
    gangs().deploy(&there, &group).await;
    gangs().until_ready(&there, &group, 1).await;
    gangs().until_refused(&here, &group, 0).await;
    here.add_node("b", 1).await;
    gangs().until_ready(&here, &group, 1).await;
    drop(rolegates);
    let result = "each is its own gang: the names of PodGroups begin with the namespace, since this version confuses PodGroups of one name";
    KAI.record("groups of one name in two namespaces", result);
}

/// A gang of this priority class, which is there afterwards.
fn of_class(stage: &Stage, class: &str, value: i32) -> Gangs {
    gangs::priority_class(stage, class, value);
    Gangs { policy: json!({ "kai": { "queue": "team", "priorityClassName": class } }), ..gangs() }
}

/// What makes room is what pods ask for: a node of [`Stage::add_node`] takes three of these, and no fourth.
fn a_third_of_a_node() -> Value {
    asking(&json!({ "requests": { "cpu": "300" } }))
}

#[tokio::test]
#[ignore = "make neighbours builds kai"]
async fn a_batch_of_a_higher_class_takes_the_place_of_a_lower() {
    let (stage, _rolegate) = stage("kai-class").await.serve().await;
    let (low, high) = (of_class(&stage, "kai-low", 10), of_class(&stage, "kai-high", 90));
    stage.add_node("a", 10).await;
    let first = low.group("low", 1).template(&a_third_of_a_node());
    low.deploy(&stage, &first).await;
    low.until_ready(&stage, &first, 1).await;
    let second = high.group("high", 1).template(&a_third_of_a_node());
    high.deploy(&stage, &second).await;
    high.until_ready(&stage, &second, 1).await;
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_scheduled), 3, "{now}"));
    let made = high.pod_groups(&stage).get("kai-class.high-pd-0").await.unwrap();
    assert_eq!(made.data["spec"]["priorityClassName"], "kai-high");
    assert_eq!(made.data["spec"]["queue"], "team");
    let result = "the higher batch is bound, the lower is evicted";
    KAI.record("`priorityClassName` of the policy, no room for both", result);
}

#[tokio::test]
#[ignore = "make neighbours builds kai"]
async fn a_batch_that_runs_can_lose_single_pods_to_a_higher_class() {
    let (stage, _rolegate) = stage("kai-single").await.serve().await;
    let low = of_class(&stage, "kai-lower", 10);
    of_class(&stage, "kai-higher", 90);
    stage.add_node("a", 10).await;
    let group = low.group("low", 1).template(&a_third_of_a_node());
    low.deploy(&stage, &group).await;
    low.until_ready(&stage, &group, 1).await;
    low.until_members(&stage, "it is loosened", &[("low-pd-0", 1)]).await;
    let single = object("scheduling.run.ai/v2alpha2", "PodGroup", "single")
        .spec(json!({ "minMember": 1, "queue": "team", "priorityClassName": "kai-higher" }));
    stage.create(single).await;
    let mut pod = group.pod("prefill", "single", &stage.namespace);
    json_patch::merge(&mut pod, &a_third_of_a_node());
    pod["metadata"]["labels"] = json!({});
    pod["metadata"]["annotations"] = json!({ ANNOTATION: "single" });
    pod["spec"]["schedulerName"] = json!(SCHEDULER);
    stage.create(pod).await;
    stage.pods.until("it is bound", |now| now.named("single").is_some_and(Pod::is_scheduled)).await;
    let left = stage.pods.now(|now| now.count_all(|pod| pod.name.starts_with("low") && pod.is_scheduled()));
    assert_eq!(left, 2, "of three");
    let result = "preempts one pod: a bound batch has `minMember` 1, so that a rollout does not wait for all of it";
    KAI.record("one pod of a higher class, no room beside a batch that runs", result);
}

#[tokio::test]
#[ignore = "make neighbours builds kai"]
async fn doctor_tells_how_its_definition_counts() {
    let (stage, rolegate) = stage("kai-doctor").await.serve().await;
    let group = gangs().group("llm", 1);
    gangs().deploy(&stage, &group).await;
    gangs().until_members(&stage, "a PodGroup of a batch", &[("llm-pd-0", 3)]).await;
    let doctor = ["doctor", "--name", "kai-doctor", "--namespace", SYSTEM];
    let said = ran(&stage.plane.kubeconfig, &doctor).await.out;
    assert!(said.contains("KAI is there (v2alpha2): counts pods, as KAI v0.10 to v0.14 does"), "{said}");
    assert!(said.contains("its podgrouper puts pods into PodGroups of their workloads"), "{said}");
    drop(rolegate);
    let result = "`doctor` reports it: counts pods";
    KAI.record("dialect of its PodGroup definition", result);
}
