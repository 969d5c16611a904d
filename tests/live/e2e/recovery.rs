//! rolegate ends in mid-run, or its status is lost: nothing is lost with it, and nothing goes early.

use std::collections::HashSet;

use k8s_openapi::api::coordination::v1::Lease;

use crate::common::prelude::*;

/// Four segments of 10 and 5, whose pods do not become ready by themselves.
fn group() -> Group {
    Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5).held_back()
}

fn in_segments(segments: u32) -> impl Fn(&Pod) -> bool {
    move |pod| pod.index < segments * if pod.role == "prefill" { 10 } else { 5 }
}

/// The first segment is ready, the second runs but for the readiness of one pod, the others are held.
async fn wait_for_the_second_segment(stage: &Stage, group: &Group) -> StatusLog {
    let statuses = stage.statuses(group);
    stage.deploy(group).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 60).await;
    stage.pods.until("segment 0 released", |now| now.count_all(Pod::is_released) == 15).await;
    stage.let_ready(in_segments(1)).await;
    stage.pods.until("segment 1 released", |now| now.count_all(Pod::is_released) == 30).await;
    stage.let_ready(|pod| in_segments(2)(pod) && pod.name != "llm-decode-9").await;
    statuses.until("29 ready", |status| status.ready().ends_with("29/60 pods ready")).await;
    statuses
}

/// The loop of this replica has planned the group as it is.
async fn has_planned(rolegate: &Rolegate) {
    rolegate.until_metric(r#"rolegate_held_pods{reason="PreviousSegmentNotReady"}"#, 30).await;
}

/// Nothing went early: then the missing pod becomes ready, and all goes on to the end.
async fn goes_on(stage: &Stage, group: &Group, statuses: &StatusLog) {
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), 30, "{now}"));
    for segments in 2..=4 {
        let released = |pod: &Pod| in_segments(segments)(pod) && pod.is_released();
        stage.pods.until("released", |now| now.count_all(released) == 15 * segments as usize).await;
        stage.let_ready(in_segments(segments)).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 60/60 pods ready").await;
    invariants::all_born_held(&stage.pods);
    invariants::released_in_order(&stage.pods, group);
    invariants::committed_before_released(&stage.pods, statuses);
    invariants::nobody_was_held_again(&stage.pods);
}

#[tokio::test]
async fn a_run_survives_one_kill_after_the_other() {
    let stage = Stage::new("killed-often").await.with_room(150).await;
    let (launch, group) = (stage.launch(), Group::story_1("llm"));
    let statuses = stage.statuses(&group);
    let mut rolegate = launch.start().await;
    stage.deploy(&group).await;
    // Whatever it is doing right then: pods are still being made, commits and releases are on their way.
    for released in [10, 30, 60] {
        statuses.until("some more released", |status| status.released("prefill") >= released).await;
        rolegate.kill().await;
        rolegate = launch.start().await;
    }
    let all = "True AllReplicasReady: 150/150 pods ready";
    statuses.until_within(2 * PATIENT, "all ready", |status| status.ready() == all).await;
    assert_eq!(invariants::all_born_held(&stage.pods), 150);
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
    invariants::nobody_was_held_again(&stage.pods);
}

#[tokio::test]
async fn a_graceful_restart_loses_nothing() {
    let stage = Stage::new("restarted").await.with_room(60).await;
    let (launch, group) = (stage.launch(), group());
    let rolegate = launch.start().await;
    let statuses = wait_for_the_second_segment(&stage, &group).await;
    let (exit, _) = rolegate.terminate().await;
    assert!(exit.success(), "{exit}");
    // It gave up the Lease: nobody waits until it runs out.
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), SYSTEM);
    let holder = leases.get("restarted").await.unwrap().spec.unwrap().holder_identity;
    assert_eq!(holder.as_deref().unwrap_or_default(), "");
    let rolegate = launch.start().await;
    has_planned(&rolegate).await;
    goes_on(&stage, &group, &statuses).await;
    invariants::released_counts_never_fell(&statuses, &group);
}

#[tokio::test]
async fn a_deleted_pod_of_a_released_segment_comes_back_and_runs_at_once() {
    let (stage, _rolegate) = Stage::new("deleted-pod").await.with_room(60).await.serve().await;
    let group = group();
    let _statuses = wait_for_the_second_segment(&stage, &group).await;
    for name in ["llm-prefill-3", "llm-decode-9"] {
        let uid = stage.pods.now(|now| now.named(name).unwrap().uid.clone());
        stage.replace_pod(name, Pod::is_scheduled).await;
        let events = stage.pods.events();
        let at = |step| events.iter().position(|e| e.step == step && e.pod.name == name && e.pod.uid != uid).unwrap();
        assert!(events[at(Step::Born)].pod.is_held(), "it came back through the gate");
        // Nothing else happened meanwhile that it could have waited for.
        let meanwhile: Vec<_> = events[at(Step::Born)..at(Step::Released)].iter().map(|e| &e.pod.name).collect();
        assert!(meanwhile.iter().all(|other| *other == name), "{meanwhile:?}");
    }
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 30, "{now}"));
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_wiped_status_is_rebuilt_from_the_pods() {
        let (stage, rolegate) = Stage::new("wiped").await.with_room(60).await.serve().await;
        let group = group();
        let statuses = wait_for_the_second_segment(&stage, &group).await;
        let before = statuses.now();
        let wipe = Patch::Merge(json!({ "status": { "coordinationState": null, "conditions": null } }));
        stage.groups().patch_status("llm", &PatchParams::default(), &wipe).await.unwrap();
        statuses.until("wiped", |status| status.0["coordinationState"].is_null() || *status != before).await;
        let rebuilt = statuses.until("rebuilt", |status| status.released("prefill") == 20).await;
        assert_eq!((rebuilt.released("prefill"), rebuilt.released("decode")), (20, 10));
        assert_eq!(rebuilt.minimum(), "True MinimumSegmentReady: 1/4 segments ready (15/60 pods)");
        has_planned(&rolegate).await;
        goes_on(&stage, &group, &statuses).await;
    }

    #[tokio::test]
    async fn a_whole_released_group_comes_back_at_once_not_by_segments() {
        let (stage, _rolegate) = Stage::new("delete-collection").await.with_room(60).await.serve().await;
        let group = group();
        let statuses = wait_for_the_second_segment(&stage, &group).await;
        let old: HashSet<_> = stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
        stage.api::<ApiPod>().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        // None of them is ready: by its progression even the second segment would wait.
        let all_new = |now: &View| now.count_all(|pod| !old.contains(&pod.uid)) == 60;
        stage.pods.until("60 new pods", |now| all_new(now) && now.count_all(Pod::is_released) == 30).await;
        stage.pods.now(|now| assert_eq!(now.count_all(|pod| in_segments(2)(pod) && pod.is_released()), 30, "{now}"));
        let status = statuses.until("none ready", |status| status.ready().ends_with(" 0/60 pods ready")).await;
        assert_eq!(status.ready(), "False DeploymentInProgress: 0/60 pods ready");
        assert_eq!(status.minimum(), "False NoSegmentsReady: 0/4 segments ready (0/60 pods)");
        assert!(invariants::all_born_held(&stage.pods) >= 120);
        invariants::released_counts_never_fell(&statuses, &group);
    }
}
