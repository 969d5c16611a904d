//! Pods that only a benchmark creates.

#![allow(dead_code, reason = "no benchmark asks for all of them")]

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};

use crate::common::Group;
use crate::common::pods::GATE;

/// Returns a pod as its StatefulSet creates it.
pub fn made(group: &Group, role: &str, set: &StatefulSet, ordinal: usize, namespace: &str) -> Value {
    let set = &set.metadata;
    let name = format!("{}-{ordinal}", set.name.as_deref().unwrap());
    let mut pod = group.pod(role, &name, namespace);
    let added = json!({ "metadata": {
        "labels": { "apps.kubernetes.io/pod-index": ordinal.to_string(), "statefulset.kubernetes.io/pod-name": name },
        "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set.name, "uid": set.uid, "controller": true }],
    } });
    json_patch::merge(&mut pod, &added);
    pod
}

/// Returns a pod as the webhook holds it.
pub fn pod(group: &Group, role: &str, set: &StatefulSet, ordinal: u32, namespace: &str) -> Value {
    let mut pod = made(group, role, set, ordinal as usize, namespace);
    let added = json!({
        "metadata": { "annotations": {
            "rolegate.dev/held-by": format!("{}/segments", group.name),
            "rolegate.dev/born-as": format!("{}/{role}", group.name),
        } },
        "spec": { "schedulingGates": [{ "name": GATE }] },
    });
    json_patch::merge(&mut pod, &added);
    pod
}

/// Renames the labels of an object so that rolegate ignores it.
pub fn of_no_group(object: &Value) -> Value {
    let text = ["group", "role"].into_iter().fold(object.to_string(), |text, label| {
        text.replace(&format!("rolegate.dev/{label}"), &format!("bench.example/{label}"))
    });
    serde_json::from_str(&text).unwrap()
}
