use serde_json::json;

use crate::model::HoldReason;
use crate::plan::decide::DecisionContext;
use crate::plan::decide::all_or_nothing::AllOrNothing;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::missing_pods::WhyMissing;
use crate::plan::test_support::{Setup, mk_diagnosis, mk_pod, mk_segments};
use crate::plan::view::Stamp;

impl Setup {
    /// Two LeaderWorkerSet groups in a segment.
    fn instances(desired: u32) -> Self {
        Self::new(&[("decode", desired)], &json!([mk_segments("d", "OrderedReady", &[("decode", 2)])]))
    }

    /// Adds held pods of one replica.
    fn with(mut self, role: &str, ordinal: u32, size: u32, members: std::ops::Range<u32>) -> Self {
        self.pods.extend(members.map(|member| {
            let mut pod = mk_pod(&format!("{role}-{ordinal}-{member}"), role, ordinal);
            pod.pod.uid = format!("{role}-{ordinal}-{member}-of-{size}").into();
            pod.identity.member = Some(member);
            (pod.identity.replica_size, pod.identity.made_at_once) = (size, size > 1);
            pod
        }));
        self
    }

    /// Releases pods and lets them run, until a decision releases nothing.
    fn run(mut self) -> Self {
        loop {
            let (decision, mut moved) = (self.decide(), false);
            self = self.store();
            for release in &decision.release {
                for pod in self.pods.iter_mut().filter(|pod| pod.pod == release.pod.pod) {
                    (pod.held, pod.scheduled, pod.ready, moved) = (false, true, true, true);
                }
            }
            if !moved {
                return self;
            }
        }
    }

    fn released(&self) -> usize {
        self.pods.iter().filter(|pod| !pod.held).count()
    }

    /// Recreates pods of a replica, as a controller does.
    fn recreate(mut self, role: &str, ordinal: u32, size: u32, members: std::ops::Range<u32>) -> Self {
        self.pods.retain(|pod| {
            pod.identity.role.as_deref() != Some(role)
                || pod.identity.ordinal != Some(ordinal)
                || !members.contains(&pod.identity.member.unwrap_or_default())
        });
        self.with(role, ordinal, size, members)
    }

    fn without_workers_at_once(mut self) -> Self {
        self.pods.iter_mut().for_each(|pod| pod.identity.made_at_once = false);
        self
    }
}

fn holds(decision: &Decision) -> Vec<(HoldReason, Option<u32>, &str, u32)> {
    decision.held.iter().map(|held| (held.reason, held.batch, held.message.as_str(), held.count())).collect()
}

#[test]
fn a_replica_of_many_pods_goes_when_all_are_there() {
    let setup = Setup::instances(2).with("decode", 0, 12, 0..12).with("decode", 1, 12, 0..7);
    let decision = setup.decide();
    assert_eq!(decision.release.len(), 12);
    let message = r#"replica 1 of role "decode" is held: 7/12 pods exist"#;
    assert_eq!(holds(&decision), [(HoldReason::IncompleteBatch, Some(0), message, 7)]);
    assert_eq!(setup.with("decode", 1, 12, 7..12).run().released(), 24);
}

#[test]
fn a_replica_whose_workers_come_after_their_leader_goes_as_it_appears() {
    let setup = Setup::instances(2).with("decode", 0, 4, 0..1).with("decode", 1, 4, 0..1).without_workers_at_once();
    assert_eq!(setup.run().released(), 2);
}

#[test]
fn a_pod_of_a_replica_that_runs_does_not_wait_for_its_siblings() {
    let setup = Setup::instances(2).with("decode", 0, 4, 0..4).with("decode", 1, 4, 0..4).run();
    // Two pods were evicted, one was recreated.
    let setup = setup.recreate("decode", 0, 4, 2..4);
    let mut setup = setup;
    setup.pods.pop();
    let decision = setup.decide();
    assert!(decision.held.is_empty());
    assert_eq!(decision.release.iter().map(|release| &*release.pod.pod.name).collect::<Vec<_>>(), ["decode-0-2"]);
}

#[test]
fn a_size_that_changes_during_a_rollout_is_read_from_the_pods() {
    // KEP-32, Story 3: 10 → 12 workers, instance by instance, from the top.
    let mut setup = Setup::instances(4);
    for ordinal in 0..4 {
        setup = setup.with("decode", ordinal, 10, 0..10);
    }
    setup = setup.run();
    assert_eq!(setup.released(), 40);
    for ordinal in (0..4).rev() {
        setup = setup.recreate("decode", ordinal, 12, 0..12);
        let others = setup.pods.iter().filter(|pod| !pod.held).count();
        setup = setup.run();
        assert_eq!(setup.released(), others + 12, "replica {ordinal}");
    }
    let status = setup.evaluate(DecisionContext::default()).status;
    let ready = status.condition("Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.message.as_str()), ("True", "48/48 pods ready"));
}

#[test]
fn counts_in_the_middle_of_a_size_change_are_those_of_the_pods() {
    let setup = Setup::instances(2).with("decode", 0, 10, 0..10).with("decode", 1, 10, 0..10).run();
    let setup = setup.recreate("decode", 1, 12, 0..12);
    assert_eq!(setup.evaluate(DecisionContext::default()).status.summary.unwrap().ready, "10/22");
}

/// Returns a group with two roles in one hard domain.
fn in_racks() -> Setup {
    let coordination = json!([{"name": "pd", "strategy": {"segmentPlacement": {
        "segmentSize": {"prefill": 2, "decode": 1},
        "topologyAffinity": {"topologyKey": "rack", "strategy": "RequireSegmentAffinity"},
    }}}]);
    Setup::new(&[("prefill", 4), ("decode", 2)], &coordination)
}

#[test]
fn a_batch_of_a_hard_domain_goes_when_all_its_pods_are_there() {
    let setup = in_racks().with("prefill", 0, 1, 0..1).with("prefill", 1, 1, 0..1);
    let decision = setup.decide();
    assert!(decision.release.is_empty());
    let message = "segment 1 is held: 0/1 decode and 2/2 prefill exist";
    assert_eq!(holds(&decision), [(HoldReason::IncompleteBatch, Some(0), message, 2)]);
    let setup = setup.with("decode", 0, 1, 0..1).run();
    assert_eq!(setup.released(), 3);
    // Once the batch runs, a recreated pod is released at once.
    let setup = setup.recreate("decode", 0, 1, 0..1);
    let mut alone = Setup { pods: Vec::new(), ..setup };
    alone = alone.with("decode", 0, 1, 0..1).with("prefill", 0, 1, 0..1);
    assert!(alone.decide().release.is_empty(), "all were lost: the batch starts as a whole again");
    alone.pods[1].held = false;
    assert_eq!(alone.decide().release.len(), 1);
}

#[test]
fn the_next_segment_waits_beside_an_incomplete_one() {
    let setup = Setup::instances(4).with("decode", 0, 2, 0..2).with("decode", 1, 2, 0..1).with("decode", 2, 2, 0..2);
    let decision = setup.run().decide();
    let reasons: Vec<_> = decision.held.iter().map(|held| (held.reason, held.count())).collect();
    assert_eq!(reasons, [(HoldReason::PreviousSegmentNotReady, 2), (HoldReason::IncompleteBatch, 1)]);
}

#[test]
fn what_has_waited_long_enough_goes_with_the_pods_that_it_has() {
    let setup = Setup::instances(2).with("decode", 0, 4, 0..3);
    let whole = AllOrNothing::Replica { role: "decode".to_owned(), ordinal: 0 };
    let overdue = vec![whole];
    let decision = setup.decide();
    assert_eq!((decision.release.len(), &decision.incomplete), (0, &overdue));
    let decision = setup.evaluate(DecisionContext { overdue: &overdue, ..DecisionContext::default() }).decision;
    assert_eq!((decision.release.len(), decision.held.len()), (3, 0));
    assert_eq!(decision.incomplete, overdue, "until its pods are seen to run it is not forgotten");
}

#[test]
fn pods_that_were_made_for_another_batch_stay_and_the_others_of_their_batch_with_them() {
    let mut setup = in_racks().with("prefill", 0, 1, 0..1).with("prefill", 1, 1, 0..1).with("decode", 0, 1, 0..1);
    for pod in &mut setup.pods {
        pod.stamp.batch = Some("pd-0".into());
    }
    assert_eq!(setup.decide().release.len(), 3);
    setup.pods[1].stamp.batch = Some("old-0".into());
    let decision = setup.decide();
    assert!(decision.release.is_empty());
    assert_eq!(decision.mis_stamped, [(setup.pods[1].pod.clone(), false)]);
    let message = r#"pod "prefill-1-0" is held: it was made for the domain of old-0 and belongs to the domain of pd-0"#;
    assert_eq!(holds(&decision), [(HoldReason::StampMismatch, Some(0), message, 3)]);
    // Once the batch runs, only the pod with the wrong stamp stays.
    setup.pods[0].held = false;
    assert_eq!((setup.decide().release.len(), setup.decide().mis_stamped.len()), (1, 1));
    // A pod older than its group has no batch; a pod whose group existed was created for another batch.
    setup.pods[1].stamp = Stamp::default();
    assert!(setup.decide().mis_stamped.is_empty());
    setup.pods[1].stamp.carrier = Some(crate::api::rbg::ROLE_BASED_GROUP);
    assert_eq!(setup.decide().mis_stamped.len(), 1);
}

#[test]
fn a_unit_whose_pods_a_quota_refuses_is_held_for_that() {
    let setup = Setup::instances(2).with("decode", 0, 3, 0..2).with("decode", 1, 3, 0..1);
    let diagnoses = [mk_diagnosis(WhyMissing::QuotaExceeded)];
    let decision = setup.evaluate(DecisionContext { diagnoses: &diagnoses, ..DecisionContext::default() }).decision;
    let held: Vec<_> = decision.held.iter().map(|held| (held.reason, held.count())).collect();
    assert_eq!(held, [(HoldReason::QuotaDeadlock, 3)]);
}
