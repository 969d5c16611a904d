//! What holds of every pod's mutation: it applies, a second time it changes nothing, another webhook in between does no
//! harm, only what it says is touched, and what it writes fits the API server's limits.

use proptest::sample::{select, subsequence};
use rolegate::api::grove::POD_CLIQUE_SET;
use rolegate::api::{Pod, PodCliqueSet, PodGroup, RoleBasedGroup};
use rolegate::model::{CliqueSet, GangTree, Group};
use rolegate::mutate::{GroupLookup, Lookups, Patch, PodMutation, PodSettings, Subject, TopologyLookup, mutate_pod};
use serde_json::Map;

use crate::prelude::*;

/// What the pods of a test find.
#[derive(Clone, Debug)]
struct Neighbours {
    group: Option<Value>,
    layer: Option<&'static str>,
}

impl Neighbours {
    fn mutate(&self, object: &Value) -> PodMutation {
        let pod: Pod = serde_json::from_value(object.clone()).expect("a pod");
        let group = self.group.as_ref().map(|group| {
            let group: RoleBasedGroup = serde_json::from_value(group.clone()).expect("a group");
            Group::from_rbg(ROLE_BASED_GROUP, &group)
        });
        let set = CliqueSet::from_set(POD_CLIQUE_SET, &serde_json::from_value::<PodCliqueSet>(grove_set()).unwrap());
        let gang = GangTree::from_pod_group(&serde_json::from_value::<PodGroup>(gang()).unwrap(), None);
        let around = Lookups {
            group: group.as_ref().map_or(GroupLookup::Absent, GroupLookup::Found),
            is_certain: true,
            topology: self.layer.map_or(TopologyLookup::Missing, TopologyLookup::Found),
            clique_set: Some(&set),
            pod_group: Some(&gang),
        };
        mutate_pod(&pod, &Subject::of(&pod, "ns", &()), &around, &PodSettings::default())
    }
}

fn grove_set() -> Value {
    json!({
        "metadata": { "name": "llm", "namespace": "ns" },
        "spec": { "replicas": 1, "template": { "cliques": [
            { "name": "lead", "spec": { "roleName": "lead", "replicas": 1 } },
            { "name": "work", "spec": { "roleName": "work", "replicas": 3 } },
        ] } },
    })
}

fn gang() -> Value {
    json!({ "metadata": { "name": "g", "namespace": "ns" }, "spec": { "subGroups": [{ "name": "prefill" }] } })
}

fn apply(patch: &Patch, object: &Value) -> Value {
    let operations: json_patch::Patch = serde_json::from_str(&patch.to_json()).expect("a JSON Patch");
    let mut after = object.clone();
    json_patch::patch(&mut after, &operations).expect("the patch applies");
    after
}

/// The group that pods may name: every strategy, names up to their limits.
fn neighbours() -> impl Strategy<Value = Neighbours> {
    let long = "c".repeat(63);
    let name = select(vec!["c".to_owned(), "a-b-0".to_owned(), long]);
    let strategy = select(vec![
        json!({ "segmentPlacement": { "segmentSize": { "prefill": 2 } } }),
        json!({ "segmentPlacement": { "segmentSize": { "prefill": 0 } } }),
        json!({ "segmentPlacement": { "segmentSize": { "prefill": 2 }, "progression": "Parallel" } }),
        json!({ "segmentPlacement": { "segmentSize": { "prefill": 3 },
            "topologyAffinity": { "topologyKey": "rack", "strategy": "BestEffort", "spreadSegments": true } } }),
        json!({ "affinityScheduling": { "topologyKey": "host", "ratios": { "prefill": 2 } } }),
        json!({ "rollingDeploy": { "roleDeployStep": { "prefill": 4 }, "deployTopologyConstraint": {
            "topologyLayerName": "host", "podGroupPolicy": { "kubeScheduling": {"scheduleTimeoutSeconds": 1} } } } }),
        json!({ "rollingDeploy": { "roleDeployStep": { "prefill": 4 }, "deployTopologyConstraint": {
            "topologyLayerName": "host", "constraintMode": "soft", "podGroupPolicy": { "kai": { "queue": "q" } } } } }),
        json!({ "rollingUpdate": { "maxSkew": "1%" } }),
    ]);
    let group = (name, strategy).prop_map(|(name, strategy)| {
        json!({
            "metadata": { "name": "pd", "namespace": "ns" },
            "spec": {
                "roles": [{ "name": "prefill", "replicas": 8 }],
                "coordination": [
                    { "name": name, "roles": ["prefill"], "strategy": strategy },
                    { "name": "roll", "roles": ["prefill", "decode"], "strategy": { "rollingUpdate": { "maxSkew": "1%" } } },
                ],
            },
        })
    });
    (prop::option::weighted(0.9, group), select(vec![None, Some("kubernetes.io/hostname")]))
        .prop_map(|(group, layer)| Neighbours { group, layer })
}

/// Labels by which makers of pods say who a pod is.
fn identities() -> Vec<Value> {
    let long_index = u32::MAX.to_string();
    vec![
        json!({}),
        json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": "prefill", "apps.kubernetes.io/pod-index": "5" }),
        json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": "prefill", "apps.kubernetes.io/pod-index": long_index }),
        json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": "prefill" }),
        json!({ "rolegate.dev/group": "p".repeat(63), "rolegate.dev/role": "r".repeat(63) }),
        json!({ "rbg.workloads.x-k8s.io/group-name": "pd", "rbg.workloads.x-k8s.io/role-name": "prefill",
            "rbg.workloads.x-k8s.io/role-instance-name": "pd-prefill-3", "controller-revision-hash": "8bd" }),
        json!({ "rolebasedgroup.workloads.x-k8s.io/name": "pd", "rolebasedgroup.workloads.x-k8s.io/role": "prefill",
            "leaderworkerset.sigs.k8s.io/name": "p", "leaderworkerset.sigs.k8s.io/group-index": "7" }),
        json!({ "app.kubernetes.io/part-of": "llm", "grove.io/podclique": "llm-0-work",
            "grove.io/podcliqueset-replica-index": "0", "grove.io/podclique-pod-index": "2",
            "rolegate.dev/group": "pd", "rolegate.dev/role": "prefill" }),
    ]
}

/// Labels and annotations of ours, as an earlier pass or another release may have left them.
fn leftovers() -> impl Strategy<Value = (Map<String, Value>, Map<String, Value>)> {
    let labels = subsequence(
        vec![
            ("rolebasedgroup.workloads.x-k8s.io/role-subgroup-size", "9"),
            ("rolebasedgroup.workloads.x-k8s.io/deploy-topology-coordination-name", "c-99"),
            ("rolegate.dev/revision", "old"),
            ("scheduling.x-k8s.io/pod-group", "whole"),
        ],
        0..=4,
    );
    let annotations = subsequence(vec![("rolegate.dev/held-by", "x"), ("pod-group-name", "g")], 0..=2);
    let map = |entries: Vec<(&str, &str)>| entries.into_iter().map(|(k, v)| (k.to_owned(), json!(v))).collect();
    (labels, annotations).prop_map(move |(labels, annotations)| (map(labels), map(annotations)))
}

fn terms() -> impl Strategy<Value = Value> {
    let required = json!({ "labelSelector": { "matchLabels": { "app": "x" } }, "topologyKey": "zone" });
    let stale = json!({
        "labelSelector": { "matchExpressions": [
            { "key": "rolebasedgroup.workloads.x-k8s.io/name", "operator": "In", "values": ["pd"] },
            { "key": "rolebasedgroup.workloads.x-k8s.io/deploy-topology-coordination-name", "operator": "In", "values": ["c-9"] },
        ] },
        "topologyKey": "old",
    });
    let preferred = json!({ "weight": 7, "podAffinityTerm": required, "unknown": null });
    let list = move |entries: Vec<Value>| {
        prop_oneof![
            Just(None),
            Just(Some(Value::Null)),
            subsequence(entries.clone(), 0..=entries.len()).prop_map(|e| Some(json!(e)))
        ]
    };
    let lists = (list(vec![required.clone(), stale]), list(vec![preferred])).prop_map(|(required, preferred)| {
        let mut lists = Map::new();
        lists.extend(required.map(|list| ("requiredDuringSchedulingIgnoredDuringExecution".to_owned(), list)));
        lists.extend(preferred.map(|list| ("preferredDuringSchedulingIgnoredDuringExecution".to_owned(), list)));
        Value::Object(lists)
    });
    let parent = || prop_oneof![Just(Value::Null), lists.clone()];
    let affinity = (parent(), parent()).prop_map(
        |(near, far)| json!({ "podAffinity": near, "podAntiAffinity": far, "nodeAffinity": { "unknown": [3, 1, 2] } }),
    );
    prop_oneof![Just(Value::Null), Just(json!({})), affinity]
}

fn pods(leftovers: impl Strategy<Value = (Map<String, Value>, Map<String, Value>)>) -> impl Strategy<Value = Value> {
    let name = prop_oneof![Just(None), Just(Some("p-5".to_owned())), Just(Some("n".repeat(253)))];
    let gates = select(vec![
        Value::Null,
        json!([]),
        json!([{ "name": "a.b/c" }]),
        json!([{ "name": "rolegate.dev/hold" }]),
        json!([{ "name": "a.b/c" }, { "name": "rolegate.dev/hold" }]),
    ]);
    let env = select(vec![
        Value::Null,
        json!([]),
        json!([{ "name": "A", "value": "$(LEAD_ADDR)" }]),
        json!([{ "name": "ROLE_NAME", "value": "mine" }, { "name": "B", "valueFrom": { "fieldRef": { "fieldPath": "x" } } }]),
    ]);
    let node = select(vec![None, None, None, Some("node-1")]);
    let map =
        |map: Map<String, Value>, whole: bool| if map.is_empty() && whole { Value::Null } else { Value::Object(map) };
    (name, select(identities()), leftovers, gates, terms(), prop::collection::vec(env, 0..3), node, any::<bool>())
        .prop_map(move |(name, identity, (more_labels, annotations), gates, affinity, envs, node, null)| {
            let mut labels = identity.as_object().unwrap().clone();
            labels.extend(more_labels);
            let container =
                |(at, env): (usize, &Value)| json!({ "name": format!("c{at}"), "env": env, "x": { "z": 1 } });
            let containers: Vec<_> = envs.iter().enumerate().map(container).collect();
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "generateName": "p-",
                    "labels": map(labels, null),
                    "annotations": map(annotations, null),
                    "ownerReferences": [{ "kind": "StatefulSet", "name": "p", "controller": true }],
                    "future": { "b": 1, "a": [null, 2] },
                },
                "spec": {
                    "schedulingGates": gates,
                    "affinity": affinity,
                    "containers": containers,
                    "initContainers": [{ "name": "i", "env": envs.first() }],
                    "ephemeralContainers": [{ "name": "e" }],
                    "nodeName": node,
                    "future": [{ "z": 1, "a": null }],
                },
            })
        })
}

/// Another mutating webhook: it adds what service meshes and quota systems add.
fn other_webhook(object: &Value) -> Value {
    let mut pod = object.clone();
    let push = |list: &mut Value, entry: Value, front: bool| match list.as_array_mut() {
        Some(list) => list.insert(if front { 0 } else { list.len() }, entry),
        None => *list = json!([entry]),
    };
    pod["metadata"]["labels"]["mesh"] = json!("on");
    pod["metadata"]["annotations"]["mesh~/x"] = json!("on");
    push(&mut pod["spec"]["schedulingGates"], json!({ "name": "quota/gate" }), true);
    push(&mut pod["spec"]["containers"], json!({ "name": "sidecar" }), true);
    for container in pod["spec"]["containers"].as_array_mut().unwrap() {
        push(&mut container["env"], json!({ "name": "MESH", "value": "1" }), true);
    }
    let term = json!({ "labelSelector": { "matchLabels": { "mesh": "on" } }, "topologyKey": "zone" });
    for parent in ["podAffinity", "podAntiAffinity"] {
        push(
            &mut pod["spec"]["affinity"][parent]["requiredDuringSchedulingIgnoredDuringExecution"],
            term.clone(),
            true,
        );
    }
    pod
}

/// Takes back, from the last to the first, what a patch has added.
fn undo(patch: &Patch, mut object: Value) -> Value {
    let operations: Vec<Value> = serde_json::from_str(&patch.to_json()).unwrap();
    for operation in operations.iter().rev() {
        assert_eq!(operation["op"], "add", "nothing of the user's is replaced or removed: {operation}");
        let (parent, step) = operation["path"].as_str().unwrap().rsplit_once('/').unwrap();
        match object.pointer_mut(parent).unwrap() {
            Value::Array(list) if step == "-" => _ = list.pop().unwrap(),
            Value::Array(list) => _ = list.remove(step.parse().unwrap()),
            Value::Object(map) => _ = map.remove(&step.replace("~1", "/").replace("~0", "~")).unwrap(),
            other => panic!("{other} has no entries"),
        }
    }
    object
}

/// Without what the API server does not tell apart: absent, `null` and empty maps.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().map(|(key, value)| (key.clone(), plain(value)));
            Value::Object(kept.filter(|(_, value)| !value.is_null() && *value != json!({})).collect())
        }
        Value::Array(list) => list.iter().map(plain).collect(),
        other => other.clone(),
    }
}

fn fits_a_label(value: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    value.len() <= 63
        && value.chars().all(inner)
        && !value.starts_with(['-', '_', '.'])
        && !value.ends_with(['-', '_', '.'])
}

fn count(list: &Value, entry: impl Fn(&Value) -> bool) -> usize {
    list.as_array().into_iter().flatten().filter(|present| entry(present)).count()
}

/// Terms that name the label of batches.
fn terms_of_ours(pod: &Value, parent: &str) -> usize {
    let lists = pod["spec"]["affinity"][parent].as_object().into_iter().flatten();
    lists.map(|(_, list)| count(list, |term| term.to_string().contains("deploy-topology-coordination-name"))).sum()
}

proptest! {
    #![proptest_config(crate::tried(300))]

    #[test]
    fn a_second_pass_changes_nothing(around in neighbours(), pod in pods(leftovers())) {
        let once = apply(&around.mutate(&pod).patch, &pod);
        let again = around.mutate(&once);
        prop_assert_eq!(again.patch.to_json(), "[]");
        let held = count(&once["spec"]["schedulingGates"], |gate| gate["name"] == "rolegate.dev/hold");
        prop_assert!(held <= 1);
        prop_assert_eq!(again.held, around.mutate(&pod).held);
    }

    #[test]
    fn another_webhook_in_between_does_no_harm(around in neighbours(), pod in pods(leftovers())) {
        let other = other_webhook(&apply(&around.mutate(&pod).patch, &pod));
        let after = apply(&around.mutate(&other).patch, &other);
        prop_assert_eq!(around.mutate(&after).patch.to_json(), "[]");
        for parent in ["podAffinity", "podAntiAffinity"] {
            prop_assert_eq!(terms_of_ours(&after, parent), terms_of_ours(&other, parent));
        }
        prop_assert_eq!(&after["spec"]["schedulingGates"], &other["spec"]["schedulingGates"]);
        let swapped = apply(&around.mutate(&other_webhook(&pod)).patch, &other_webhook(&pod));
        prop_assert_eq!(around.mutate(&swapped).patch.to_json(), "[]");
    }

    #[test]
    fn what_was_added_can_be_taken_back(
        around in neighbours(),
        pod in pods(Just((Map::new(), Map::new()))),
    ) {
        // Terms and variables of ours that are old are replaced: those pods are not looked at here.
        let text = pod.to_string();
        prop_assume!(!text.contains("ROLE_NAME") && !text.contains("\"old\""));
        let patch = around.mutate(&pod).patch;
        prop_assert_eq!(plain(&undo(&patch, apply(&patch, &pod))), plain(&pod));
    }

    #[test]
    fn everything_fits_its_limits(around in neighbours(), pod in pods(leftovers())) {
        let after = apply(&around.mutate(&pod).patch, &pod);
        for (key, value) in after["metadata"]["labels"].as_object().into_iter().flatten() {
            let name = key.rsplit('/').next().unwrap();
            prop_assert!(fits_a_label(value.as_str().unwrap()) && fits_a_label(name), "{}={}", key, value);
        }
        let bound = pod["spec"]["nodeName"].is_string();
        let held = count(&after["spec"]["schedulingGates"], |gate| gate["name"] == "rolegate.dev/hold") > 0;
        let held_before = count(&pod["spec"]["schedulingGates"], |gate| gate["name"] == "rolegate.dev/hold") > 0;
        prop_assert!(!bound || held == held_before, "a bound pod may not be gated");
    }
}
