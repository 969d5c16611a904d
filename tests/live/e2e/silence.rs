//! The API server takes requests and never answers them. Whatever is lost so is tried again, and no group stands still for
//! longer than a write may take.

use crate::common::prelude::*;
use crate::common::request_proxy::{Fate, Kind, RequestProxy};
use crate::e2e::wholes::mis_stamped;
use crate::pods::pod_groups::define as define_pod_groups;
use crate::rules::turn::Turn;

/// A rolegate behind a proxy, which waits a second for the answer to a write, and leads however long there is none.
async fn behind_proxy(stage: &Stage) -> (Proxy, Launch) {
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let launch = stage.launch().through(&proxy).flag("write-timeout", "1s").flag("lease-duration", "2m");
    (proxy, launch)
}

async fn logged(rolegate: &Rolegate, text: &str) {
    until_says(text, async || rolegate.log()).await;
}

async fn released(stage: &Stage, pods: usize) {
    let all = |now: &View| now.count_all(Pod::is_released) == pods;
    stage.pods.until("released", all).await;
}

#[tokio::test]
async fn writes_that_are_never_answered_are_tried_again() {
    let stage = Stage::new("silence").await.with_room(6).await;
    let (proxy, launch) = behind_proxy(&stage).await;
    let rolegate = launch.start().await;
    let group = Group::new("llm").role("prefill", 6, 2).held_back();
    let statuses = stage.deploy_watched(&group).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_released) == 2).await;

    // The commit of the second segment gets lost.
    proxy.silence();
    stage.let_ready(Pod::is_released).await;
    rolegate.until_metric(r#"rolegate_status_writes_total{outcome="failed"}"#, 1).await;
    proxy.speak();
    released(&stage, 4).await;
    statuses.until("committed", |status| status.released("prefill") == 4).await;

    // The look at the group before a pod goes that is made again, for which nothing has to be committed.
    proxy.silence();
    stage.delete::<ApiPod>("llm-prefill-0").await;
    logged(&rolegate, "failed, will be tried again: look at the group").await;
    stage.pods.now(|now| assert!(now.named("llm-prefill-0").is_some_and(Pod::is_held), "{now}"));
    proxy.speak();
    released(&stage, 4).await;

    // Events wait in a queue, one behind the other.
    let failed = async || rolegate.metric(r#"rolegate_events_total{outcome="failed"}"#).await;
    until_found("lost Events", failed, |count| *count > 0).await;
    stage.let_ready(Pod::is_released).await;
    released(&stage, 6).await;
    stage.let_ready(Pod::is_released).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;
    invariants::released_in_order(&stage.pods, &group);
    invariants::committed_before_released(&stage.pods, &statuses);
    invariants::released_counts_never_fell(&statuses, &group);
}

#[tokio::test]
async fn a_pod_is_answered_in_time_however_slow_each_read_is() {
    let stage = Stage::new("slow-reads").await;
    let (proxy, launch) = behind_proxy(&stage).await;
    let _rolegate = launch.start().await;
    // It names one object of each kind that is looked up, and none of them is there.
    let mut pod = Group::new("nobody").pod("prefill", "slow", &stage.namespace);
    for (key, value) in [
        ("app.kubernetes.io/part-of", "set"),
        ("grove.io/podclique", "set-0-leader"),
        ("grove.io/podcliqueset-replica-index", "0"),
    ] {
        pod["metadata"]["labels"][key] = json!(value);
    }
    pod["metadata"]["annotations"] = json!({ "pod-group-name": "nobody" });
    pod["metadata"]["ownerReferences"] = json!([owner("apps/v1", "StatefulSet", "nobody", "nobody")]);
    // Each is answered late, but none so late that it alone would be given up.
    proxy.delay(Duration::from_millis(800));
    let answer = stage.post(CORE, "pods", &pod).await;
    let message = answer.body["message"].as_str().unwrap_or_default();
    // The webhook says so itself: the API server, which waits for 3 s, would say that its own deadline is exceeded.
    assert!(answer.code == 500 && message.contains("no answer in time"), "{answer:?}");
}

/// A rolegate to which requests of one kind are not answered.
struct Silence {
    stage: Stage,
    proxy: RequestProxy,
    rolegate: Rolegate,
    kubeconfig: PathBuf,
}

impl Silence {
    /// From the first on they get lost.
    async fn of(kind: Kind, stage: Stage, switches: &[&str]) -> Self {
        let proxy = RequestProxy::before(&stage.plane).await;
        proxy.lose(kind);
        let launch = stage.launch().through_requests(&proxy).flag("write-timeout", "1s").flag("lease-duration", "2m");
        let launch = switches.iter().fold(launch, |launch, switch| launch.switch(switch));
        let rolegate = launch.start().await;
        let kubeconfig = launch.kubeconfig().await;
        Self { stage, proxy, rolegate, kubeconfig }
    }

    /// It is noticed, and another group goes on to its end; then all is answered.
    async fn is_survived(&self, noticed: &str) {
        logged(&self.rolegate, noticed).await;
        self.stage.add_node("of-another", 3).await;
        let other = Group::new("other").role("main", 3, 1);
        let statuses = self.stage.statuses(&other);
        self.stage.deploy(&other).await;
        statuses.until("another is ready", |status| status.ready() == "True AllReplicasReady: 3/3 pods ready").await;
        // It was tried again meanwhile, and got lost again.
        until_found("another try", async || self.proxy.lost(), |count| *count >= 2).await;
        self.proxy.answer();
    }

    async fn until(&self, path: &str, what: &str, test: impl Fn(&Value) -> bool) {
        until_found(what, async || self.stage.send("GET", path, &Value::Null).await.body, test).await;
    }
}

#[tokio::test]
async fn topologies_and_pod_groups_whose_writes_are_never_answered_are_kept_and_made_in_the_end() {
    // What belongs to the whole cluster is kept by the rolegates of other tests as well.
    let turn = Turn::alone("silent-topology").await;
    define_pod_groups(&turn.plane);
    let stage = turn.again().await;
    let status = Kind { method: "PATCH", path: "/clustertopologies/layers/status" };
    let silence = Silence::of(status, stage, &[]).await;
    let (path, stage) = ("/apis/rolegate.dev/v1alpha1/clustertopologies", &silence.stage);
    let topology = object("rolegate.dev/v1alpha1", "ClusterTopology", "layers")
        .spec(json!({ "layers": [{ "name": "host", "key": "kubernetes.io/hostname" }] }));
    assert_eq!(stage.send("POST", path, &topology).await.code, 201);
    silence.is_survived("ClusterTopology cannot be kept, will retry").await;
    let layers = format!("{path}/layers");
    silence.until(&layers, "its status", |found| found["status"]["validate"] == true).await;

    silence.proxy.lose(Kind { method: "POST", path: "/podgroups" });
    stage.add_node("all", 2).await;
    let group = Group::new("llm").role("main", 2, 2);
    let constraint = json!({
        "clusterTopologyName": "layers", "topologyLayerName": "host", "podGroupPolicy": { "kubeScheduling": {} },
    });
    let deploy = json!({ "roleDeployStep": { "main": 2 }, "deployTopologyConstraint": constraint });
    stage.deploy_with(&group, &json!([{ "name": "pd", "strategy": { "rollingDeploy": deploy } }])).await;
    logged(&silence.rolegate, "failed, will be tried again: PodGroup of a batch").await;
    silence.rolegate.until_metric(r#"rolegate_held_pods{reason="PodGroupMissing"}"#, 2).await;
    silence.proxy.answer();
    let goes = |pod: &Pod| pod.name.starts_with("llm") && pod.is_ready();
    stage.pods.until("its pods go", |now| now.count("main", goes) == 2).await;

    // The finalizer of one that nothing refers to any more.
    silence.proxy.lose(Kind { method: "PATCH", path: "/clustertopologies/layers" });
    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    until_is("it may be deleted", async || stage.send("DELETE", &layers, &json!({})).await.code, 200).await;
    until_found("it is to be let go", async || silence.proxy.lost(), |count| *count > 0).await;
    silence.proxy.answer();
    silence.until(&layers, "it is gone", |found| found["code"] == 404).await;
}

#[tokio::test]
async fn a_release_by_hand_that_is_never_answered_ends_and_says_so() {
    let kind = Kind { method: "PATCH", path: "/pods/llm-main-1" };
    let silence = Silence::of(kind, Stage::new("silent-release-by-hand").await, &[]).await;
    let stage = &silence.stage;
    stage.add_node("all", 3).await;
    stage.deploy(&Group::new("llm").role("main", 3, 1).held_back()).await;
    let waiting = |now: &View| now.count_all(Pod::is_released) == 1 && now.count_all(Pod::is_held) == 2;
    stage.pods.until("one is released, two are held", waiting).await;
    let release = ["release", "--all", "--yes", "-n", &stage.namespace];
    let ended = ran(&silence.kubeconfig, &release).await;
    let said = ended.err.contains("no answer within") || ended.out.contains("no answer within");
    assert!(ended.code == 1 && said, "{ended:?}");
    stage.pods.until("the other is released", |now| now.named("llm-main-2").is_some_and(Pod::is_released)).await;
    // Deleted between the look and the write: that is told apart from a release.
    silence.proxy.meet(kind, Fate::Refused(404));
    let gone = ran(&silence.kubeconfig, &release).await;
    assert_eq!((gone.code, gone.out.lines().last()), (0, Some("0 released, 1 gone, 0 failed")), "{gone:?}");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_look_at_a_group_that_is_gone_is_tried_again() {
        let stage = Stage::new("silent-look").await.with_room(6).await;
        let (proxy, launch) = behind_proxy(&stage).await;
        let rolegate = launch.flag("vanished-grace", "1s").start().await;
        let group = Group::new("llm").role("prefill", 6, 2).held_back();
        stage.deploy(&group).await;
        let first = |now: &View| now.count_all(Pod::is_released) == 2 && now.count_all(Pod::is_held) == 4;
        stage.pods.until("the first segment", first).await;
        proxy.silence();
        stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
        logged(&rolegate, "failed, will be tried again: look at whether the group is gone").await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 4, "{now}"));
        proxy.speak();
        released(&stage, 6).await;
    }

    #[tokio::test]
    async fn a_pod_whose_release_is_never_answered_goes_in_the_end() {
        let kind = Kind { method: "PATCH", path: "/pods/llm-main-0" };
        let silence = Silence::of(kind, Stage::new("silent-release").await, &[]).await;
        silence.stage.add_node("all", 2).await;
        silence.stage.deploy(&Group::new("llm").role("main", 2, 1)).await;
        silence.is_survived("failed, will be tried again: release of a pod").await;
        let of_it = |pod: &Pod| pod.name.starts_with("llm-") && pod.is_released();
        silence.stage.pods.until("released", |now| now.count_all(of_it) == 2).await;
    }

    #[tokio::test]
    async fn a_partition_whose_write_is_never_answered_is_set_in_the_end() {
        let kind = Kind { method: "PATCH", path: "/statefulsets/frozen" };
        let silence = Silence::of(kind, Stage::new("silent-partition").await, &[]).await;
        let group = Group::new("llm").role("main", 0, 1);
        silence.stage.create_group(&group).await;
        // Nothing coordinates its rollout any longer.
        let mut set = group.claimed("main", &silence.stage.namespace);
        set["metadata"]["name"] = json!("frozen");
        set["metadata"]["annotations"] = json!({ "rolegate.dev/user-partition": "3" });
        set["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": i32::MAX } });
        silence.stage.create(set).await;
        silence.is_survived("failed, will be tried again: partition of a workload").await;
        let path = format!("/apis/apps/v1/namespaces/{}/statefulsets/frozen", silence.stage.namespace);
        let thawed = |set: &Value| set["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 3;
        silence.until(&path, "it is thawed", thawed).await;
    }

    #[tokio::test]
    async fn a_pod_whose_deletion_is_never_answered_is_made_again_in_the_end() {
        // The first of the second batch: only those that were made for another one are deleted.
        let kind = Kind { method: "DELETE", path: "/pods/llm-prefill-4" };
        let silence = Silence::of(kind, Stage::new("silent-deletion").await, &["recreate-mis-stamped"]).await;
        mis_stamped(&silence.stage).await;
        silence.is_survived("failed, will be tried again: deletion of a pod without a node").await;
        for pods in [6, 12] {
            let of_it = |pod: &Pod| pod.name.starts_with("llm-") && pod.is_released();
            silence.stage.pods.until("released", |now| now.count_all(of_it) == pods).await;
            silence.stage.let_ready(of_it).await;
        }
    }

    #[tokio::test]
    async fn an_object_that_controls_nothing_is_told_so_in_the_end() {
        let stage = Stage::new("silent-conflict").await;
        let group = Group::new("llm").role("main", 2, 1);
        let segments = json!({ "segmentPlacement": { "segmentSize": { "main": 1 } } });
        // Before there is a webhook: it would refuse the second.
        for name in ["first", "second"] {
            let coordination = json!([{ "name": "segments", "strategy": segments }]);
            let spec = json!({ "groupRef": { "name": "llm" }, "coordination": coordination });
            stage.create(object("rolegate.dev/v1alpha1", "RoleCoordination", name).spec(spec)).await;
        }
        let mut object = group.object();
        object["spec"].as_object_mut().unwrap().remove("coordination");
        object["metadata"]["annotations"] = json!({ "rolegate.dev/group": "first" });
        stage.create(object).await;
        let silence = Silence::of(Kind { method: "PATCH", path: "/rolecoordinations/second/status" }, stage, &[]).await;
        silence.is_survived("failed, will be tried again: status of an object that controls nothing").await;
        let path =
            format!("/apis/rolegate.dev/v1alpha1/namespaces/{}/rolecoordinations/second", silence.stage.namespace);
        let told = |object: &Value| object["status"]["conditions"].to_string().contains("Conflicted");
        silence.until(&path, "it is told", told).await;
    }

    #[tokio::test]
    async fn why_pods_are_missing_is_found_in_the_end() {
        let stage = Stage::new("silent-diagnosis").await.with_room(2).await;
        let silence = Silence::of(Kind { method: "GET", path: "/statefulsets/llm-main" }, stage, &[]).await;
        let group = Group::new("llm").role("main", 2, 2);
        let statuses = silence.stage.statuses(&group);
        silence.stage.create_group(&group).await;
        let mut set = group.set(group.find("main"), &silence.stage.namespace);
        set["spec"]["replicas"] = json!(1);
        silence.stage.create(set).await;
        silence.is_survived("failed, will be tried again: look at why pods do not appear").await;
        let told = |status: &Status| status.progressing().contains("has 1 replicas, the group declares more");
        statuses.until("it is told", told).await;
    }

    #[tokio::test]
    async fn what_a_rollout_has_made_is_found_in_the_end() {
        let stage = Stage::new("silent-surge").await.with_room(4).await;
        let silence = Silence::of(Kind { method: "GET", path: "/deployments/router" }, stage, &[]).await;
        let group = Group::new("llm").role("router", 2, 1).bare_names();
        let statuses = silence.stage.statuses(&group);
        silence.stage.create_group(&group).await;
        let rolling = json!({ "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } } });
        silence.stage.create(group.deployment("router", &silence.stage.namespace, &rolling)).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 2/2 pods ready").await;
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/router", silence.stage.namespace);
        let image = json!({ "spec": { "template": { "metadata": { "annotations": { "edited": "yes" } } } } });
        assert_eq!(silence.stage.send("PATCH", &path, &image).await.code, 200);
        silence.is_survived("failed, will be tried again: look at whether a rollout made what is too many").await;
        let done = |deployment: &Value| {
            let status = &deployment["status"];
            status["observedGeneration"] == 2 && status["updatedReplicas"] == 2 && status["replicas"] == 2
        };
        silence.until(&path, "the rollout ends", done).await;
    }
}
