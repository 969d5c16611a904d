//! What people may do with RoleCoordinations, by the roles that every cluster has for them.

use crate::common::account::manifests;
use crate::common::prelude::*;
use crate::install::support::{DRY, apply};

/// A verb and a resource, and whether who may view, edit and administer may do it.
const MAY: &[(&str, &str, [bool; 3])] = &[
    ("list", "rolecoordinations.rolegate.dev", [true, true, true]),
    ("get", "rolecoordinations.rolegate.dev:status", [true, true, true]),
    ("create", "rolecoordinations.rolegate.dev", [false, true, true]),
    ("create", "statefulsets.apps", [false, true, true]),
    ("delete", "rolecoordinations.rolegate.dev", [false, true, true]),
    ("patch", "rolecoordinations.rolegate.dev:scale", [false, true, true]),
    ("update", "rolecoordinations.rolegate.dev:status", [false, false, false]),
    ("patch", "rolecoordinations.rolegate.dev:status", [false, false, false]),
    ("create", "clustertopologies.rolegate.dev", [false, false, false]),
];

#[tokio::test]
async fn who_may_make_stateful_sets_may_make_what_coordinates_them_and_nobody_writes_a_status() {
    DRY.get().must(&["create", "namespace", "team"], "");
    let people = ["view", "edit", "admin"];
    for role in people {
        let (of, to) = (format!("--clusterrole={role}"), format!("--user={role}"));
        DRY.get().must(&["create", "rolebinding", role, "-n", "team", &of, &to], "");
    }
    let may = |who: &str, verb: &str, resource: &str| {
        // For kubectl itself a slash stands before a name.
        let (resource, part) = resource.split_once(':').unwrap_or((resource, ""));
        let part = format!("--subresource={part}");
        let asked = ["auth", "can-i", verb, resource, &part, "-n", "team", &format!("--as={who}")];
        DRY.get().kubectl(&asked, "").status.success()
    };
    assert!(!may("admin", "list", "rolecoordinations.rolegate.dev"), "nobody may before it is installed");
    apply(&DRY.get(), &manifests(&["--part", "rbac"]));
    let of_all = |(verb, resource, _): &(&str, &str, [bool; 3])| people.map(|who| may(who, verb, resource));
    let found = async || MAY.iter().map(of_all).collect::<Vec<_>>();
    let expected: Vec<_> = MAY.iter().map(|(.., expected)| *expected).collect();
    until_is("the roles are added to those of the cluster", found, expected).await;
    let without = manifests(&["--part", "rbac", "--without", "aggregated-roles"]);
    assert!(!without.contains("aggregate-to-"), "{without}");
}
