//! Pods that were created before their group, and lack what it would have given them.

use serde_json::json;

use crate::api::rbg::ROLE_BASED_GROUP;
use crate::model::engine::read_annotation;
use crate::model::{Group, HoldReason};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Decision;
use crate::plan::test_support::{mk_evaluation, mk_group, mk_pod, mk_segments, shared};
use crate::plan::view::{GroupView, PodFacts};

fn group() -> Group {
    mk_group(&[("decode", 2), ("prefill", 2)], &json!([mk_segments("s", "Parallel", &[("decode", 1), ("prefill", 1)])]))
}

fn decide(group: &Group, pods: &[PodFacts], context: DecisionContext<'_>) -> Decision {
    mk_evaluation(group, &GroupView::build(group, &shared(pods)), context).decision
}

/// Two held pods of each role that are older than the group; those of decode ask for an engine.
fn pods(asked: Option<&str>) -> Vec<PodFacts> {
    let pod = |role: &str, ordinal: u32| {
        let mut pod = mk_pod(&format!("{role}-{ordinal}"), role, ordinal);
        pod.stamp.engine = asked.filter(|_| role == "decode").map(Into::into);
        pod.labelled = None;
        pod
    };
    ["decode", "prefill"].iter().flat_map(|role| (0..2).map(move |ordinal| pod(role, ordinal))).collect()
}

fn stay(decision: &Decision) -> Vec<&str> {
    decision.mis_stamped.iter().map(|(pod, is_early)| if *is_early { &*pod.name } else { "" }).collect()
}

#[test]
fn what_its_group_would_have_given_a_pod_decides_whether_it_goes() {
    // The workloads of this group are StatefulSets with Services.
    let with_hosts = group();
    let mut plain = group();
    plain.roles.iter_mut().for_each(|role| role.workload.hosts = None);
    // What the pod alone tells, it has.
    let told = ["torch", "sglang; procsPerPod=2", "vllm", "no engine", "llm-d"].map(Some);
    for asked in told.into_iter().chain([None]) {
        let decision = decide(&plain, &pods(asked), DecisionContext::default());
        assert_eq!((stay(&decision), decision.release.len()), (vec![], 4), "{asked:?}");
    }
    let mut of_role = group();
    of_role.roles[0].engine = Some(Ok(read_annotation("dynamo").unwrap()));
    for (group, asked) in [
        (&plain, Some("torch; scope=role")),
        (&plain, Some("sglang; scope=segment")),
        (&with_hosts, Some("vllm")),
        (&of_role, None),
    ] {
        let decision = decide(group, &pods(asked), DecisionContext::default());
        assert_eq!((stay(&decision), decision.release.len()), (vec!["decode-0", "decode-1"], 2), "{asked:?}");
    }
    let mut discovers = group();
    discovers.discovery = true;
    assert_eq!(stay(&decide(&discovers, &pods(None), DecisionContext::default())).len(), 4);
    let off = DecisionContext { discovery_is_off: true, ..DecisionContext::default() };
    assert_eq!(decide(&discovers, &pods(None), off).release.len(), 4);
}

#[test]
fn a_pod_without_the_variables_of_its_group_is_told_with_the_command_that_has_it_made_anew() {
    let (group, mut pods) = (group(), pods(Some("torch; scope=role")));
    let decision = decide(&group, &pods, DecisionContext::default());
    let held = decision.held.iter().find(|held| held.reason == HoldReason::StampMismatch).unwrap();
    let message = r#"pod "decode-0" is held: it was made before its group, and lacks the variables that the group gives: with `--allow recovery` or `--recreate-mis-stamped` rolegate recreates it; by hand `kubectl delete pod -n ns -l 'rolegate.dev/group=pd,rolegate.dev/role in (decode),!rolegate.dev/segment' --field-selector spec.nodeName=` does"#;
    assert_eq!((held.message.as_str(), held.count()), (message, 2));
    // Pods of the RoleBasedGroup have other labels.
    pods.iter_mut().for_each(|pod| pod.identity.named_by_us = false);
    let decision = decide(&group, &pods, DecisionContext::default());
    let by_hand = "by hand `kubectl delete pod -n ns decode-0 decode-1` does";
    assert!(decision.held.iter().any(|held| held.message.ends_with(by_hand)));
    // One that was released is never held again, and one that was recreated has what it needs.
    pods[0].held = false;
    pods[1].stamp.carrier = Some(ROLE_BASED_GROUP);
    let decision = decide(&group, &pods, DecisionContext::default());
    assert_eq!((stay(&decision), decision.release.len()), (vec![], 3));
}
