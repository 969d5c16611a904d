//! Objects as large as the API server takes are judged in well under a second: no rule takes time in the square of them.

use std::time::{Duration, Instant};

use rolegate::rules::{Judged, KaiDialect, Operation, Options, World, judge_json};
use serde_json::{Value, json};

/// Far above what it takes, even on a slow machine and without optimisation; far below what a square would take.
const LIMIT: Duration = Duration::from_secs(20);
const ENTRIES: usize = 10_000;

fn judge(kind: (&str, &str), spec: &Value) -> Judged {
    let world = World::of_manifests(Options { kai_dialect: KaiDialect::Proposal, strict_roles: true });
    let object = json!({"metadata": {"name": "large", "namespace": "prod"}, "spec": spec}).to_string();
    let start = Instant::now();
    let judged = judge_json(kind.0, kind.1, Operation::Update, &object, Some(&object), &world).unwrap().unwrap();
    assert!(start.elapsed() < LIMIT, "{kind:?} took {:?}", start.elapsed());
    judged
}

fn pod_group(spec: &Value) -> Judged {
    judge(("scheduling.run.ai/v2alpha2", "PodGroup"), spec)
}

fn clique_set(spec: &Value) -> Judged {
    judge(("grove.io/v1alpha1", "PodCliqueSet"), spec)
}

#[test]
fn a_deep_podgroup_with_a_constraint_at_each_end() {
    let half = ENTRIES / 2;
    let chain = (0..half).map(|i| json!({"name": format!("s{i}"), "parent": format!("s{}", i.saturating_sub(1))}));
    let fan = (0..half).map(|i| json!({"name": format!("t{i}"), "parent": format!("s{}", half - 1), "minMember": 1}));
    let mut sub_groups: Vec<_> = chain.chain(fan).collect();
    sub_groups[0] = json!({"name": "s0"});
    let names: Vec<_> = (0..half).map(|i| format!("t{i}")).collect();
    let by_name: Value = names
        .iter()
        .map(|name| (name.clone(), json!({"requiredTopologyLevel": "rack"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let sets = json!([{"subGroups": names, "constraint": {"requiredTopologyLevel": "block"}}]);
    let judged = pod_group(&json!({
        "subGroups": sub_groups,
        "topologyConstraints": {"subGroups": by_name, "subGroupSets": sets},
    }));
    assert!(judged.is_allowed() && judged.warnings.is_empty());
}

#[test]
fn a_podgroup_in_which_nothing_leads_anywhere() {
    let sub_groups: Vec<_> =
        (0..ENTRIES).map(|i| json!({"name": format!("{i:060}"), "parent": format!("x{i:060}")})).collect();
    let sets: Vec<_> = (0..ENTRIES).map(|i| json!({"subGroups": [format!("y{i:060}")]})).collect();
    let judged = pod_group(&json!({"subGroups": sub_groups, "topologyConstraints": {"subGroupSets": sets}}));
    assert!(judged.warnings.len() >= 2 * ENTRIES);
}

#[test]
fn a_podgroup_that_is_one_ring() {
    let ring: Vec<_> =
        (0..ENTRIES).map(|i| json!({"name": format!("s{i}"), "parent": format!("s{}", (i + 1) % ENTRIES)})).collect();
    assert_eq!(pod_group(&json!({"subGroups": ring})).warnings.len(), 1);
}

#[test]
fn a_set_in_which_everything_has_one_role_and_one_name() {
    let cliques: Vec<_> =
        (0..ENTRIES).map(|i| json!({"name": format!("c{}", i % 2), "spec": {"roleName": "leader"}})).collect();
    let groups: Vec<_> = (0..ENTRIES).map(|i| json!({"name": format!("g{i}"), "cliqueNames": ["c0", "c0"]})).collect();
    let judged = clique_set(&json!({"template": {"cliques": cliques, "podCliqueScalingGroups": groups}}));
    assert!(judged.warnings.len() >= ENTRIES);
}

#[test]
fn a_set_in_which_no_clique_exists() {
    let cliques: Vec<_> =
        (0..ENTRIES).map(|i| json!({"name": format!("{i:060}"), "spec": {"roleName": format!("r{i}")}})).collect();
    let names: Vec<_> = (0..ENTRIES).map(|i| format!("x{i:060}")).collect();
    let groups = json!([{"name": "g", "cliqueNames": names}]);
    let judged = clique_set(&json!({"template": {"cliques": cliques, "podCliqueScalingGroups": groups}}));
    assert!(judged.warnings.len() >= ENTRIES);
}
