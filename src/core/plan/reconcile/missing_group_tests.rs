use std::time::Duration;

use crate::model::{GroupKey, Out, Stance};
use crate::plan::Reconciler;
use crate::plan::reconcile::action::{Action, Answer, Ended, Question};
use crate::plan::reconcile::options::LoopOptions;
use crate::plan::test_support::mk_pod;
use crate::plan::view::Snapshot;

/// Returns the kinds of the actions of a pass over a missing group.
fn pass(reconciler: &mut Reconciler, snapshot: &Snapshot, second: u64) -> Vec<&'static str> {
    let (key, now) = (GroupKey::new("ns", "pd"), Duration::from_secs(second));
    reconciler.changed([key.clone()], now);
    let actions = reconciler.pass(&key, snapshot, None, now, "2026-01-01T00:00:00Z");
    let kind = |action: &Action| match action {
        Action::Release { .. } => Some("release"),
        Action::Read(Question::Gone { .. }) => Some("verify"),
        _ => None,
    };
    actions.iter().filter_map(kind).collect()
}

/// For example, its namespace opts out during the verification, and comes back with other pods.
#[test]
fn that_a_group_is_gone_is_verified_again_after_a_pass_over_something_else() {
    let mut missing = Snapshot::default();
    missing.pods.add(&mk_pod("a", "prefill", 0).into());
    let out = Stance { out: Some(Out::OptedOut), ..Stance::default() };
    for between in [Snapshot { stance: out, ..Snapshot::default() }, Snapshot { rests: true, ..Snapshot::default() }] {
        let (key, mut reconciler) = (GroupKey::new("ns", "pd"), Reconciler::new(LoopOptions::default()));
        reconciler.lead(true, [], Duration::ZERO);
        reconciler.sync([key.clone()], Duration::ZERO);
        assert_eq!(pass(&mut reconciler, &missing, 1), [""; 0]);
        assert_eq!(pass(&mut reconciler, &missing, 100), ["verify"]);
        // Without an open workload the empty group would be forgotten.
        let mut between = between;
        between.workloads.push(crate::plan::test_support::mk_workload("prefill", "p1"));
        reconciler.ended(key, Ended::Read(Answer::Gone(true)), Duration::from_secs(100));
        assert_eq!(pass(&mut reconciler, &between, 100), [""; 0]);
        assert_eq!(pass(&mut reconciler, &missing, 200), ["verify"], "nobody has looked since its pods came");
        reconciler.ended(GroupKey::new("ns", "pd"), Ended::Read(Answer::Gone(true)), Duration::from_secs(200));
        assert_eq!(pass(&mut reconciler, &missing, 200), ["release"]);
    }
}
