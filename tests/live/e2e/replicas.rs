//! Several rolegates: one leads, another takes over, and two that both believe to lead do no harm.

use crate::common::prelude::*;

async fn leads(rolegate: &Rolegate) {
    rolegate.until_metric("rolegate_leader", 1).await;
}

/// A leader and a follower behind one address, as behind a Service.
async fn pair(launch: &Launch, service: &Proxy) -> (Rolegate, Rolegate) {
    let leader = launch.start_unready().await;
    service.lead_to(&[leader.webhook]);
    leads(&leader).await;
    let follower = launch.start().await;
    service.lead_to(&[leader.webhook, follower.webhook]);
    assert_eq!(follower.metric("rolegate_leader").await, 0);
    (leader, follower)
}

#[tokio::test]
async fn a_leader_that_is_told_to_end_hands_over_before_its_lease_runs_out() {
    let stage = Stage::new("hand-over").await.with_room(60).await;
    let (service, launch) = stage.behind_a_service().await;
    // Whoever waited for this Lease to run out would not lead in time.
    let (leader, follower) = pair(&launch.flag("lease-duration", "10m"), &service).await;
    let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5);
    let statuses = stage.statuses(&group);
    let (ended, ()) = tokio::join!(leader.terminate(), leads(&follower));
    assert!(ended.0.success(), "{ended:?}");
    stage.deploy(&group).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 60/60 pods ready").await;
    invariants::released_in_order(&stage.pods, &group);
}

#[tokio::test]
async fn a_leader_that_is_no_longer_answered_stops_before_another_begins() {
    let stage = Stage::new("silent-leader").await.with_room(20).await;
    let (service, launch) = stage.behind_a_service().await;
    let duration = Duration::from_secs(9);
    let launch = launch.flag("lease-duration", "9s").flag("write-timeout", "1s");
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let leader = launch.clone().through(&proxy).start_unready().await;
    service.lead_to(&[leader.webhook]);
    leads(&leader).await;
    let follower = launch.start().await;
    service.lead_to(&[follower.webhook]);
    proxy.silence();
    let silent = Instant::now();
    leader.until_metric("rolegate_leader", 0).await;
    let stopped = silent.elapsed();
    assert!(stopped < duration, "it stopped after {stopped:?}");
    assert_eq!(follower.metric("rolegate_leader").await, 0, "two lead at once");
    leads(&follower).await;
    assert_eq!(leader.metric("rolegate_leader").await, 0);
    let group = Group::new("llm").role("prefill", 20, 10);
    let statuses = stage.deploy_watched(&group).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 20/20 pods ready").await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_lease_that_nobody_could_have_written_does_not_stop_leadership() {
        let stage = Stage::new("absurd-lease").await.with_room(2).await;
        let end_of_time = "9999-12-31T23:59:59.000000Z";
        let lease = object("coordination.k8s.io/v1", "Lease", &stage.namespace).spec(json!({
            "holderIdentity": "nobody",
            "leaseDurationSeconds": i32::MAX,
            "acquireTime": end_of_time,
            "renewTime": end_of_time,
            "leaseTransitions": i32::MAX,
        }));
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases");
        assert_eq!(stage.send("POST", &path, &lease).await.code, 201);
        let rolegate = stage.launch().start().await;
        leads(&rolegate).await;
        let group = Group::new("llm").role("main", 2, 1);
        let statuses = stage.deploy_watched(&group).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 2/2 pods ready").await;
        let (ended, _) = rolegate.terminate().await;
        assert!(ended.success(), "{ended}");
        let given_back = stage.send("GET", &format!("{path}/{}", stage.namespace), &json!({})).await;
        assert_eq!(given_back.body["spec"]["holderIdentity"], "", "{given_back:?}");
    }

    #[tokio::test]
    async fn two_leaders_do_no_harm() {
        let stage = Stage::new("two-leaders").await.with_room(150).await;
        // Two leases: neither knows of the other. Each pod is sent to both webhooks.
        let one = stage.launch().start().await;
        let two = stage.launch().flag("name", "two-leaders-too").start().await;
        leads(&one).await;
        leads(&two).await;
        let group = Group::story_1("llm");
        let statuses = stage.deploy_watched(&group).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 150/150 pods ready").await;
        assert_eq!(invariants::all_born_held(&stage.pods), 150);
        for pod in stage.pods.births() {
            assert_eq!(pod.gates.len(), 1, "one gate, not two: {pod:?}");
        }
        invariants::released_in_order(&stage.pods, &group);
        invariants::released_counts_never_fell(&statuses, &group);
        invariants::committed_before_released(&stage.pods, &statuses);
        let mut written = 0;
        for rolegate in [&one, &two] {
            assert_eq!(rolegate.metric(r#"rolegate_releases_total{outcome="failed"}"#).await, 0);
            assert_eq!(rolegate.metric(r#"rolegate_status_writes_total{outcome="failed"}"#).await, 0);
            written += rolegate.metric(r#"rolegate_status_writes_total{outcome="written"}"#).await;
        }
        assert!(written >= 10, "{written}");
    }
}
