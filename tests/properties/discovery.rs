//! Discovery applied twice is discovery applied once, and what it adds can be taken out again.

use rolegate::api::grove::POD_CLIQUE_SET;
use rolegate::api::{self, Pod};
use rolegate::model::{CliquePod, CliqueSet, identify_clique_pod};
use rolegate::mutate::{Discovery, discover};
use rolegate::rules::{Operation, World, judge_json};

use crate::any_object::name;
use crate::prelude::*;

const NAMESPACE: &str = "dynamo";

prop_compose! {
    /// A set with four cliques, each with or without a role, in scaling group `a` or `z` or alone, in either scope.
    fn grove_object()(
        roles in prop::collection::vec(prop::option::weighted(0.8, name()), 4),
        members in prop::collection::vec(prop::sample::select(vec!["a", "z", ""]), 4),
        scope in prop::option::of(prop::sample::select(vec!["isolated", "set"])),
    ) -> Value {
        let cliques = ["decode", "b", "c", "d"];
        let templates: Vec<_> =
            cliques.iter().zip(roles).map(|(name, role)| json!({"name": name, "spec": {"roleName": role}})).collect();
        let listed = |group: &'static str| cliques.iter().zip(&members).filter(move |(_, of)| **of == group).map(|(name, _)| *name);
        let group = |group| json!({"name": group, "replicas": 2, "cliqueNames": listed(group).collect::<Vec<_>>()});
        let annotations = scope.map(|scope| json!({"rolegate.dev/discovery-scope": scope}));
        json!({
            "metadata": {"name": "inf", "namespace": NAMESPACE, "annotations": annotations},
            "spec": {"template": {"cliques": templates, "podCliqueScalingGroups": [group("a"), group("z")]}},
        })
    }
}

fn read(set: &Value) -> CliqueSet {
    let set: api::PodCliqueSet = serde_json::from_value(set.clone()).expect("a set");
    CliqueSet::from_set(POD_CLIQUE_SET, &set)
}

fn grove_set() -> impl Strategy<Value = CliqueSet> {
    grove_object().prop_map(|set| read(&set))
}

/// Variables of a user, some with the names that discovery sets.
fn env() -> impl Strategy<Value = Value> {
    let names = ["ROLE_NAME", "LEADER_ADDR", "GROVE_ROLE", "PATH", "A", "MASTER"];
    let variable = (prop::sample::select(names.to_vec()), 0..3).prop_map(|(name, source)| match source {
        0 => json!({"name": name, "value": "LEADER", "unknownField": 1}),
        1 => json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
        _ => json!({"name": name}),
    });
    prop_oneof![1 => Just(Value::Null), 4 => prop::collection::vec(variable, 0..5).prop_map(Value::from)]
}

prop_compose! {
    fn grove_pod()(envs in prop::collection::vec(env(), 1..3), init in prop::option::of(env()), in_group in any::<bool>())
        -> Value
    {
        let full_name = if in_group { "inf-0-a-1-decode" } else { "inf-0-decode" };
        let mut labels = json!({
            "app.kubernetes.io/part-of": "inf", "grove.io/podclique": full_name, "grove.io/podclique-pod-index": "3",
        });
        if in_group {
            labels["grove.io/podcliquescalinggroup"] = json!("inf-0-a");
        }
        let container = |(index, env)| json!({"name": format!("c{index}"), "env": env, "image": "i"});
        let containers: Vec<_> = envs.into_iter().enumerate().map(container).collect();
        let mut spec = json!({"containers": containers, "subdomain": "inf-0"});
        if let Some(env) = init {
            spec["initContainers"] = json!([{"name": "init", "env": env}]);
        }
        json!({"metadata": {"namespace": NAMESPACE, "labels": labels}, "spec": spec})
    }
}

/// Applies discovery, as the API server does.
fn apply(pod: &Value, set: &CliqueSet) -> (Value, Discovery) {
    let read: Pod = serde_json::from_value(pod.clone()).expect("a pod");
    let place: CliquePod = identify_clique_pod(&read).expect("a Grove pod");
    let discovery = discover(&read, NAMESPACE, &place, Some(set), "cluster.local");
    let operations: json_patch::Patch = serde_json::from_str(&discovery.patch.to_json()).expect("a JSON Patch");
    let mut after = pod.clone();
    json_patch::patch(&mut after, &operations).expect("the patch applies");
    (after, discovery)
}

fn containers(pod: &mut Value) -> Vec<&mut Value> {
    let spec = pod["spec"].as_object_mut().expect("a spec");
    let lists = spec.iter_mut().filter(|(list, _)| matches!(list.as_str(), "containers" | "initContainers"));
    lists.flat_map(|(_, list)| list.as_array_mut().expect("a list")).collect()
}

/// The discovery variables of a pod.
fn ours(pod: &Value, set: &CliqueSet) -> Vec<Value> {
    let mut bare = pod.clone();
    bare["spec"]["initContainers"] = Value::Null;
    bare["spec"]["containers"] = json!([{"name": "bare"}]);
    apply(&bare, set).0["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default()
}

fn names(env: &[Value]) -> Vec<String> {
    env.iter().map(|variable| variable["name"].as_str().unwrap_or_default().to_owned()).collect()
}

proptest! {
    #![proptest_config(crate::tried(1_000))]

    #[test]
    fn discovery_twice_is_discovery_once_whatever_another_webhook_does_between(
        pod in grove_pod(), set in grove_set(), what in 0..3, turn in 0..8usize,
    ) {
        let (once, _) = apply(&pod, &set);
        let (twice, second) = apply(&once, &set);
        prop_assert_eq!(&twice, &once);
        prop_assert_eq!(second.patch.to_json(), "[]");
        prop_assert!(second.warnings.is_empty());

        let mut between = once;
        for container in containers(&mut between) {
            let Some(env) = container["env"].as_array_mut() else { continue };
            match what {
                0 => env.insert(0, json!({"name": "LWS_GROUP_SIZE", "value": "2"})),
                1 => {
                    let turn = turn.min(env.len());
                    env.rotate_left(turn);
                }
                _ => env.extend(env.clone()),
            }
        }
        let (mut third, _) = apply(&between, &set);
        let (fourth, _) = apply(&third, &set);
        prop_assert_eq!(&fourth, &third);
        let ours = ours(&pod, &set);
        for container in containers(&mut third) {
            let mut env = container["env"].as_array().cloned().unwrap_or_default();
            // A user's variable that has our name and value is left alone, whatever else it holds.
            env.iter_mut().filter_map(Value::as_object_mut).for_each(|variable| drop(variable.remove("unknownField")));
            let (first, later) = env.split_at(ours.len());
            prop_assert_eq!(first, &ours[..], "first, in order");
            let later: BTreeSet<_> = names(later).into_iter().collect();
            prop_assert!(names(&ours).iter().all(|name| !later.contains(name)), "and once");
        }
    }

    #[test]
    fn in_a_set_that_is_admitted_a_standalone_pod_finds_each_role_of_its_scope_once(object in grove_object()) {
        let judged = judge_json("grove.io/v1alpha1", "PodCliqueSet", Operation::Create, &object.to_string(), None, &World::default());
        if !judged.expect("a judged kind").expect("a set").is_allowed() {
            return Ok(());
        }
        let set = read(&object);
        let pod = json!({
            "metadata": {"namespace": NAMESPACE, "labels": {
                "app.kubernetes.io/part-of": "inf", "grove.io/podclique": "inf-0-other", "grove.io/podclique-pod-index": "0",
            }},
            "spec": {"containers": [], "subdomain": "inf-0"},
        });
        let found = names(&ours(&pod, &set));
        let addresses: BTreeSet<_> = found.iter().filter(|name| name.ends_with("_ADDR")).collect();
        let roles = set.cliques.iter().filter(|clique| clique.role.is_some());
        let visible = roles.filter(|clique| clique.group.is_none() || set.joins_scopes()).count();
        prop_assert_eq!(addresses.len(), visible);
        prop_assert_eq!(found.iter().filter(|name| name.ends_with("_COUNT")).count(), visible);
    }

    #[test]
    fn what_discovery_added_can_be_taken_out_again(pod in grove_pod(), set in grove_set()) {
        let (mut after, discovery) = apply(&pod, &set);
        let mut before = pod.clone();
        let ours = ours(&pod, &set);
        let names: BTreeSet<_> = names(&ours).into_iter().collect();
        let is_ours = |variable: &Value| variable["name"].as_str().is_some_and(|name| names.contains(name));
        for (after, before) in containers(&mut after).into_iter().zip(containers(&mut before)) {
            // The user's variables of these names are gone, as the warning says; all others are where they were.
            let left: Vec<_> = after["env"].as_array().into_iter().flatten().skip(ours.len()).cloned().collect();
            let kept = before["env"].as_array().into_iter().flatten().filter(|variable| !is_ours(variable));
            prop_assert_eq!(left, kept.cloned().collect::<Vec<_>>());
            after["env"] = Value::Null;
            before["env"] = Value::Null;
        }
        prop_assert_eq!(after, before, "nothing else changes");
        prop_assert!(discovery.warnings.iter().all(|warning| warning.contains("replaced")));
    }
}
