//! The webhook is away, or behind: whatever is made meanwhile is refused or held, never let through.

use crate::common::control_plane::EMULATED;
use crate::common::pods::Event;
use crate::common::prelude::*;

#[tokio::test]
async fn while_the_webhook_is_down_pods_are_refused_and_none_slips_in() {
    let stage = Stage::new("webhook-down").await.with_room(46).await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    let group = Group::new("llm").role("prefill", 20, 10).role("decode", 10, 5);
    let statuses = stage.deploy_watched(&group).await;
    statuses.until("deployed", |status| status.ready().starts_with("True")).await;
    rolegate.kill().await;

    let refused = stage.post(CORE, "pods", &group.pod("prefill", "by-hand", &stage.namespace)).await;
    assert_eq!(refused.code, 500, "{refused:?}");
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains(r#"failed calling webhook "pods.rolegate.dev""#), "{message}");
    // Whoever names no group is not our business, and can go on without us.
    let mut other = group.pod("prefill", "of-others", &stage.namespace);
    other["metadata"]["labels"] = json!({ "app": "other" });
    assert_eq!(stage.post(CORE, "pods", &other).await.code, 201);

    // The group cannot be written either, so the workload is what is scaled.
    let larger = group.clone().role("prefill", 30, 10).role("decode", 15, 5);
    stage.scale_set(&group, "prefill", 30).await;
    stage.until_event("FailedCreate", &["in StatefulSet llm-prefill failed"]).await;
    stage.pods.now(|now| assert_eq!(now.count("prefill", |_| true), 20, "{now}"));

    let _rolegate = launch.start().await;
    stage.scale(&larger).await;
    statuses.until("grown", |status| status.ready() == "True AllReplicasReady: 45/45 pods ready").await;
    assert_eq!(stage.pods.births().iter().filter(|pod| !pod.role.is_empty() && !pod.is_held()).count(), 0);
    invariants::released_in_order(&stage.pods, &larger);
    invariants::released_counts_never_fell(&statuses, &larger);
}

/// What is deleted, labelled, annotated or scaled does not wait for us; what would be rolled or judged does.
#[tokio::test]
async fn while_nobody_answers_objects_are_deleted_labelled_and_annotated_all_the_same() {
    goes_on_without_us(ControlPlane::shared()).await;
}

async fn goes_on_without_us(plane: Arc<ControlPlane>) {
    let (stage, rolegate) = Stage::on(plane, "nobody-answers").await.with_room(10).await.serve().await;
    let group = Group::new("llm").role("prefill", 2, 1).role("decode", 2, 1);
    stage.deploy(&group).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
    let kubectl = |arguments: &[&str]| stage.plane.kubectl(&[&["-n", &stage.namespace], arguments].concat(), "");
    let must = |arguments: &[&str]| {
        let output = kubectl(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    let merge = |object: &str, patch: &str| must(&["patch", object, "--type=merge", "-p", patch]);
    for role in ["prefill", "decode"] {
        let set = format!("sts/{}", group.set_name(role));
        must(&["label", "--overwrite", &set, "rolegate.dev/group=llm", &format!("rolegate.dev/role={role}")]);
    }
    merge("rbg/llm", r#"{"metadata":{"finalizers":["example.com/theirs"]}}"#);
    rolegate.kill().await;

    let set = "sts/llm-prefill";
    for (object, webhook, patch) in [
        (set, "workloads", r#"{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}"#),
        (set, "workloads", r#"{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}"#),
        (set, "workloads", r#"{"metadata":{"labels":{"rolegate.dev/role":null}}}"#),
        (set, "workloads", r#"{"metadata":{"annotations":{"rolegate.dev/rollout":"enabled"}}}"#),
        ("rbg/llm", "objects", r#"{"metadata":{"annotations":{"rolegate.dev/discovery":"enabled"}}}"#),
        ("rbg/llm", "objects", r#"{"spec":{"coordination":null,"coordinationRequirements":null}}"#),
    ] {
        let refused = kubectl(&["patch", object, "--type=merge", "-p", patch]);
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(text.contains(&format!(r#"failed calling webhook "{webhook}.rolegate.dev""#)), "{patch}: {text}");
    }
    for object in [set, "rbg/llm"] {
        must(&["annotate", object, "team=llm"]);
        must(&["label", object, "team=llm"]);
    }
    merge(set, r#"{"spec":{"replicas":1}}"#);
    must(&["scale", set, "--replicas=2"]);
    // The garbage collector takes its finalizers away by updates.
    must(&["delete", set, "--cascade=foreground", "--timeout=30s"]);
    must(&["delete", "sts/llm-decode", "--cascade=orphan", "--timeout=30s"]);
    must(&["delete", "rbg/llm", "--wait=false"]);
    merge("rbg/llm", r#"{"metadata":{"finalizers":null}}"#);
    must(&["wait", "--for=delete", "rbg/llm", "--timeout=30s"]);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_scale_up_by_500_with_a_cache_that_lags_lets_no_pod_slip_in() {
        let stage = Stage::new("lagging").await.with_room(600).await;
        let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
        let launch = stage.launch().through(&proxy);
        let rolegate = launch.start().await;
        let group = Group::new("llm").role("prefill", 20, 10);
        let statuses = stage.deploy_watched(&group).await;
        statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 20/20 pods ready").await;

        // Groups are judged by what is read live, and that would be late: it is not the subject.
        launch.stop_judging().await;
        // For these seconds rolegate believes that 20 pods are all there is to be.
        let lag = Duration::from_secs(4);
        proxy.delay(lag);
        let larger = group.clone().role("prefill", 520, 100);
        let segments = json!({ "segmentSize": { "prefill": 100 } });
        let coordination = json!([{ "name": "segments", "strategy": { "segmentPlacement": segments } }]);
        stage.recoordinate(&group, &coordination).await;
        stage.scale(&larger).await;
        let scaled = std::time::Instant::now();
        stage.pods.until("500 more", |now| now.count("prefill", |_| true) == 520).await;
        // The point of the test: they came while it could not know.
        let events = stage.pods.events();
        let blind = |event: &&Event| event.step == Step::Born && event.pod.index >= 20 && event.at < scaled + lag;
        let blind = events.iter().filter(blind).count();
        assert!(blind >= 50, "only {blind} came while the cache lagged");
        assert_eq!(invariants::all_born_held(&stage.pods), 520);
        assert_eq!(rolegate.metric(r#"rolegate_held_pods{reason="GroupMissing"}"#).await, 0);

        proxy.delay(Duration::ZERO);
        let all = "True AllReplicasReady: 520/520 pods ready";
        statuses.until_within(2 * PATIENT, "grown", |status| status.ready() == all).await;
        invariants::released_counts_never_fell(&statuses, &larger);
        invariants::nobody_was_held_again(&stage.pods);
    }

    #[tokio::test]
    async fn a_run_survives_a_network_that_breaks() {
        let stage = Stage::new("broken-network").await.with_room(60).await;
        let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
        let _rolegate = stage.launch().through(&proxy).start().await;
        let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5).held_back();
        let statuses = stage.deploy_watched(&group).await;
        for segment in 1..=4 {
            stage.pods.until("the next released", |now| now.count_all(Pod::is_released) == 15 * segment).await;
            // Every watch breaks, and every request that is on its way.
            proxy.cut();
            stage.let_ready(Pod::is_released).await;
            proxy.cut();
        }
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 60/60 pods ready").await;
        assert_eq!(invariants::all_born_held(&stage.pods), 60);
        invariants::released_in_order(&stage.pods, &group);
        invariants::committed_before_released(&stage.pods, &statuses);
        invariants::released_counts_never_fell(&statuses, &group);
    }

    /// Expressions that this version knows, an older one may not.
    #[tokio::test]
    async fn while_nobody_answers_the_same_goes_on_as_the_oldest_emulated_kubernetes() {
        let plane = ControlPlane::own(|| ControlPlane::emulating(EMULATED[0])).await;
        plane.define_groups();
        goes_on_without_us(plane).await;
    }
}
