//! Pods with gates and labels that their operator keeps as it wants them.

use kube::api::PostParams;
use serde_json::{Value, json};

use super::habits::{GATE_OF_GROVE, GATES_CLEARED, GATES_LISTED, Habit, POD_LABELS_RESET, PODS_MADE, SETS_MADE};
use super::operator::{Operator, Wanted};
use super::{stage, until_at_rest, writes};
use crate::common::pods::{Pod, View};
use crate::common::{Group, Stage, invariants};

/// Two segments of one prefill and one decode, of pods that do not get ready by themselves.
fn group() -> Group {
    Group::new("llm").role("prefill", 2, 1).role("decode", 2, 1).held_back()
}

/// Pods as Grove makes them: each with its gate.
async fn as_grove(stage: &Stage, group: &Group, lifts: &'static Habit) -> Operator {
    let pod = |(role, index): (&str, u32)| {
        let mut pod = group.pod(role, &format!("llm-{role}-{index}"), &stage.namespace);
        pod["metadata"]["annotations"] = json!({ "kwok.rolegate.dev/not-ready": "" });
        pod["spec"]["schedulingGates"] = json!([{ "name": GATE_OF_GROVE }]);
        pod
    };
    let pods = [("prefill", 0), ("prefill", 1), ("decode", 0), ("decode", 1)].map(pod).to_vec();
    Operator::start(stage, "llm", Wanted { pods, ..Wanted::default() }, &[&PODS_MADE, lifts]).await
}

/// Segment by segment, with what the operator does to their gates.
async fn comes_up_in_segments(stage: &Stage, group: &Group, operator: &Operator) {
    for ready in [2, 4] {
        let scheduled = |now: &View| now.count_all(Pod::is_scheduled) == ready;
        stage.pods.until("a segment has nodes", scheduled).await;
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.until("it is ready", |now| now.count_all(Pod::is_ready) == ready).await;
    }
    assert_eq!(invariants::all_born_held(&stage.pods), 4);
    until_at_rest(stage, operator).await;
    println!("{:?} {:?}", operator.done(), writes(stage));
    assert_eq!(group.pods(), 4);
}

#[tokio::test]
async fn an_operator_that_lists_the_gates_that_stay_lifts_its_own_alone() {
    let stage = stage("gates-listed").await;
    stage.add_node("all", 12).await;
    let _rolegate = stage.launch().start().await;
    let group = group();
    stage.create_group(&group).await;
    let operator = as_grove(&stage, &group, &GATES_LISTED).await;
    comes_up_in_segments(&stage, &group, &operator).await;
}

#[tokio::test]
async fn an_operator_that_clears_all_gates_opens_holds_and_that_is_said() {
    let stage = stage("gates-cleared").await;
    stage.add_node("all", 12).await;
    let _rolegate = stage.launch().start().await;
    let group = group();
    stage.create_group(&group).await;
    let statuses = stage.statuses(&group);
    let operator = as_grove(&stage, &group, &GATES_CLEARED).await;
    stage.pods.until("all have nodes", |now| now.count_all(Pod::is_scheduled) == 4).await;
    until_at_rest(&stage, &operator).await;
    println!("{:?} {:?} {}", operator.done(), writes(&stage), statuses.now());
    let events = stage.plane.must(
        &["-n", &stage.namespace, "get", "events", "-o", "custom-columns=R:.reason,O:.involvedObject.name,M:.message"],
        "",
    );
    println!("{events}");
    println!("{}", stage.plane.must(&["-n", &stage.namespace, "get", "pods", "-o", "yaml"], ""));
}

#[tokio::test]
async fn an_operator_that_resets_labels_of_pods_is_not_fought() {
    let stage = stage("labels-reset").await;
    stage.add_node("all", 12).await;
    let _rolegate = stage.launch().start().await;
    let group = group();
    stage.create_group(&group).await;
    let statuses = stage.statuses(&group);
    let sets: Vec<Value> = group.roles.iter().map(|role| group.set(role, &stage.namespace)).collect();
    let wanted = Wanted { sets, ..Wanted::default() };
    let operator = Operator::start(&stage, "llm", wanted, &[&SETS_MADE, &POD_LABELS_RESET]).await;
    for ready in [2, 4] {
        let scheduled = |now: &View| now.count_all(Pod::is_scheduled) == ready;
        stage.pods.until("a segment has nodes", scheduled).await;
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.until("it is ready", |now| now.count_all(Pod::is_ready) == ready).await;
    }
    invariants::all_born_held(&stage.pods);
    invariants::released_in_order(&stage.pods, &group);
    until_at_rest(&stage, &operator).await;
    println!("{:?} {:?} {}", operator.done(), writes(&stage), statuses.now());
    drop(PostParams::default());
}
