//! PodGroups, Grove sets and pods, valid and not.

use crate::prelude::*;

/// Names that often meet each other, and some that no name may be.
pub fn name() -> impl Strategy<Value = String> {
    let known = ["a", "b", "c", "decode", "decode-workers", "LEADER", "leader", "a-b", "A_B"].map(str::to_owned);
    prop_oneof![
        8 => prop::sample::select(known.to_vec()),
        1 => Just(String::new()),
        1 => Just("x".repeat(70)),
        1 => "\\PC{0,6}",
    ]
}

fn number() -> impl Strategy<Value = Value> {
    let extremes = [json!(i64::MAX), json!(i64::MIN), json!(-1)].to_vec();
    prop_oneof![
        16 => (0..5i64).prop_map(Value::from),
        4 => Just(Value::Null),
        2 => prop::sample::select(extremes),
        1 => prop::sample::select(vec![json!(1.5), json!("2")]),
    ]
}

/// Any JSON, with the keys that these objects have.
fn any_json() -> impl Strategy<Value = Value> {
    let keys = [
        "name",
        "parent",
        "minMember",
        "minSubGroup",
        "subGroups",
        "topologyConstraint",
        "topologyConstraints",
        "global",
        "subGroupSets",
        "constraint",
        "requiredTopologyLevel",
        "preferredTopologyLevel",
        "schedulingBackoff",
        "template",
        "cliques",
        "spec",
        "metadata",
        "roleName",
        "replicas",
        "podCliqueScalingGroups",
        "cliqueNames",
        "scaleConfig",
        "autoScalingConfig",
        "maxReplicas",
        "labels",
        "annotations",
        "containers",
        "env",
        "value",
        "valueFrom",
        "hostname",
    ];
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), name().prop_map(Value::from)];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..5)
                .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

prop_compose! {
    /// A topology constraint.
    fn constraint()(required in prop::option::of(name()), preferred in prop::option::of(name()), keep in 0..4) -> Value {
        match keep {
            0 => Value::Null,
            1 => json!({}),
            _ => json!({"requiredTopologyLevel": required, "preferredTopologyLevel": preferred, "topology": "a"}),
        }
    }
}

prop_compose! {
    /// A subgroup.
    fn sub_group()(
        name in name(), parent in prop::option::of(name()), pods in number(), gangs in number(), constraint in constraint(),
    ) -> Value {
        json!({"name": name, "parent": parent, "minMember": pods, "minSubGroup": gangs, "topologyConstraint": constraint})
    }
}

prop_compose! {
    /// The spec of a PodGroup.
    fn pod_group_spec()(
        sub_groups in prop::collection::vec(sub_group(), 0..8),
        by_name in prop::collection::btree_map(name(), constraint(), 0..3),
        sets in prop::collection::vec((prop::collection::vec(name(), 0..3), constraint()), 0..3),
        counts in (number(), number(), number()),
    ) -> Value {
        let sets: Vec<_> =
            sets.into_iter().map(|(names, constraint)| json!({"subGroups": names, "constraint": constraint})).collect();
        json!({
            "minMember": counts.0, "minSubGroup": counts.1, "schedulingBackoff": counts.2, "subGroups": sub_groups,
            "topologyConstraints": {"subGroups": by_name, "subGroupSets": sets},
        })
    }
}

prop_compose! {
    /// A clique.
    fn clique()(name in name(), role in prop::option::of(name()), replicas in number(), max in number()) -> Value {
        let scale = json!({"maxReplicas": max});
        json!({"name": name, "spec": {"roleName": role, "replicas": replicas, "autoScalingConfig": scale}})
    }
}

prop_compose! {
    /// The spec of a Grove set.
    fn clique_set_spec()(
        cliques in prop::collection::vec(clique(), 0..6),
        groups in prop::collection::vec((name(), prop::collection::vec(name(), 0..4), number()), 0..3),
        replicas in number(),
    ) -> Value {
        let groups: Vec<_> = groups
            .into_iter()
            .map(|(name, cliques, replicas)| json!({"name": name, "cliqueNames": cliques, "replicas": replicas}))
            .collect();
        json!({"replicas": replicas, "template": {"cliques": cliques, "podCliqueScalingGroups": groups}})
    }
}

/// An object of a kind, with a spec of that kind or with anything.
pub fn object() -> impl Strategy<Value = Value> {
    let spec = prop_oneof![
        4 => (Just(("scheduling.run.ai/v2alpha2", "PodGroup")), pod_group_spec()),
        4 => (Just(("grove.io/v1alpha1", "PodCliqueSet")), clique_set_spec()),
        1 => (Just(("scheduling.run.ai/v2alpha2", "PodGroup")), any_json()),
        1 => (Just(("grove.io/v1alpha1", "PodGangSet")), any_json()),
        1 => (Just(("v1", "Pod")), any_json()),
    ];
    (spec, prop_oneof![4 => Just(json!({"name": "a", "namespace": "b"})), 1 => any_json()]).prop_map(
        |(((api_version, kind), spec), metadata)| {
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
        },
    )
}
