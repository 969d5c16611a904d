//! Pods with gates and labels that their operator keeps as it wants them.

use super::habits::{GATE_OF_GROVE, GATES_CLEARED, GATES_LISTED, Habit, POD_LABELS_RESET, PODS_MADE, SETS_MADE};
use super::operator::{Operator, ROLE, Wanted};
use super::{make_probe, stage, until_at_rest, until_refused, writes};
use crate::common::prelude::*;
use crate::policies::cluster::grant;

/// Two segments of one prefill and one decode, of pods that do not get ready by themselves.
fn group() -> Group {
    Group::new("llm").role("prefill", 2, 1).role("decode", 2, 1).held_back()
}

/// All pods of the group as an operator makes them by itself.
fn own_pods(stage: &Stage, group: &Group, change: impl Fn(&mut Value, &str, u32)) -> Wanted {
    let pods = group.roles.iter().flat_map(|role| (0..role.replicas).map(move |index| (&role.name, index)));
    let pod = |(role, index): (&String, u32)| {
        let mut pod = group.pod(role, &format!("llm-{role}-{index}"), &stage.namespace);
        pod["metadata"]["annotations"] = json!({ "kwok.rolegate.dev/not-ready": "" });
        change(&mut pod, role, index);
        pod
    };
    Wanted { pods: pods.map(pod).collect(), ..Wanted::default() }
}

/// Pods as Grove makes them: each with its gate.
async fn as_grove(stage: &Stage, group: &Group, lifts: &'static Habit) -> Operator {
    let gated = |pod: &mut Value, _: &str, _| pod["spec"]["schedulingGates"] = json!([{ "name": GATE_OF_GROVE }]);
    Operator::start(stage, "llm", own_pods(stage, group, gated), &[&PODS_MADE, lifts]).await
}

/// Segment by segment, all of them held when they were made, and then nobody writes any more. `rolegate` lifts each gate once.
async fn comes_up_in_segments(stage: &Stage, operator: &Operator) {
    comes_up_with_writes(stage, operator, 4).await;
}

/// The same with so many writes of `rolegate` on the four pods.
async fn comes_up_with_writes(stage: &Stage, operator: &Operator, patches: u32) {
    for ready in [2, 4] {
        stage.pods.until("a segment has nodes", |now| now.count_all(Pod::is_scheduled) == ready).await;
        let each = |now: &View| ["prefill", "decode"].map(|role| now.count(role, Pod::is_scheduled) * 2);
        stage.pods.now(|now| assert_eq!(each(now), [ready; 2], "{now}"));
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.until("it is ready", |now| now.count_all(Pod::is_ready) == ready).await;
    }
    assert!(invariants::all_born_held(&stage.pods) >= 4);
    until_at_rest(stage, operator).await;
    assert_eq!(writes(stage)["patch pods"], patches);
}

#[tokio::test]
async fn an_operator_that_lists_the_gates_that_stay_lifts_its_own_alone() {
    let (stage, _rolegate) = stage("gates-listed").await.with_room(12).await.serve().await;
    let group = group();
    stage.create_group(&group).await;
    let operator = as_grove(&stage, &group, &GATES_LISTED).await;
    comes_up_in_segments(&stage, &operator).await;
}

/// Grove up to v0.1.0-alpha.11. Nothing of rolegate's can keep it from that: what runs is taken as it is, and said.
#[tokio::test]
async fn an_operator_that_clears_all_gates_opens_holds_and_that_is_said() {
    let (stage, _rolegate) = stage("gates-cleared").await.with_room(12).await.serve().await;
    let group = group();
    stage.create_group(&group).await;
    let operator = as_grove(&stage, &group, &GATES_CLEARED).await;
    stage.pods.until("all have nodes", |now| now.count_all(Pod::is_scheduled) == 4).await;
    stage.until_event("StatusBehindPods", &["what runs stays, and counts as released"]).await;
    until_at_rest(&stage, &operator).await;
    invariants::nobody_was_held_again(&stage.pods);
}

/// The policy that is shipped does.
#[tokio::test]
async fn the_guard_keeps_an_operator_that_clears_all_gates_from_opening_holds() {
    let stage = stage("gates-guarded").await.with_room(12).await;
    guard(&stage).await;
    let _rolegate = stage.launch().start().await;
    let group = group();
    stage.create_group(&group).await;
    let operator = as_grove(&stage, &group, &GATES_CLEARED).await;
    let refused = async || format!("{:?}", operator.done().refused.get(GATES_CLEARED.name));
    until_says("only by rolegate", refused).await;
    comes_up_in_segments(&stage, &operator).await;
    assert_eq!(operator.done().of(&GATES_CLEARED), 4);
}

/// Has the shipped guard in force, in this namespace alone: other tests want to see what happens without it.
async fn guard(stage: &Stage) {
    let (plane, namespace) = (&stage.plane, &stage.namespace);
    let shipped = std::fs::read_to_string("policies/hold-guard.yaml").unwrap();
    let here =
        format!("matchResources: {{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}}}");
    let shipped = format!("{}\n  {here}\n", shipped.trim_end());
    assert!(shipped.contains(&format!("validationActions: [Deny]\n  {here}")), "the binding is not the last any more");
    plane.must(&["apply", "-f", "-"], &shipped);
    grant(plane, namespace, "rolegate-release-holds", &format!("system:serviceaccount:rolegate-system:{namespace}"));
    grant(plane, namespace, ROLE, "somebody");
    make_probe(stage, &json!({}), &["rolegate.dev/hold"]).await;
    let clear = json!({ "spec": { "schedulingGates": null } });
    until_refused(stage, "somebody", &clear, Some("only by rolegate")).await;
    stage.kubectl(&["delete", "pod", "probe", "--grace-period=0", "--force"]);
    stage.pods.until("the probe is gone", |now| now.named("probe").is_none()).await;
}

#[tokio::test]
async fn an_operator_that_resets_labels_of_pods_is_not_fought() {
    let (stage, _rolegate) = stage("labels-reset").await.with_room(12).await.serve().await;
    let group = group();
    stage.create_group(&group).await;
    let statuses = stage.statuses(&group);
    let sets: Vec<Value> = group.roles.iter().map(|role| group.set(role, &stage.namespace)).collect();
    let wanted = Wanted { sets, ..Wanted::default() };
    let operator = Operator::start(&stage, "llm", wanted, &[&SETS_MADE, &POD_LABELS_RESET]).await;
    // Each gate is lifted, and each pod says its segment once more.
    comes_up_with_writes(&stage, &operator, 8).await;
    invariants::released_in_order(&stage.pods, &group);
    assert!(operator.done().of(&POD_LABELS_RESET) >= 4, "{:?}", operator.done());
    statuses.until("all segments", |status| status.minimum().starts_with("True AllSegmentsReady")).await;
}

/// RBG v0.8.0-alpha.5: pods that are made in one go all carry the index of the last. What counts is the instance that owns them.
/// Somebody opens the hold of the last one: those before it wait for their turn all the same.
#[tokio::test]
async fn instances_with_a_wrong_index_go_by_their_owner_and_one_that_runs_ahead_is_said() {
    let (stage, _rolegate) = stage("misnumbered").await.with_room(12).await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 1).held_back();
    stage.create_group(&group).await;
    let statuses = stage.statuses(&group);
    let misnumbered = |pod: &mut Value, role: &str, index| {
        let instance = format!("llm-{role}-{index}");
        pod["metadata"]["labels"] = json!({
            "rbg.workloads.x-k8s.io/group-name": "llm",
            "rbg.workloads.x-k8s.io/role-name": role,
            "rbg.workloads.x-k8s.io/role-instance-name": instance,
            "rbg.workloads.x-k8s.io/role-instance-index": "3",
            "rbg.workloads.x-k8s.io/component-size": "1",
            "statefulset.kubernetes.io/pod-name": format!("llm-{role}-3"),
        });
        let uid = format!("00000000-0000-0000-0000-00000000000{index}");
        pod["metadata"]["ownerReferences"] =
            json!([owner("workloads.x-k8s.io/v1alpha2", "RoleInstance", &instance, &uid)]);
    };
    let operator = Operator::start(&stage, "llm", own_pods(&stage, &group, misnumbered), &[&PODS_MADE]).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_scheduled) == 1).await;
    stage.pods.until("all are there", |now| now.count_all(|_| true) == 4).await;

    stage.patch::<ApiPod>("llm-prefill-3", &json!({ "spec": { "schedulingGates": null } })).await;
    stage.until_event("RunsAhead", &["1 replica runs ahead of the batch: prefill 3"]).await;
    for (ready, next) in [(0, 1), (1, 2)] {
        let is_next = |pod: &Pod| pod.name == format!("llm-prefill-{ready}");
        stage.pods.now(|now| assert!(now.named(&format!("llm-prefill-{next}")).is_some_and(Pod::is_held), "{now}"));
        stage.let_ready(is_next).await;
        let goes = |now: &View| now.named(&format!("llm-prefill-{next}")).is_some_and(Pod::is_scheduled);
        stage.pods.until("the next", goes).await;
    }
    stage.let_ready(|_| true).await;
    statuses.until("all ready", |status| status.progressing() == "True Complete").await;
    assert_eq!(invariants::all_born_held(&stage.pods), 4);
    until_at_rest(&stage, &operator).await;
}

mod tier2 {
    use super::*;

    /// Grove's scaled gangs keep Grove's gate until the base gang has nodes, so that not all pods of the segment can go at once.
    #[tokio::test]
    async fn pods_that_keep_a_gate_of_their_operator_until_others_have_nodes() {
        let (stage, _rolegate) = stage("scaled-gang").await.with_room(12).await.serve().await;
        let group = Group::new("llm").role("base", 2, 2).role("scaled", 2, 2);
        stage.create_group(&group).await;
        let in_gangs = |pod: &mut Value, role: &str, _| {
            pod["metadata"]["annotations"] = Value::Null;
            pod["metadata"]["labels"]["grove.io/podgang"] = json!(role);
            if role == "scaled" {
                pod["metadata"]["labels"]["grove.io/base-podgang"] = json!("base");
            }
            pod["spec"]["schedulingGates"] = json!([{ "name": GATE_OF_GROVE }]);
        };
        let wanted = own_pods(&stage, &group, in_gangs);
        let operator = Operator::start(&stage, "llm", wanted, &[&PODS_MADE, &GATES_LISTED]).await;
        stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == 4).await;
        assert_eq!(invariants::all_born_held(&stage.pods), 4);
        until_at_rest(&stage, &operator).await;
        assert_eq!(writes(&stage)["patch pods"], 4);
    }
}
