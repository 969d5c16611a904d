//! Objects on their way through the webhook: what it makes of a valid object is a valid object, of which it makes nothing more.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rolegate::model::names::{GATE, PINNED};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::api_server::{Webhook, block_on, plural};
use super::review::patch;
use super::scenario::{Scenario, text, type_of};

/// Objects of one input that are tried.
const MOST: usize = 3;

/// Tries the objects of one input, each as it is made or, where there is an old one, changed.
pub fn run(data: &[u8]) {
    let Some(mut scenario) = Scenario::read(data) else { return };
    scenario.objects.truncate(MOST);
    block_on(async {
        let there = scenario.with.iter().chain(&scenario.old).cloned().collect();
        let webhook = Webhook::before(there);
        for object in &scenario.objects {
            let same = |old: &&Value| type_of(old) == type_of(object) && name(old) == name(object);
            pass(&webhook, object, scenario.old.iter().find(same)).await;
        }
    });
}

fn name(object: &Value) -> (&str, &str) {
    (text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

async fn pass(webhook: &Webhook, object: &Value, old: Option<&Value>) {
    _ = webhook.ask("/validate", review(object, old)).await;
    let Ok(answer) = webhook.ask("/mutate", review(object, old)).await else { return };
    if !is_valid(object) || old.is_some_and(|old| !is_valid(old)) {
        return;
    }
    let Some(made) = patch(&answer) else { return };
    let after = patched(object, &made);
    assert!(is_valid(&after), "{made} makes {after}");
    match type_of(object) {
        ("v1", "Pod") => same_pod(object, &after, &answer["response"]["warnings"].to_string()),
        _ => same_workload(object, &after),
    }
    let again = webhook.ask("/mutate", review(&after, old)).await.expect("an answer, as before");
    assert_eq!(patch(&again), None, "after {made}");
    _ = webhook.ask("/validate", review(&after, old)).await;
}

fn patched(object: &Value, patch: &Value) -> Value {
    let operations: json_patch::Patch = serde_json::from_value(patch.clone()).expect("a JSON Patch");
    let mut after = object.clone();
    json_patch::patch(&mut after, &operations).unwrap_or_else(|error| panic!("{patch} does not apply: {error}"));
    after
}

/// The review that an API server would send.
fn review(object: &Value, old: Option<&Value>) -> Vec<u8> {
    let (api_version, kind) = type_of(object);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let namespace = text(object, "/metadata/namespace");
    let request = json!({
        "uid": "u",
        "kind": { "group": group, "version": version, "kind": kind },
        "resource": { "group": group, "version": version, "resource": plural(kind) },
        "namespace": if namespace.is_empty() { "default" } else { namespace },
        "name": text(object, "/metadata/name"),
        "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "userInfo": { "username": "somebody" },
        "object": object,
        "oldObject": old,
    });
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request })
        .to_string()
        .into_bytes()
}

fn reads<T: DeserializeOwned>(value: &Value) -> bool {
    serde_json::from_value::<T>(value.clone()).is_ok()
}

/// Whether an API server would have let it come so far.
fn is_valid(object: &Value) -> bool {
    let has_meta = object.get("metadata").is_some_and(|meta| meta.is_object() && reads::<ObjectMeta>(meta));
    let has_spec = object.get("spec").is_none_or(Value::is_object);
    has_meta
        && has_spec
        && match type_of(object) {
            // It sends a spec even where none was written.
            ("v1", "Pod") => reads::<Pod>(object) && object.get("spec").is_some(),
            ("apps/v1", "StatefulSet") => reads::<StatefulSet>(object),
            // No other kind has one of these resources, however it is spelled.
            (_, kind) => !["pods", "statefulsets"].contains(&&*plural(kind)),
        }
}

/// What stands in a map of strings; nothing of it may be lost but what gives way with a warning.
fn keeps(before: &Value, after: &Value, pointer: &str, warned: &str) {
    let entries = before.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    // Its own keys, KEP-75's among them, follow the pod.
    let is_ours = |key: &str| key.contains("rolegate") || key.contains("workloads.x-k8s.io/");
    // An empty name of a subgroup is none.
    let is_none = |key: &str, value: &Value| key == "kai.scheduler/subgroup-name" && value == "";
    let gives_way = |key: &str| warned.contains(&format!("{key}: PodGroup"));
    for (key, value) in entries.filter(|(key, value)| !is_ours(key) && !gives_way(key) && !is_none(key, value)) {
        let kept = after.pointer(pointer).and_then(|map| map.get(key));
        assert_eq!(kept, Some(value), "{pointer} {key}");
    }
}

/// But for what is added, it is the same pod.
fn same_pod(before: &Value, after: &Value, warned: &str) {
    keeps(before, after, "/metadata/labels", warned);
    keeps(before, after, "/metadata/annotations", warned);
    let gates = |pod: &Value| {
        let gates = pod["spec"]["schedulingGates"].as_array().cloned().unwrap_or_default();
        gates.iter().map(|gate| gate["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let (had, mut has) = (gates(before), gates(after));
    if has.len() > had.len() {
        assert!(!had.iter().any(|gate| gate == GATE), "{has:?}");
        assert_eq!(has.pop().as_deref(), Some(GATE));
    }
    assert_eq!(had, has);
    for list in ["containers", "initContainers"] {
        let containers = |pod: &Value| pod["spec"][list].as_array().cloned().unwrap_or_default();
        let (before, after) = (containers(before), containers(after));
        assert_eq!(before.len(), after.len(), "{list}");
        for (before, after) in before.iter().zip(&after) {
            let named =
                |name: &Value| after["env"].as_array().into_iter().flatten().any(|there| there["name"] == *name);
            let env = before["env"].as_array().into_iter().flatten();
            env.for_each(|variable| assert!(named(&variable["name"]), "{variable} is lost"));
            assert_eq!(without(before, &["env"]), without(after, &["env"]));
        }
    }
    let ours = ["schedulingGates", "containers", "initContainers", "affinity", "nodeSelector"];
    assert_eq!(without(&before["spec"], &ours), without(&after["spec"], &ours));
    // A copy of a pod loses what its release chose.
    let pinned = before.pointer("/metadata/annotations").and_then(|all| all.get(PINNED)).and_then(Value::as_str);
    let chosen: Vec<_> = pinned.iter().flat_map(|all| all.split(',')).filter_map(|one| one.split_once('=')).collect();
    let selected = |pod: &Value| {
        let all = pod["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
        all.into_iter().filter(|(key, _)| !chosen.iter().any(|(chosen, _)| chosen == key)).collect::<Vec<_>>()
    };
    assert_eq!(selected(before), selected(after), "nodeSelector");
}

/// But for its partition and finalizers, it is the same object.
fn same_workload(before: &Value, after: &Value) {
    keeps(before, after, "/metadata/labels", "");
    keeps(before, after, "/metadata/annotations", "");
    let ours = ["updateStrategy", "rolloutStrategy"];
    assert_eq!(without(&before["spec"], &ours), without(&after["spec"], &ours));
    let finalizers = before["metadata"]["finalizers"].as_array().into_iter().flatten();
    for finalizer in finalizers {
        assert!(after["metadata"]["finalizers"].as_array().is_some_and(|kept| kept.contains(finalizer)), "{finalizer}");
    }
}

fn without(value: &Value, fields: &[&str]) -> Value {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, value| !fields.contains(&key.as_str()) && !value.is_null());
    }
    if value.as_object().is_some_and(serde_json::Map::is_empty) { Value::Null } else { value }
}
