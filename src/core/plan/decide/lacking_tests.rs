use serde_json::{Value, json};

use super::*;
use crate::api::workload::StatefulSet;
use crate::build;
use crate::plan::decide::DecisionContext;
use crate::plan::evaluate::{Evaluation, Observation, evaluate};
use crate::plan::rollout::Edit;
use crate::plan::test_support::{Workloads, mk_set};
use crate::plan::view::Snapshot;

#[derive(Default)]
struct Known(Vec<StatefulSet>);

impl Known {
    fn with(mut self, name: &str, replicas: u32, labels: &Value) -> Self {
        self.0.push(mk_set(name, replicas, labels, &json!({})));
        self.0.iter_mut().for_each(|set| set.metadata.labels.clear());
        self
    }

    fn group(&self) -> Group {
        let sizes = build::segments(&[("prefill", 2), ("decode", 1)], &json!({}));
        Workloads::of(&self.0).group("pd", "", &sizes, &json!({}))
    }

    fn decide(&self, not_yet_told: &[Lacking]) -> Evaluation {
        let group = self.group();
        let observation = Observation::of(&group, &Snapshot::default(), None, |_| None, |_| Edit::long_ago());
        let told = not_yet_told.to_vec();
        let context = DecisionContext { not_yet_told: Some(&told), ..DecisionContext::default() };
        evaluate(&group, observation, context, None)
    }
}

fn labels(role: &str) -> Value {
    build::labels("pd", role)
}

fn told<'a>(seen: &'a Evaluation, kind: &str) -> (&'a str, &'a str) {
    let found = seen.status.condition(kind).unwrap();
    (&found.status, &found.reason)
}

fn reasons(seen: &Evaluation) -> Vec<(HoldReason, &str)> {
    seen.decision.held.iter().map(|held| (held.reason, held.message.as_str())).collect()
}

#[test]
fn a_group_without_its_workloads_has_no_segment_and_says_which_are_missing() {
    let seen = Known::default().with("prefill", 4, &labels("prefill")).decide(&[]);
    assert_eq!(told(&seen, "Ready"), ("False", "WorkloadMissing"));
    assert_eq!(told(&seen, "MinimumSegmentsAvailable"), ("False", "WorkloadMissing"));
    let text = r#"StatefulSet ns/decode of role "decode" is not there"#;
    assert_eq!(reasons(&seen), [(HoldReason::WorkloadMissing, text)]);
    assert!(seen.status.summary.is_some_and(|summary| summary.reason == "WorkloadMissing"));
    let none = Known::default().decide(&[]);
    assert_eq!(told(&none, "MinimumSegmentsAvailable"), ("False", "WorkloadMissing"));
    assert!(reasons(&none)[0].1.contains("ns/prefill") && reasons(&none)[0].1.contains("ns/decode"));
}

/// Files are applied in any order.
#[test]
fn what_is_missing_for_a_moment_is_not_named_and_there_is_no_segment_all_the_same() {
    let known = Known::default();
    let seen = known.decide(&lacking(&known.group()));
    assert_eq!(told(&seen, "Ready"), ("False", "DeploymentInProgress"));
    assert_eq!(told(&seen, "MinimumSegmentsAvailable"), ("False", "NoSegmentsReady"));
    assert_eq!(reasons(&seen), []);
}

#[test]
fn templates_without_the_labels_are_named() {
    let known = Known::default().with("prefill", 4, &labels("prefill"));
    let seen = known.with("decode", 2, &json!({})).decide(&[]);
    assert_eq!(told(&seen, "Ready"), ("False", "WorkloadNotLabelled"));
    assert_eq!(told(&seen, "MinimumSegmentsAvailable"), ("False", "WorkloadNotLabelled"));
    let text = "the pod template of StatefulSet \"decode\" lacks labels rolegate.dev/group: \"pd\" and \
                rolegate.dev/role: \"decode\"; its pods are not held";
    assert_eq!(reasons(&seen), [(HoldReason::WorkloadNotLabelled, text)]);
}

#[test]
fn pods_that_name_another_role_count_for_that_of_their_workload() {
    let known = Known::default().with("prefill", 4, &labels("prefill")).with("decode", 2, &labels("decoder"));
    let text = "the pod template of StatefulSet \"decode\" lacks label rolegate.dev/role: \"decode\"; its pods count for \
                that role, whose workload makes them";
    assert_eq!(reasons(&known.decide(&[])), [(HoldReason::WorkloadNotLabelled, text)]);
}

#[test]
fn workloads_that_want_no_replicas_make_no_segment() {
    let known = Known::default().with("prefill", 0, &labels("prefill")).with("decode", 0, &labels("decode"));
    let seen = known.decide(&[]);
    assert_eq!(told(&seen, "MinimumSegmentsAvailable"), ("False", "NoSegmentsReady"));
    assert_eq!(reasons(&seen), []);
}
