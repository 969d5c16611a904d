//! What rolegate knows of a group is older than the group's pods: nobody runs for that.

use crate::common::prelude::*;
use crate::e2e::arrival::INDEX;

/// A stage whose rolegate knows one group, and hears of everything else half a second late.
async fn late(name: &str, known: &Value) -> (Stage, Vec<Box<dyn Send>>) {
    late_beside(Stage::new(name).await, known).await
}

/// The same on a stage where there is something already, which it knows as well.
async fn late_beside(stage: Stage, known: &Value) -> (Stage, Vec<Box<dyn Send>>) {
    stage.add_node("all", 40).await;
    stage.create(known.clone()).await;
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let rolegate = stage.launch().through(&proxy).flag("lease-duration", "15s").start().await;
    proxy.delay(Duration::from_millis(500));
    (stage, vec![Box::new(rolegate), Box::new(proxy)])
}

/// Makes the pods at once, and sees them come up in three segments.
async fn come_up_in_order(stage: &Stage, group: &Group) {
    stage.create_sets(group).await;
    let (pods, first) = (group.pods() as usize, group.roles.iter().map(|role| role.segment as usize).sum::<usize>());
    stage.pods.until("all are made", |now| now.count_all(|_| true) == pods).await;
    for released in [first, 2 * first, 3 * first] {
        stage.pods.until("the next segment", |now| now.count_all(Pod::is_released) == released.min(pods)).await;
        stage.let_ready(Pod::is_released).await;
    }
    assert_eq!(invariants::all_born_held(&stage.pods), pods);
    invariants::released_in_order(&stage.pods, group);
}

/// Three segments of five.
fn wanted() -> Group {
    Group::new("llm").role("decode", 15, 5).held_back()
}

#[tokio::test]
async fn pods_of_a_coordination_that_was_added_just_now_wait_for_their_turn() {
    let group = wanted();
    let mut without = group.object();
    without["spec"]["coordination"] = json!([]);
    let (stage, _running) = late("late-coordination", &without).await;
    stage.recoordinate(&group, &group.object()["spec"]["coordination"]).await;
    come_up_in_order(&stage, &group).await;
}

#[tokio::test]
async fn pods_of_segments_that_were_parallel_until_just_now_wait_for_their_turn() {
    let group = wanted().role("decode", 30, 5);
    let known = wanted().progression(Progression::Parallel);
    let stage = Stage::new("late-parallel").await;
    // A set that is not known is read live, and takes as long as the news of the group.
    stage.create_sets(&group.clone().role("decode", 0, 5)).await;
    let (stage, _running) = late_beside(stage, &known.object()).await;
    stage.patch_group(&group, json!({ "spec": group.object()["spec"] })).await;
    stage.scale_set(&group, "decode", 30).await;
    stage.pods.until("all are made", |now| now.count_all(|_| true) == 30).await;
    assert_eq!(invariants::all_born_held(&stage.pods), 30);
    // The first three segments were committed while they were parallel.
    for released in [15, 20, 25, 30] {
        stage.pods.until("the next segment", |now| now.count_all(Pod::is_released) >= released).await;
        stage.pods.now(|now| {
            assert_eq!(now.count_all(Pod::is_released), released, "{now}");
            assert!(now.all_in("decode", 0..u32::try_from(released).unwrap(), Pod::is_released), "{now}");
        });
        stage.let_ready(Pod::is_released).await;
    }
}

#[tokio::test]
async fn pods_of_a_set_that_was_made_just_now_are_counted_from_where_it_starts_to_count() {
    let group = Group::new("llm").role("main", 2, 1);
    let (stage, _running) = late("late-start", &group.object()).await;
    let mut set = group.set(group.find("main"), &stage.namespace);
    set["spec"]["ordinals"] = json!({ "start": 5 });
    stage.create(set).await;
    stage.pods.until("all are made", |now| now.count_all(|_| true) == 2).await;
    for pod in stage.pods.births() {
        assert_eq!(pod.labels[INDEX], (pod.index - 5).to_string(), "{pod:?}");
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn pods_of_a_group_that_another_object_carries_since_just_now_wait_for_their_turn() {
        let (stage, _running) = late("late-carrier", &Group::new("llm").role("prefill", 15, 15).object()).await;
        let group = wanted();
        stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
        let coordination = object("rolegate.dev/v1alpha1", "RoleCoordination", "llm").spec(&group.object()["spec"]);
        stage.create(coordination).await;
        come_up_in_order(&stage, &group).await;
    }

    #[tokio::test]
    async fn pods_that_are_made_with_their_group_anew_wait_for_their_turn_again() {
        let group = wanted();
        let (stage, _running) = late("late-again", &group.object()).await;
        come_up_in_order(&stage, &group).await;
        // All of them were committed, and ready: that was another group.
        let sets = stage.api::<k8s_openapi::api::apps::v1::StatefulSet>();
        sets.delete("llm-decode", &DeleteParams::foreground()).await.unwrap();
        stage.pods.until("all are gone", |now| now.count_all(|_| true) == 0).await;
        // It goes after its pods.
        let left = async || sets.get_opt("llm-decode").await.unwrap();
        until_found("the set is gone", left, Option::is_none).await;
        // To rolegate it still looks as if they ran.
        stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
        stage.create_group(&group).await;
        stage.create_sets(&group).await;
        stage.pods.until("the first segment", |now| now.count_all(Pod::is_released) >= 5).await;
        stage.pods.until("all are made", |now| now.count_all(|_| true) == 15).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), 5, "{now}"));
    }
}
