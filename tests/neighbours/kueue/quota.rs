//! A quota that is too small for all: who holds it, and who waits for whom.

use super::{KUEUE, QUEUE, TEAM, create_queued_sets, explain, is_in_queue, set_quota, stage, until_admitted};
use crate::common::prelude::*;

const GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";

/// Pods without a workload behind them, as an operator makes them, each with its queue.
async fn create_queued_pods(stage: &Stage, group: &Group) {
    for role in &group.roles {
        for number in 0..role.replicas {
            let mut pod = group.pod(&role.name, &format!("{}-{number}", role.name), &stage.namespace);
            let more = json!({ "metadata": {
                "labels": { QUEUE: TEAM }, "annotations": { "kwok.rolegate.dev/not-ready": "" },
            } });
            json_patch::merge(&mut pod, &more);
            stage.create(pod).await;
        }
    }
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn pods_that_are_queued_one_by_one_take_a_quota_for_one_segment_after_the_other() {
    // What one segment asks for.
    let (stage, _rolegate) = stage("kueue-pods", 6).await.with_room(40).await.serve().await;
    let group = Group::three_segments();
    stage.create_group(&group).await;
    create_queued_pods(&stage, &group).await;
    // Kueue takes those that were made first, and these are prefills only; decodes of the first segment come later.
    stage.pods.until("the first segment has nodes", |now| now.count_all(Pod::is_scheduled) == 6).await;
    stage.pods.now(|now| {
        let running = |role| now.count(role, Pod::is_scheduled);
        assert_eq!((running("prefill"), running("decode")), (4, 2), "{now}");
        let waits_for_us = |pod: &Pod| pod.annotations.get(GATED_BY).is_some_and(|by| by == "rolegate.dev/hold");
        assert_eq!(now.count_all(|pod| pod.is_held() && waits_for_us(pod)), 12, "{now}");
        assert_eq!(now.count_all(|pod| !pod.is_held() && pod.annotations.contains_key(GATED_BY)), 0, "{now}");
    });
    stage.let_ready(Pod::is_scheduled).await;
    let is_theirs = |pod: &Pod| is_in_queue(pod) && !pod.is_held();
    stage.pods.until("the second segment is Kueue's", |now| now.count_all(is_theirs) == 6).await;
    let explained = stage.said(&["explain", "group", "llm"]).await;
    let why =
        "segment 3 is held: segment 2 has 0/4 prefill and 0/2 decode ready; 2 decode and 4 prefill wait for Kueue (6";
    assert!(explained.contains(why) && explained.contains("waits for Kueue"), "{explained}");
    until_admitted(&stage, 6).await;
    let listed = stage.kubectl(&["get", "workloads.kueue.x-k8s.io", "-o", "json"]);
    assert!(listed.contains("Admission is gated by: rolegate.dev/hold"), "{listed}");

    set_quota(&stage, 12);
    stage.pods.until("it has nodes", |now| now.count_all(Pod::is_scheduled) == 12).await;
    until_admitted(&stage, 12).await;
    stage.let_ready(Pod::is_scheduled).await;
    set_quota(&stage, 18);
    stage.pods.until("the third has nodes", |now| now.count_all(Pod::is_scheduled) == 18).await;
    stage.let_ready(Pod::is_scheduled).await;
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 18).await;
    let result = "a quota for one segment after the other";
    KUEUE.record("bare pods that are queued each by itself, quota of one segment", result);
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn a_gate_that_is_lifted_by_hand_is_lifted_for_kueue_as_well() {
    let (stage, _rolegate) = stage("kueue-hand", 18).await.with_room(40).await.serve().await;
    let group = Group::three_segments();
    stage.create_group(&group).await;
    create_queued_pods(&stage, &group).await;
    stage.pods.until("the first segment has nodes", |now| now.count_all(Pod::is_scheduled) == 6).await;
    let held = stage.pods.now(|now| now.all().find(|pod| pod.is_held()).map(|pod| pod.name.clone())).unwrap();
    stage.said(&["release", "pod", &held, "--yes"]).await;
    stage.pods.until("it runs", |now| now.named(&held).is_some_and(Pod::is_scheduled)).await;
    stage.pods.now(|now| assert!(!now.named(&held).unwrap().annotations.contains_key(GATED_BY), "{now}"));
}

/// The group with this role alone.
fn only(group: &Group, role: &str) -> Group {
    let mut group = group.clone();
    group.roles.retain(|known| known.name == role);
    group
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn a_quota_that_held_pods_of_a_set_use_up_is_told_of_and_goes_on_with_more() {
    let (stage, _rolegate) = stage("kueue-sets", 12).await.with_room(40).await.serve().await;
    let group = Group::three_segments();
    let statuses = stage.create_watched(&group).await;
    // One role after the other: this one gets the quota.
    create_queued_sets(&stage, &only(&group, "prefill")).await;
    until_admitted(&stage, 1).await;
    create_queued_sets(&stage, &only(&group, "decode")).await;
    let why = "2 decode wait for Kueue, where 8 held pods count in a quota already";
    statuses.until("it is told", |status| status.reason() == "QuotaDeadlock").await;
    let explained = explain(&stage, "llm-decode-3").await;
    assert!(explained.contains("QuotaDeadlock: segment 2 is held") && explained.contains(why), "{explained}");
    until_says(why, async || stage.kubectl(&["get", "events", "-o", "json"])).await;
    set_quota(&stage, 18);
    for segment in 1..=3 {
        stage.pods.until("the next segment has nodes", |now| now.count_all(Pod::is_scheduled) == segment * 6).await;
        stage.let_ready(Pod::is_scheduled).await;
    }
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 18).await;
    KUEUE.record(
        "queued StatefulSets, quota for one of two roles",
        "does not run: Kueue takes the quota of all pods of a StatefulSet at once, held ones included (`QuotaDeadlock`)",
    );
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn a_scale_of_a_queued_set_takes_it_down_and_rolegate_makes_none() {
    let (stage, _rolegate) = stage("kueue-scale", 40).await.with_room(40).await.serve_with("allow", "scale").await;
    let group = Group::new("llm").role("main", 4, 4).bare_names();
    let mut set = group.set(group.find("main"), &stage.namespace);
    set["metadata"]["labels"] = json!({ QUEUE: TEAM, "rolegate.dev/group": "llm", "rolegate.dev/role": "main" });
    stage.create(group.coordination()).await;
    stage.create(set).await;
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 4).await;

    let path = format!("/apis/rolegate.dev/v1alpha1/namespaces/{}/rolecoordinations/llm", stage.namespace);
    let refused = stage.send("PATCH", &path, &json!({ "spec": { "segments": 2 } })).await;
    let why = r#"StatefulSet "main" must not be queued by Kueue"#;
    assert!(refused.code == 422 && refused.body["message"].as_str().unwrap().contains(why), "{refused:?}");

    // Kueue refuses it where it sees it, and does not see the subresource.
    let sets = stage.api::<StatefulSet>();
    let more = Patch::Merge(json!({ "spec": { "replicas": 8 } }));
    let error = sets.patch("main", &PatchParams::default(), &more).await.unwrap_err().to_string();
    assert!(error.contains("field is immutable"), "{error}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 4, "{now}"));
    sets.patch_scale("main", &PatchParams::default(), &more).await.unwrap();
    // Most often all that ran: who is quicker, Kueue or the StatefulSet's controller, is not always the same.
    let is_down = |pod: &Pod| is_in_queue(pod) && !pod.is_ready();
    let some_run = |now: &View| now.count_all(Pod::is_ready) < 4;
    let taken = |now: &View| now.count_all(is_down) >= 4 && some_run(now);
    stage.pods.until("Kueue has taken down what ran", taken).await;
    stage.pods.always(Duration::from_secs(3), "and does not let all run again", some_run).await;
    let result = "does not work: Kueue deletes running pods; rolegate refuses `segments` over such a set";
    KUEUE.record("`kubectl scale` of a queued StatefulSet", result);
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn groups_of_a_leader_worker_set_are_queued_each_by_itself() {
    let (stage, _rolegate) = stage("kueue-lws", 6).await.with_room(40).await.serve().await;
    let group = Group::new("llm").role("main", 3, 1).held_back();
    stage.create(group.coordination_of("LeaderWorkerSet", &json!({}))).await;
    let queue = json!({ "metadata": { "labels": { QUEUE: TEAM } } });
    stage.create(group.leader_worker_set("main", 3, &stage.namespace, &queue)).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 9).await;
    // A quota for two of three, which Kueue gives to any two of them.
    until_admitted(&stage, 2).await;
    let first_runs = |pod: &Pod| pod.index == 0 && pod.is_scheduled();
    let summary = async || stage.coordinations().get("llm").await.unwrap().data["status"]["summary"].clone();
    until_found("the first group runs, or it is told that later ones have its quota", summary, |found| {
        found["reason"] == "QuotaDeadlock" || stage.pods.now(|now| now.count_all(first_runs)) == 3
    })
    .await;
    set_quota(&stage, 9);
    for group in 1..=3 {
        stage.pods.until("the next group has nodes", |now| now.count_all(Pod::is_scheduled) == group * 3).await;
        stage.let_ready(Pod::is_scheduled).await;
    }
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 9).await;
    set_quota(&stage, 12);
    let more = Patch::Merge(json!({ "spec": { "replicas": 4 } }));
    let sets = stage.objects("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
    sets.patch("llm-main", &PatchParams::default(), &more).await.unwrap();
    stage.pods.until("a fourth group has nodes", |now| now.count_all(Pod::is_scheduled) == 12).await;
    KUEUE.record(
        "a queued LeaderWorkerSet",
        "works, also scaling. With too small a quota Kueue may give it to later groups first (`QuotaDeadlock`)",
    );
}
