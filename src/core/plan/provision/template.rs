//! The PodTemplate of requested pods: from a pod or pod template only what decides where a pod goes. It carries no command, no
//! variable, no secret and no account: whoever may read PodTemplates learns nothing of what the pods do.

use serde_json::{Map, Value, json};

use crate::model::names;

/// Image of the containers, which never run.
const IMAGE: &str = "pause";
/// Fields of a spec that decide where its pods go, as they are.
const FIELDS: &[&str] = &[
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "schedulerName",
    "runtimeClassName",
    "overhead",
    "resources",
    "resourceClaims",
    "hostNetwork",
    "hostUsers",
    "os",
];
/// Fields of a container that decide where its pod goes.
const CONTAINER_FIELDS: &[&str] = &["name", "resources", "restartPolicy", "restartPolicyRules"];
/// Fields of a port of a container.
const PORT_FIELDS: &[&str] = &["containerPort", "hostPort", "hostIP", "protocol"];
/// Sources of volumes that tie a pod to nodes.
const VOLUMES: &[&str] = &["persistentVolumeClaim", "ephemeral"];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Where the requested pods go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    /// The node label of which all pods of the request share one value.
    pub key: Option<String>,
    /// Values without enough nodes.
    pub avoided: Vec<String>,
}

/// Returns the template of requested pods like this pod, or like the pods of this template. Its labels are all of theirs: their
/// affinities select pods by them.
pub fn template(pod: &Value, request: &str, domains: &Domains) -> Value {
    let mut labels = pod.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert(names::REQUEST.to_owned(), json!(request));
    let of = pod.get("spec").unwrap_or(&Value::Null);
    let mut spec = picked(of, FIELDS);
    for field in ["initContainers", "containers"] {
        let containers: Vec<_> = list(of, field).map(container).collect();
        if !containers.is_empty() {
            spec.insert(field.to_owned(), json!(containers));
        }
    }
    let is_claim = |volume: &&Value| VOLUMES.iter().any(|source| volume.get(source).is_some());
    let volumes: Vec<_> = list(of, "volumes").filter(is_claim).map(volume).collect();
    if !volumes.is_empty() {
        spec.insert("volumes".to_owned(), json!(volumes));
    }
    if let Some(key) = &domains.key {
        share(&mut spec, key, request);
        avoid(&mut spec, key, &domains.avoided);
    }
    json!({ "metadata": { "labels": labels }, "spec": spec })
}

fn list<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn picked(of: &Value, fields: &[&str]) -> Map<String, Value> {
    let field = |field: &&str| Some(((*field).to_owned(), of.get(field).filter(|value| !value.is_null())?.clone()));
    fields.iter().filter_map(field).collect()
}

fn container(of: &Value) -> Map<String, Value> {
    let mut container = picked(of, CONTAINER_FIELDS);
    container.insert("image".to_owned(), json!(IMAGE));
    let ports: Vec<_> = list(of, "ports").map(|port| picked(port, PORT_FIELDS)).collect();
    if !ports.is_empty() {
        container.insert("ports".to_owned(), json!(ports));
    }
    container
}

/// Returns a claim: its name, or of one that is made with the pod what decides on its volume.
fn volume(of: &Value) -> Map<String, Value> {
    let mut volume = picked(of, &["name", "persistentVolumeClaim"]);
    if let Some(spec) = of.pointer("/ephemeral/volumeClaimTemplate/spec") {
        volume.insert("ephemeral".to_owned(), json!({ "volumeClaimTemplate": { "spec": spec } }));
    }
    volume
}

/// Adds that all pods of the request are in one domain.
fn share(spec: &mut Map<String, Value>, key: &str, request: &str) {
    let own = json!({ "topologyKey": key, "labelSelector": { "matchLabels": { names::REQUEST: request } } });
    match entry(spec, "affinity", &["podAffinity", REQUIRED]) {
        Value::Array(terms) => terms.push(own),
        terms => *terms = json!([own]),
    }
}

/// Adds to each alternative of the node affinity that the node is in none of these domains.
fn avoid(spec: &mut Map<String, Value>, key: &str, avoided: &[String]) {
    if avoided.is_empty() {
        return;
    }
    let not_in = json!({ "key": key, "operator": "NotIn", "values": avoided });
    match entry(spec, "affinity", &["nodeAffinity", REQUIRED, "nodeSelectorTerms"]) {
        Value::Array(terms) if !terms.is_empty() => {
            for term in terms.iter_mut().filter_map(Value::as_object_mut) {
                match entry(term, "matchExpressions", &[]) {
                    Value::Array(all) => all.push(not_in.clone()),
                    all => *all = json!([not_in]),
                }
            }
        }
        terms => *terms = json!([{ "matchExpressions": [not_in] }]),
    }
}

/// Returns the field at a path below `first`, which is made where it is missing.
fn entry<'a>(of: &'a mut Map<String, Value>, first: &str, path: &[&str]) -> &'a mut Value {
    let at = of.entry(first).or_insert(Value::Null);
    let Some((next, rest)) = path.split_first() else { return at };
    if !at.is_object() {
        *at = Value::Object(Map::new());
    }
    match at {
        Value::Object(inner) => entry(inner, next, rest),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_carries_what_decides_where_a_pod_goes_and_nothing_else() {
        let secret = "s3cr3t";
        let term = |key: &str| json!({ "matchExpressions": [{ "key": key, "operator": "Exists" }] });
        let pod = json!({
            "metadata": { "name": "a", "labels": { "app": "a", names::GROUP: "pd", names::ROLE: "prefill" }, "annotations": { "token": secret } },
            "spec": {
                "serviceAccountName": secret,
                "imagePullSecrets": [{ "name": secret }],
                "hostAliases": [{ "ip": "10.0.0.1", "hostnames": [secret] }],
                "schedulingGates": [{ "name": names::GATE }],
                "nodeSelector": { "pool": "gpu" },
                "tolerations": [{ "key": "gpu", "operator": "Exists" }],
                "priorityClassName": "high",
                "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [term("a"), term("b")],
                } } },
                "volumes": [
                    { "name": "token", "secret": { "secretName": secret } },
                    { "name": "data", "persistentVolumeClaim": { "claimName": "data-a" } },
                    { "name": "scratch", "ephemeral": { "volumeClaimTemplate": {
                        "metadata": { "annotations": { "a": secret } }, "spec": { "storageClassName": "fast" },
                    } } },
                ],
                "hostUsers": false,
                "initContainers": [{
                    "name": "side", "restartPolicy": "Always", "command": [secret],
                    "restartPolicyRules": [{ "action": "RestartAllContainers" }],
                }],
                "containers": [{
                    "name": "main",
                    "image": secret,
                    "command": [secret], "args": [secret],
                    "env": [{ "name": "TOKEN", "value": secret }], "envFrom": [{ "secretRef": { "name": secret } }],
                    "lifecycle": { "preStop": { "exec": { "command": [secret] } } },
                    "volumeMounts": [{ "name": "token", "mountPath": secret }],
                    "ports": [{ "name": secret, "containerPort": 80, "hostPort": 80 }],
                    "resources": { "requests": { "nvidia.com/gpu": "8" } },
                }],
            },
        });
        let domains = Domains { key: Some("rack".to_owned()), avoided: vec!["r1".to_owned()] };
        let made = template(&pod, "pd-s-0-1", &domains);
        assert!(!made.to_string().contains(secret), "{made}");
        let avoids = json!({ "key": "rack", "operator": "NotIn", "values": ["r1"] });
        let of_term = |key: &str| json!({ "matchExpressions": [{ "key": key, "operator": "Exists" }, avoids] });
        let own = json!({
            "topologyKey": "rack", "labelSelector": { "matchLabels": { names::REQUEST: "pd-s-0-1" } },
        });
        let expected = json!({
            "metadata": { "labels": { "app": "a", names::GROUP: "pd", names::ROLE: "prefill", names::REQUEST: "pd-s-0-1" } },
            "spec": {
                "nodeSelector": { "pool": "gpu" },
                "tolerations": [{ "key": "gpu", "operator": "Exists" }],
                "priorityClassName": "high",
                "affinity": {
                    "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [of_term("a"), of_term("b")],
                    } },
                    "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [own] },
                },
                "volumes": [
                    { "name": "data", "persistentVolumeClaim": { "claimName": "data-a" } },
                    { "name": "scratch", "ephemeral": { "volumeClaimTemplate": {
                        "spec": { "storageClassName": "fast" },
                    } } },
                ],
                "hostUsers": false,
                "initContainers": [{
                    "name": "side", "restartPolicy": "Always", "image": IMAGE,
                    "restartPolicyRules": [{ "action": "RestartAllContainers" }],
                }],
                "containers": [{
                    "name": "main",
                    "image": IMAGE,
                    "ports": [{ "containerPort": 80, "hostPort": 80 }],
                    "resources": { "requests": { "nvidia.com/gpu": "8" } },
                }],
            },
        });
        assert_eq!(made, expected);
    }

    #[test]
    fn a_batch_without_a_domain_asks_for_none() {
        let made = template(&json!({ "spec": { "containers": [{ "name": "a" }] } }), "r", &Domains::default());
        assert_eq!(made["spec"], json!({ "containers": [{ "name": "a", "image": IMAGE }] }));
        let avoided = Domains { key: Some("rack".to_owned()), avoided: vec!["r1".to_owned()] };
        let made = template(&json!({ "spec": {} }), "r", &avoided);
        let terms = &made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let avoids = json!({ "key": "rack", "operator": "NotIn", "values": ["r1"] });
        assert_eq!(*terms, json!({ "nodeSelectorTerms": [{ "matchExpressions": [avoids] }] }));
    }
}
