//! The API server restarts in mid-run.

use crate::common::pods::Step;
use crate::common::prelude::*;

/// Of a kind with one watch: pods have three, and the one that is silent for longest counts.
const SETS_AGE: &str = r#"rolegate_cache_age_seconds{kind="statefulsets.v1.apps"}"#;

/// Waits until what is known of StatefulSets has such an age, in seconds.
async fn age(rolegate: &Rolegate, what: &str, test: impl Fn(f64) -> bool) {
    until_found(what, async || rolegate.seconds(SETS_AGE).await, |age| age.is_some_and(&test)).await;
}

fn heard_since(start: Instant) -> impl Fn(f64) -> bool {
    move |age| age < start.elapsed().as_secs_f64()
}

/// A real upgrade has the API server before its clients.
#[tokio::test]
#[ignore = "needs two versions of Kubernetes: `make versions`"]
async fn a_run_goes_on_while_the_control_plane_is_upgraded() {
    let plane = ControlPlane::to_be_upgraded().await;
    let (stage, mut rolegate) = Stage::on(plane.clone(), "upgraded").await.with_room(60).await.serve().await;
    rolegate.overlooks_refusals = true;
    let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5).held_back();
    let statuses = stage.statuses(&group);
    let before = plane.must(&["get", "--raw", "/version"], "");
    stage.deploy(&group).await;
    let upgraded = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    for (segments, component) in (1..=4).zip(upgraded.map(Some).into_iter().chain([None])) {
        let released = |now: &View| now.count_all(Pod::is_released) == 15 * segments;
        stage.pods.until_within(2 * PATIENT, "the next released", released).await;
        if let Some(component) = component {
            plane.command("exchange", component).await;
        }
        stage.let_ready(Pod::is_released).await;
    }
    let ready = "True AllReplicasReady: 60/60 pods ready";
    statuses.until_within(2 * PATIENT, "all ready", |status| status.ready() == ready).await;
    assert_ne!(plane.must(&["get", "--raw", "/version"], ""), before, "no other version runs now");
    invariants::all_born_held(&stage.pods);
    // Those too that were made while no watch was open.
    let born = stage.pods.events().iter().filter(|event| event.step == Step::Born).count();
    assert_eq!(born, 60, "pods were made anew");
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
}

#[tokio::test]
async fn a_run_goes_on_after_the_api_server_has_restarted() {
    let plane = ControlPlane::own_with_groups().await;
    let (stage, mut rolegate) = Stage::on(plane.clone(), "api-server").await.with_room(60).await.serve().await;
    rolegate.overlooks_refusals = true;
    let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5).held_back();
    let statuses = stage.statuses(&group);
    let start = Instant::now();
    stage.deploy(&group).await;
    age(&rolegate, "young after an event", heard_since(start)).await;
    // A kind that nobody defines is not waited for.
    let undefined = r#"rolegate_cache_age_seconds{kind="podgroups.v2alpha2.scheduling.run.ai"}"#;
    assert_eq!(rolegate.seconds(undefined).await, None);
    for segments in 1..=4 {
        let released = |now: &View| now.count_all(Pod::is_released) == 15 * segments;
        stage.pods.until_within(2 * PATIENT, "the next released", released).await;
        match segments {
            1 => plane.command("restart", "kube-apiserver").await,
            2 => {
                // Silent instead of gone: nobody closes a connection.
                plane.command("pause", "kube-apiserver").await;
                age(&rolegate, "older", |age| age > 2.0).await;
                let start = Instant::now();
                plane.command("resume", "kube-apiserver").await;
                stage.let_ready(Pod::is_released).await;
                age(&rolegate, "young again", heard_since(start)).await;
            }
            3 => {
                plane.command("kill", "kube-apiserver").await;
                plane.command("start", "kube-apiserver").await;
            }
            _ => {}
        }
        stage.let_ready(Pod::is_released).await;
    }
    let ready = "True AllReplicasReady: 60/60 pods ready";
    statuses.until_within(2 * PATIENT, "all ready", |status| status.ready() == ready).await;
    rolegate.until_ready().await;
    invariants::all_born_held(&stage.pods);
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
}
