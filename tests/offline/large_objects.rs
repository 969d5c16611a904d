//! Objects of the maximum size are judged in well under a second: no rule is quadratic.

use std::time::{Duration, Instant};

use rolegate::rules::{Judged, KaiDialect, Operation, Options, World, judge_json};
use serde_json::{Value, json};

/// Far above the usual time on a slow machine without optimisation; far below quadratic time.
const LIMIT: Duration = Duration::from_secs(20);
const ENTRIES: usize = 10_000;

fn judge(kind: (&str, &str), spec: &Value) -> Judged {
    judge_as(KaiDialect::Proposal, kind, spec)
}

fn judge_as(kai_dialect: KaiDialect, kind: (&str, &str), spec: &Value) -> Judged {
    let world = World::of_manifests(Options { kai_dialect, strict_roles: true, ..Options::default() });
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
fn a_flat_podgroup_whose_dialect_is_told_by_its_fields() {
    let flat: Vec<_> = (0..8 * ENTRIES).map(|i| json!({"name": format!("s{i}"), "minMember": 1})).collect();
    let kind = ("scheduling.run.ai/v2alpha2", "PodGroup");
    assert!(judge_as(KaiDialect::Auto, kind, &json!({"subGroups": flat})).warnings.is_empty());
}

/// Judges a group with the maximum number of roles.
fn group(role: impl Fn(usize) -> Value, coordination: &Value) -> Judged {
    let roles: Vec<_> = (0..1024).map(role).collect();
    judge(("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup"), &json!({"roles": roles, "coordination": coordination}))
}

#[test]
fn a_group_whose_coordinations_name_roles_that_are_not_there() {
    let sizes: serde_json::Map<_, _> = (0..2000).map(|i| (format!("role-{i:05}x"), json!(1))).collect();
    let coordination = json!([{"strategy": {"segmentPlacement": {"segmentSize": sizes}}}]);
    let judged = group(|i| json!({"name": format!("role-{i:05}")}), &coordination);
    let hints = judged.warnings.iter().filter(|warning| warning.detail.contains("did you mean")).count();
    assert_eq!((judged.warnings.len(), hints), (2000, 10));
}

#[test]
fn a_group_whose_roles_each_depend_on_the_one_before() {
    let sizes: serde_json::Map<_, _> = [0, 1023].map(|i| (format!("r{i}"), json!(1))).into_iter().collect();
    let segments = json!({"strategy": {"segmentPlacement": {"segmentSize": sizes}}});
    let coordination = json!(vec![segments; 256]);
    let chain = |i: usize| match i {
        0 => json!({"name": "r0"}),
        _ => json!({"name": format!("r{i}"), "dependencies": [format!("r{}", i - 1)]}),
    };
    let judged = group(chain, &coordination);
    let found: Vec<_> = judged.warnings.iter().filter(|warning| warning.rule == "dependency-deadlock").collect();
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_group_whose_roles_are_all_updated_in_many_coordinations() {
    let names: Vec<_> = (0..1024).map(|i| format!("r{i}")).collect();
    let update = json!({"name": "u", "roles": names, "strategy": {"rollingUpdate": {"maxSkew": "10%"}}});
    let judged = group(|i| json!({"name": format!("r{i}"), "updateStrategy": {"type": "x"}}), &json!(vec![update; 4]));
    let own = judged.warnings.iter().filter(|warning| warning.rule == "role-update-strategy").count();
    assert_eq!(own, 1024);
}

#[test]
fn a_group_that_breaks_rules_in_each_role_and_in_each_coordination() {
    let broken = |i: usize| {
        let sizes = json!({format!("r{i}"): 2, format!("rule-{i}"): 0, "r0": i});
        json!({"strategy": {"segmentPlacement": {"segmentSize": sizes}}})
    };
    let next = |i: usize| json!({"name": format!("r{i}"), "dependencies": [format!("r{}", (i + 1) % 1024)]});
    assert!(group(next, &(0..256).map(broken).collect()).warnings.len() > 700);
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
