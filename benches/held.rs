//! Pods that are held, and that nobody but the benchmark makes.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};

use crate::common::Group;
use crate::common::pods::GATE;

/// A pod as its StatefulSet makes it and the webhook holds it.
pub fn pod(group: &Group, role: &str, set: &StatefulSet, ordinal: u32, namespace: &str) -> Value {
    let set = &set.metadata;
    let name = format!("{}-{ordinal}", set.name.as_deref().unwrap());
    let mut pod = group.pod(role, &name, namespace);
    let added = json!({
        "metadata": {
            "labels": { "apps.kubernetes.io/pod-index": ordinal.to_string(), "statefulset.kubernetes.io/pod-name": name },
            "annotations": { "rolegate.dev/held-by": format!("{}/segments", group.name), "rolegate.dev/born-as": format!("{}/{role}", group.name) },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set.name, "uid": set.uid, "controller": true }],
        },
        "spec": { "schedulingGates": [{ "name": GATE }] },
    });
    json_patch::merge(&mut pod, &added);
    pod
}
