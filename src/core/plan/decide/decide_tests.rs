use serde_json::json;

use super::*;
use crate::model::{HoldReason, PodIdentity};
use crate::plan::evaluate::Evaluation;
use crate::plan::test_support::{Setup, mk_pod, mk_segments, shared};
use crate::plan::view::{PodFacts, Stamp};
use crate::plan::waits_for;

impl Setup {
    fn of(prefill: u32, decode: u32) -> Self {
        let sizes = [("prefill", 10), ("decode", 5)];
        let coordination = json!([mk_segments("pd", "OrderedReady", &sizes)]);
        Self::new(&[("prefill", prefill), ("decode", decode)], &coordination)
    }

    /// All pods are there, held.
    fn full(prefill: u32, decode: u32) -> Self {
        Self::of(prefill, decode).held("prefill", 0..prefill).held("decode", 0..decode)
    }

    /// Adds held pods of a role.
    fn held(mut self, role: &str, ordinals: std::ops::Range<u32>) -> Self {
        self.pods.extend(ordinals.map(|ordinal| mk_pod(&format!("{role}-{ordinal}"), role, ordinal)));
        self
    }

    /// Makes pods with ordinals below these counts released and ready.
    fn serving(mut self, prefill: u32, decode: u32) -> Self {
        for pod in &mut self.pods {
            let bound = if pod.identity.role.as_deref() == Some("prefill") { prefill } else { decode };
            if pod.identity.ordinal < Some(bound) {
                (pod.held, pod.scheduled, pod.ready) = (false, true, true);
            }
        }
        self
    }
}

fn names(decision: &Decision, at_once: bool) -> Vec<String> {
    decision.release.iter().filter(|r| r.at_once == at_once).map(|r| r.pod.pod.name.to_string()).collect()
}

fn condition(seen: &Evaluation, kind: &str) -> (String, String, String) {
    let found = seen.status.condition(kind).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn expected(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

#[test]
fn the_first_segment_is_committed_before_it_is_released() {
    let setup = Setup::full(100, 50);
    let seen = setup.evaluate(DecisionContext::default());
    assert!(seen.needs_commit(&setup.group));
    let first = seen.decision;
    assert_eq!(first.release.len(), 15);
    assert!(names(&first, true).is_empty(), "nothing goes without a commit");
    let second = setup.store();
    let seen = second.evaluate(DecisionContext::default());
    assert!(!seen.needs_commit(&second.group));
    let again = seen.decision;
    assert_eq!(names(&again, true).len(), 15);
}

/// Growth is: `tests/cases/plan/state.yaml`.
#[test]
fn loss_after_the_first_ready_is_no_scaling() {
    let mut setup = Setup::full(100, 50).serving(100, 50).store();
    setup.pods[3].ready = false;
    assert_eq!(
        condition(&setup.evaluate(DecisionContext::default()), "Ready"),
        expected("False", "ReplicasNotReady", "149/150 pods ready")
    );
}

#[test]
fn a_recreated_pod_of_a_released_segment_goes_at_once() {
    let mut setup = Setup::full(100, 50).serving(20, 10);
    setup.pods[19].ready = false;
    let mut setup = setup.store();
    (setup.pods[3].held, setup.pods[3].ready, setup.pods[3].scheduled) = (true, false, false);
    let decision = setup.decide();
    assert_eq!(names(&decision, true), ["prefill-3"]);
    assert!(decision.held.iter().all(|held| held.reason == HoldReason::PreviousSegmentNotReady));
}

#[test]
fn a_pod_that_somebody_let_go_opens_no_other_gate() {
    let mut setup = Setup::full(100, 50).serving(10, 5);
    setup.pods[9].ready = false;
    let mut setup = setup.store();
    for stray in [57, 58, 59] {
        (setup.pods[stray].held, setup.pods[stray].scheduled) = (false, true);
    }
    let decision = setup.decide();
    assert!(decision.release.is_empty(), "{:?}", decision.release);
    assert_eq!(decision.released["prefill"], 10);
    setup.pods[9].ready = true;
    assert_eq!(setup.decide().released["prefill"], 20, "the next segment goes as ever");
}

#[test]
fn a_held_segment_names_the_one_that_it_waits_for_and_not_its_neighbour() {
    let mut setup = Setup::of(100, 50).held("prefill", 0..100).held("decode", 0..50).serving(80, 40).store();
    setup.pods[23].ready = false;
    let held = setup.decide().held;
    assert_eq!(held[0].message, "segment 10 is held: segment 3 has 9/10 prefill and 5/5 decode ready");
    assert_eq!((held[0].batch, held.len()), (Some(9), 1));
}

#[test]
fn a_lost_status_is_read_from_the_pods() {
    let setup = Setup::full(100, 50).serving(20, 10);
    assert_eq!(setup.decide().released["prefill"], 30, "two segments run, so the third may go");
}

#[test]
fn a_broken_group_releases_no_new_batch_and_still_replaces_what_ran() {
    let mut setup = Setup::full(100, 50).serving(10, 5).store();
    setup.group.status.coordination_state[0].progress.values_mut().for_each(|progress| {
        progress.released = progress.released.map(|released| released / 2);
    });
    (setup.pods[3].held, setup.pods[3].ready) = (true, false);
    let faults = [Violation {
        rule: "broken",
        severity: crate::rules::Severity::Error,
        path: crate::model::FieldPath::new("spec"),
        cause: crate::rules::Cause::Required,
        value: None,
        detail: "must be set".to_owned(),
        subject: String::new(),
    }];
    let decision = setup.evaluate(DecisionContext { faults: &faults, ..DecisionContext::default() });
    assert_eq!(names(&decision.decision, true), ["prefill-3"]);
    assert_eq!(decision.decision.release.len(), 1);
    let told = expected("False", "InvalidCoordination", "broken: spec: Required value: must be set");
    assert_eq!(condition(&decision, "Progressing"), told);
}

/// Returns a group with pods of two steps, each step in one host, created with or without the stamp of the step.
fn mk_steps(stamped: bool) -> Setup {
    let constraint = json!({ "clusterTopologyName": "net", "topologyLayerName": "host" });
    let deploy = json!({ "roleDeployStep": { "prefill": 2 }, "deployTopologyConstraint": constraint });
    let steps = json!([{ "name": "pd", "strategy": { "rollingDeploy": deploy } }]);
    let mut setup = Setup::new(&[("prefill", 4)], &steps).held("prefill", 0..4);
    for pod in &mut setup.pods {
        let batch = stamped.then(|| format!("pd-{}", pod.identity.ordinal.unwrap() / 2).into());
        pod.stamp = Stamp { batch, carrier: Some(crate::api::rbg::ROLE_BASED_GROUP), held: true, ..Stamp::default() };
    }
    setup
}

#[test]
fn what_shares_a_layer_that_is_not_there_is_held_until_it_is() {
    let missing = DecisionContext { missing_layers: &[0], ..DecisionContext::default() };
    let decide = |setup: &Setup, context| setup.evaluate(context).decision;
    let reasons =
        |decision: &Decision| decision.held.iter().map(|held| (held.reason, held.count())).collect::<Vec<_>>();
    // Pods were created while the layer existed, or without it.
    for stamped in [true, false] {
        let decision = decide(&mk_steps(stamped), missing);
        assert!(decision.release.is_empty() && decision.mis_stamped.is_empty(), "{decision:?}");
        assert_eq!(reasons(&decision), [(HoldReason::TopologyMissing, 4)]);
        assert!(decision.held[0].message.contains(r#"layer "host" of ClusterTopology "net" is not there"#));
    }
    let unmade = decide(&Setup { pods: Vec::new(), ..mk_steps(true) }, missing);
    assert_eq!(reasons(&unmade), [(HoldReason::TopologyMissing, 0)]);
    let late = decide(&mk_steps(false), DecisionContext::default());
    assert_eq!((reasons(&late), late.mis_stamped.len()), (vec![(HoldReason::StampMismatch, 4)], 4));
    assert_eq!(names(&decide(&mk_steps(true), DecisionContext::default()), false), ["prefill-0", "prefill-1"]);
    // A recreated replica without its affinity would run anywhere.
    let mut again = mk_steps(false);
    again.pods.iter_mut().skip(1).for_each(|pod| pod.stamp.batch = Some("pd-0".into()));
    let mut again = Setup { pods: again.pods.drain(..2).collect(), ..again }.serving(2, 0).store();
    (again.pods[0].held, again.pods[0].ready) = (true, false);
    let decision = decide(&again, missing);
    assert_eq!((reasons(&decision), names(&decision, true)), (vec![(HoldReason::TopologyMissing, 1)], Vec::new()));
}

#[test]
fn surplus_replicas_of_the_workload_are_held_and_reported() {
    let setup = Setup::of(10, 5).held("prefill", 0..12).held("decode", 0..5).serving(10, 5);
    let decision = setup.decide();
    assert!(decision.release.is_empty());
    assert_eq!(decision.held[0].reason, HoldReason::BeyondDesired);
    assert_eq!(decision.held[0].message, r#"replica 10 of role "prefill" is held: the group declares 10 replicas"#);
}

#[test]
fn a_pod_without_number_keeps_its_place_while_its_release_is_on_its_way() {
    let mut setup = Setup::of(4, 0).held("prefill", 1..4);
    setup.pods.iter_mut().for_each(|pod| pod.identity.ordinal = None);
    let chosen = |setup: &Setup, on_its_way: &str| {
        let view = GroupView::build_while(&setup.group, (&shared(&setup.pods), &[]), |pod| {
            (&*pod.name == on_its_way).then_some(0)
        });
        view.held().first().map(|held| held.pod.name.to_string())
    };
    assert_eq!(chosen(&setup, "prefill-3").as_deref(), Some("prefill-3"));
    // The name of the new pod sorts first, so it would otherwise take the place.
    let newcomer = Setup::of(4, 0).held("prefill", 0..1).pods.pop().unwrap();
    setup.pods.push(PodFacts { identity: PodIdentity { ordinal: None, ..newcomer.identity.clone() }, ..newcomer });
    assert_eq!(chosen(&setup, "prefill-3").as_deref(), Some("prefill-3"));
    assert_eq!(chosen(&setup, "").as_deref(), Some("prefill-0"));
}

#[test]
fn a_role_without_batches_is_not_held() {
    let coordination = json!([mk_segments("pd", "OrderedReady", &[("prefill", 10), ("decode", 5)])]);
    let roles = [("prefill", 10), ("decode", 5), ("router", 2)];
    let setup = Setup::new(&roles, &coordination).held("router", 0..2);
    assert_eq!(names(&setup.decide(), true), ["router-0", "router-1"]);
}

#[test]
fn a_decision_repeated_on_its_own_result_changes_nothing() {
    let setup = Setup::full(100, 50).serving(10, 5).store().serving(20, 5).store();
    let stored = setup.group.status.clone();
    let again = setup.store();
    assert_eq!(again.group.status, stored);
}

#[test]
fn later_segments_wait_for_the_replicas_of_the_one_that_may_go() {
    let setup = Setup::of(20, 10).held("prefill", 0..20).serving(10, 0);
    let seen = setup.evaluate(DecisionContext::default());
    let missing = waits_for(&setup.group, &seen.view, &seen.decision.targets, 0);
    let named: Vec<_> = missing.iter().map(|of| (of.role.as_str(), of.ordinal, of.replica.is_some())).collect();
    assert_eq!(named, (0..5).map(|ordinal| ("decode", ordinal, false)).collect::<Vec<_>>());
}
