use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::RoleBasedGroup;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::model::Group;
use crate::plan::decide::DecisionContext;
use crate::plan::test_support::{mk_evaluation, mk_pod, mk_segments};
use crate::plan::view::{GroupPods, GroupView, PodFacts, RoleView};

const NOW: &str = "2026-01-01T00:00:00Z";
/// The maximum size in bytes, the same for a thousand batches as for one.
const LARGEST: usize = 2048;

/// Returns a group with these batch sizes and status.
fn group(batches: u32, sizes: (u32, u32), status: &Value) -> Group {
    // The maximum length of a name.
    let (prefill, decode) = ("p".repeat(63), "d".repeat(63));
    let roles = [(&prefill, batches * sizes.0), (&decode, batches * sizes.1)];
    let roles: Vec<_> = roles.iter().map(|(name, replicas)| json!({"name": name, "replicas": replicas})).collect();
    let segments = mk_segments(&"c".repeat(63), "OrderedReady", &[(&prefill, sizes.0), (&decode, sizes.1)]);
    let object = json!({
        "metadata": {"name": "pd", "namespace": "ns", "generation": 7},
        "spec": {"roles": roles, "coordination": [segments]},
        "status": status,
    });
    let rbg: RoleBasedGroup = serde_json::from_value(object).unwrap();
    Group::from_rbg(ROLE_BASED_GROUP, &rbg)
}

/// Returns a view with all pods; those of the first batches are released, and all but one of each role ready.
fn view(group: &Group, released: u32, sizes: (u32, u32)) -> GroupView {
    let mut view = GroupView::build(group, &GroupPods::default());
    for (name, role) in &mut view.roles {
        let bound = released * if name.starts_with('p') { sizes.0 } else { sizes.1 };
        for ordinal in 0..role.desired {
            let held = ordinal >= bound;
            let ready = !held && ordinal + 1 != bound;
            let pod = mk_pod(&format!("{name}-{ordinal}"), name, ordinal);
            role.replicas.add(&PodFacts { held, ready, scheduled: true, ..pod }.into(), ordinal);
        }
    }
    view
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_status_stays_small_and_a_restart_from_it_alone_loses_nothing(
        batches in prop_oneof![Just(1000_u32), 1..1000_u32],
        sizes in (1..4_u32, 1..4_u32),
        share in 0..=100_u32,
    ) {
        let before = group(batches, sizes, &Value::Null);
        let first = mk_evaluation(&before, &view(&before, batches * share / 100, sizes), DecisionContext::default());
        let status = set(first.status.clone(), &before.status, NOW);
        let stored = serde_json::to_value(&status).unwrap();
        prop_assert!(stored.to_string().len() < LARGEST, "{} bytes: {stored}", stored.to_string().len());

        // A restart with only the status and without pods keeps the committed counts.
        let restarted = group(batches, sizes, &stored);
        prop_assert_eq!(&restarted.status, &status);
        let empty = GroupView::build(&restarted, &GroupPods::default());
        let again = mk_evaluation(&restarted, &empty, DecisionContext::default());
        prop_assert_eq!(&again.decision.released, &first.decision.released);
        prop_assert!(!again.needs_commit(&restarted));
        prop_assert!(empty.roles.values().all(|role: &RoleView| role.committed.is_some()));
    }
}
