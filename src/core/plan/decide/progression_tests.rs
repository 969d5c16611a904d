//! What the golden cases of plans (`tests/cases/plan`) do not show.

use serde_json::json;

use super::*;
use crate::plan::test_support::{mk_group, mk_role, mk_segments};

/// Where prefill and decode of these replicas go in segments of these sizes, with so many of each released and none ready.
fn goes_to(progression: &str, desired: [u32; 2], sizes: [u32; 2], released: [u32; 2]) -> Vec<(String, u32)> {
    let named = |counts: [u32; 2]| [("prefill", counts[0]), ("decode", counts[1])];
    let group = mk_group(&named(desired), &json!([mk_segments("pd", progression, &named(sizes))]));
    let roles = group.roles.iter().zip(released);
    let views = roles.map(|(role, released)| (role.name.clone(), mk_role(role.desired, released, 0))).collect();
    targets(&group, &views, Conditions::default()).roles.into_iter().collect()
}

#[test]
fn where_roles_go_of_which_no_replica_is_ready() {
    for (story, goes, [prefill, decode]) in [
        ("Ordered does not look at readiness", goes_to("Ordered", [100, 50], [10, 5], [10, 5]), [20, 10]),
        ("Parallel looks at nothing", goes_to("Parallel", [100, 50], [10, 5], [10, 5]), [100, 50]),
        ("a role that nobody desires limits nobody", goes_to("Ordered", [20, 0], [10, 5], [10, 0]), [20, 0]),
    ] {
        assert_eq!(goes, [("decode".to_owned(), decode), ("prefill".to_owned(), prefill)], "{story}");
    }
    assert_eq!(
        goes_to("OrderedReady", [4, 4], [2, 0], [0, 0]),
        [("prefill".to_owned(), 2)],
        "a size of zero never divides"
    );
}
