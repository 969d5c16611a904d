//! Whatever an object holds, judging it neither panics nor takes long: property tests over a grammar of the objects.

use rolegate::rules::{KaiDialect, Operation, Options, World, judge_json, needs};
use serde_json::Map;

use crate::prelude::*;

/// Kinds that are judged or looked at, and one of neither.
const KINDS: &[(&str, &str)] = &[
    ("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup"),
    ("workloads.instai.io/v1alpha1", "RoleBasedGroup"),
    ("workloads.x-k8s.io/v1alpha2", "RoleBasedGroup"),
    ("rolegate.dev/v1alpha1", "RoleCoordination"),
    ("rolegate.dev/v1alpha1", "ClusterTopology"),
    ("workloads.x-k8s.io/v1alpha1", "ClusterTopology"),
    ("workloads.x-k8s.io/v1alpha2", "CoordinatedPolicy"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "Deployment"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("policy/v1", "PodDisruptionBudget"),
    ("scheduling.run.ai/v2alpha2", "PodGroup"),
    ("grove.io/v1alpha1", "PodCliqueSet"),
    ("grove.io/v1alpha1", "PodGangSet"),
    ("v1", "Pod"),
    ("example.com/v1", "Unknown"),
];

/// Values that a field of the wrong type, of a newer schema or of a careless hand may hold.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        Just(json!(-0.5)),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null, {"a": [1]}])),
    ]
}

fn word() -> impl Strategy<Value = Value> {
    let words = [
        "prefill",
        "decode",
        "router",
        "",
        "nil",
        "hard",
        "Parallel",
        "OrderedReady",
        "0%",
        "5%",
        "101%",
        "kubernetes.io/hostname",
        "é",
        "RollingUpdate",
        "rbg-cluster-topology",
        "host",
        "llm",
    ];
    prop_oneof![4 => prop::sample::select(words.to_vec()).prop_map(Value::from), 1 => odd()]
}

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
    prop_oneof![
        6 => (0_i64..300).prop_map(Value::from),
        1 => prop::sample::select([-1, i64::MIN, i64::MAX, 4_294_967_296].as_slice()).prop_map(Value::from),
        1 => odd(),
    ]
}

fn sizes() -> impl Strategy<Value = Value> {
    let entries = prop::collection::btree_map("prefill|decode|router|é?", number(), 0..4);
    prop_oneof![6 => entries.prop_map(|entries| entries.into_iter().collect()), 1 => odd()]
}

/// An object of some of these fields.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| prop::option::weighted(0.7, value).prop_map(move |v| (name, v)))
        .collect();
    let entries = fields.prop_map(|fields| {
        let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(set.collect::<Map<_, _>>())
    });
    prop_oneof![15 => entries, 1 => odd()].boxed()
}

fn list(entry: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![15 => prop::collection::vec(entry, 0..4).prop_map(Value::Array), 1 => odd()].boxed()
}

fn coordination() -> BoxedStrategy<Value> {
    let w = || word().boxed();
    let update = vec![("maxSkew", w()), ("maxUnavailable", number().boxed()), ("partition", w())];
    let constraint = object(vec![
        ("clusterTopologyName", w()),
        ("topologyLayerName", w()),
        ("constraintMode", w()),
        ("podGroupPolicy", object(vec![("kubeScheduling", odd().boxed()), ("kai", odd().boxed())])),
    ]);
    let affinity = object(vec![("topologyKey", w()), ("strategy", w()), ("spreadSegments", odd().boxed())]);
    let mut strategy = vec![
        ("rollingUpdate", object(update.clone())),
        (
            "segmentPlacement",
            object(vec![("segmentSize", sizes().boxed()), ("progression", w()), ("topologyAffinity", affinity)]),
        ),
        ("affinityScheduling", object(vec![("topologyKey", w()), ("ratios", sizes().boxed()), ("batchMode", w())])),
        (
            "rollingDeploy",
            prop_oneof![
                sizes(),
                object(vec![("roleDeployStep", sizes().boxed()), ("deployTopologyConstraint", constraint.clone())])
            ]
            .boxed(),
        ),
        ("deployTopologyConstraint", constraint),
        ("scaling", odd().boxed()),
    ];
    strategy.extend(update);
    object(vec![("name", w()), ("type", w()), ("roles", list(w())), ("strategy", object(strategy)), ("whenNoFit", w())])
}

fn metadata() -> BoxedStrategy<Value> {
    let labels = || {
        prop_oneof![3 => Just(json!({"rolegate.dev/group": "llm", "rolegate.dev/role": "prefill"})), 1 => odd()].boxed()
    };
    object(vec![
        ("name", Just(json!("llm")).boxed()),
        ("namespace", Just(json!("prod")).boxed()),
        ("labels", labels()),
        ("annotations", labels()),
        ("creationTimestamp", word().boxed()),
    ])
}

/// The fields of PodGroups, and those of templates of Grove sets.
fn gangs() -> [Vec<(&'static str, BoxedStrategy<Value>)>; 2] {
    let n = || prop_oneof![3 => 0..5_i64, 1 => any::<i64>()].prop_map(Value::from).boxed();
    let name = || name().prop_map(Value::from).boxed();
    let levels = vec![("requiredTopologyLevel", name()), ("preferredTopologyLevel", name()), ("topology", name())];
    let within = || object(levels.clone());
    let counts = || vec![("minMember", n()), ("minSubGroup", n()), ("topologyConstraint", within())];
    let sub_group = object([vec![("name", name()), ("parent", name())], counts()].concat());
    let by_name = prop::collection::btree_map("[a-c]", within(), 0..3);
    let by_name = by_name.prop_map(|entries| entries.into_iter().collect()).boxed();
    let sets = list(object(vec![("subGroups", list(name())), ("constraint", within())]));
    let constraints = object(vec![("global", within()), ("subGroups", by_name), ("subGroupSets", sets)]);
    let own = vec![("schedulingBackoff", n()), ("subGroups", list(sub_group)), ("topologyConstraints", constraints)];
    let scale = object(vec![("maxReplicas", n())]);
    let of_clique = object(vec![("roleName", name()), ("replicas", n()), ("autoScalingConfig", scale.clone())]);
    let clique = object(vec![("name", name()), ("spec", of_clique)]);
    let listed = list(name());
    let group = vec![("name", name()), ("cliqueNames", listed), ("replicas", n()), ("scaleConfig", scale)];
    [[own, counts()].concat(), vec![("cliques", list(clique)), ("podCliqueScalingGroups", list(object(group)))]]
}

fn spec() -> BoxedStrategy<Value> {
    let w = || word().boxed();
    let n = || number().boxed();
    let [gangs, mut template] = gangs();
    template.push(("metadata", metadata()));
    let template = object(template);
    let role = object(vec![
        ("name", w()),
        ("replicas", n()),
        ("dependencies", list(w())),
        ("updateStrategy", odd().boxed()),
        ("workload", object(vec![("kind", w())])),
        ("workloadRef", object(vec![("kind", Just(json!("StatefulSet")).boxed()), ("name", w())])),
        ("template", template.clone()),
    ]);
    let layer = object(vec![("name", w()), ("key", w())]);
    let policy = object(vec![
        ("name", w()),
        ("roles", list(w())),
        ("strategy", object(vec![("rollingUpdate", odd().boxed()), ("scaling", object(vec![("maxSkew", w())]))])),
    ]);
    let expressions = list(object(vec![("operator", w())]));
    let own = vec![
        ("groupRef", object(vec![("name", w())])),
        ("roles", list(role)),
        ("coordination", list(coordination())),
        ("coordinationRequirements", list(coordination())),
        ("podGroupPolicy", odd().boxed()),
        ("layers", list(layer.clone())),
        ("Layers", list(layer)),
        ("topologyScope", sizes().boxed()),
        ("policies", list(policy)),
        ("replicas", n()),
        ("template", template.clone()),
        ("leaderWorkerTemplate", object(vec![("size", n()), ("workerTemplate", template)])),
        ("selector", object(vec![("matchLabels", odd().boxed()), ("matchExpressions", expressions)])),
    ];
    object([gangs, own].concat())
}

fn whole() -> impl Strategy<Value = ((&'static str, &'static str), String)> {
    (prop::sample::select(KINDS), metadata(), spec(), odd()).prop_map(
        |((api_version, kind), metadata, spec, status)| {
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status});
            ((api_version, kind), object.to_string())
        },
    )
}

proptest! {
    #![proptest_config(crate::tried(500))]

    #[test]
    fn any_object_is_judged_and_the_same_object_again_is_never_refused(
        objects in prop::collection::vec(whole(), 1..4),
        operation in prop::sample::select([Operation::Create, Operation::Update, Operation::Delete].as_slice()),
        manifests in any::<bool>(),
        kai_dialect in prop::sample::select(vec![KaiDialect::Auto, KaiDialect::Proposal, KaiDialect::Upstream, KaiDialect::Pods]),
        strict_roles in any::<bool>(),
    ) {
        let mut world = World::of_manifests(Options { kai_dialect, strict_roles, ..Options::default() });
        world.manifests = manifests;
        for ((api_version, kind), object) in &objects {
            let _ = world.add_json(api_version, kind, object);
        }
        for ((api_version, kind), object) in &objects {
            let again = judge_json(api_version, kind, Operation::Update, object, Some(object), &world);
            if let Some(Ok(judged)) = again {
                prop_assert!(judged.is_allowed(), "{:?}", judged.errors);
            }
            let old = objects.first().map(|(_, old)| old.as_str()).filter(|_| operation == Operation::Update);
            for need in needs(api_version, kind, operation, object, old, &world).unwrap_or_default() {
                world.answer(need, manifests);
            }
            if let Some(Ok(judged)) = judge_json(api_version, kind, operation, object, old, &world) {
                let found = judged.errors.iter().chain(&judged.warnings).chain(&judged.notes);
                for violation in found {
                    prop_assert!(!violation.to_string().ends_with('.'), "no full stop: {violation}");
                }
                prop_assert!(judged.errors.is_sorted_by_key(|violation| violation.path.clone()));
            }
        }
    }

    #[test]
    fn any_text_is_judged(text in "\\PC{0,60}", index in 0..KINDS.len()) {
        let (api_version, kind) = KINDS[index];
        let mut world = World::default();
        let _ = world.add_json(api_version, kind, &text);
        let _ = needs(api_version, kind, Operation::Create, &text, None, &world);
        let _ = judge_json(api_version, kind, Operation::Create, &text, Some(&text), &world);
    }
}
