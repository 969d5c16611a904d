//! `rolegate mutate` and the webhook agree: every golden case of pods goes through both, with its objects on a real API server.

use std::io::Write as _;

use base64::Engine as _;
use k8s_openapi::api::core::v1::Namespace;
use rolegate_golden::case::Asked;
use rolegate_golden::{self as golden, expected, file_of};

use crate::common::control_plane::rolegate_binary;
use crate::common::http::Caller;
use crate::common::prelude::*;
use crate::rules::desk::stage;

/// Cases whose objects an API server would not have are told of, and are few.
const AT_LEAST: usize = 40;
/// Name of ClusterTopologies in the cases; the cluster has one of each name.
const TOPOLOGY: &str = "net";

/// A golden case, moved to namespaces of its own.
struct Case {
    name: String,
    with: Vec<Value>,
    objects: Vec<Value>,
    namespaces: Vec<String>,
}

impl Case {
    /// All of them, but for updates of workloads and objects that name no namespace.
    fn all() -> Vec<Self> {
        let cases = golden::cases().into_iter().filter(|case| file_of(case).starts_with("pod/"));
        // The definition here stores RoleBasedGroups as v1alpha1, and nobody converts them.
        let is_converted = |object: &Value| object["apiVersion"] == "workloads.x-k8s.io/v1alpha2";
        let usable = |case: &golden::Case| {
            let mut objects = case.input.objects.iter().chain(&case.input.with);
            let in_namespace =
                |object: &Value| object["metadata"]["namespace"].is_string() || object["kind"] == "ClusterTopology";
            case.input.old.is_empty()
                && expected(case, Asked::Mutate).unwrap().get("allowed") != Some(&json!(false))
                && objects.all(|object| in_namespace(object) && !is_converted(object))
        };
        cases.filter(usable).enumerate().map(|(number, case)| Self::moved(number, &case)).collect()
    }

    fn moved(number: usize, case: &golden::Case) -> Self {
        let mut names = BTreeMap::new();
        let mut list = |objects: &[Value]| {
            let mut objects = objects.to_vec();
            objects.iter_mut().for_each(|object| move_all(object, number, &mut names));
            objects
        };
        let (with, objects) = (list(&case.input.with), list(&case.input.objects));
        Self { name: case.name.clone(), with, objects, namespaces: names.into_values().collect() }
    }

    /// What `rolegate mutate` says: by pod the patch and the warnings, and the pods as they would be.
    fn offline(&self, folder: &Path, format: &str) -> Vec<Value> {
        let with = folder.join("golden-with.json");
        std::fs::write(&with, list(&self.with).to_string()).unwrap();
        let mut child = std::process::Command::new(rolegate_binary())
            .args(["mutate", "-", "-o", format, "--with"])
            .arg(with)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(list(&self.objects).to_string().as_bytes()).unwrap();
        let output: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        let all = output.get("objects").unwrap_or(&output["items"]).as_array().unwrap();
        all.iter().filter(|object| object["kind"] == "Pod").cloned().collect()
    }
}

fn list(items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// Moves an object to the namespaces of its case, with all that names a ClusterTopology.
fn move_all(value: &mut Value, number: usize, namespaces: &mut BTreeMap<String, String>) {
    if let Some(namespace) = value.pointer_mut("/metadata/namespace") {
        let old = namespace.as_str().unwrap().to_owned();
        let moved = namespaces.entry(old.clone()).or_insert_with(|| format!("golden-{number}-{old}")).clone();
        *namespace = json!(moved);
    }
    rename(value, &json!(TOPOLOGY), &json!(format!("golden-{number}-{TOPOLOGY}")));
}

fn rename(value: &mut Value, old: &Value, new: &Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, old, new)),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, old, new)),
        _ if value == old => *value = new.clone(),
        _ => {}
    }
}

/// What the webhook says of a pod: the patch and the warnings.
async fn asked(caller: &mut Caller, pod: &Value) -> (Value, Value) {
    let kind = json!({ "group": "", "version": "v1", "kind": "Pod" });
    let resource = json!({ "group": "", "version": "v1", "resource": "pods" });
    let metadata = &pod["metadata"];
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "golden", "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": metadata["name"], "namespace": metadata["namespace"], "operation": "CREATE",
            "userInfo": { "username": "golden" }, "object": pod, "oldObject": null, "dryRun": false, "options": null,
        },
    });
    let (code, body) = caller.post("/mutate?timeout=10s", review.to_string()).await.unwrap();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    let response = &answer["response"];
    assert!(code == 200 && response["allowed"] == true, "{answer}\n{pod:#}");
    let patch =
        response["patch"].as_str().map(|patch| base64::engine::general_purpose::STANDARD.decode(patch).unwrap());
    let patch = patch.map_or_else(|| json!([]), |patch| serde_json::from_slice(&patch).unwrap());
    (patch, response.get("warnings").cloned().unwrap_or_else(|| json!([])))
}

/// Puts the objects of a case there; what the API server says if it does not have them.
async fn put(stage: &Stage, case: &Case) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    for namespace in &case.namespaces {
        let object = typed(json!({ "metadata": { "name": namespace } }));
        namespaces.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())?;
    }
    let is_there = |object: &&Value| object["kind"] != "Pod";
    let items: Vec<_> = case.with.iter().chain(&case.objects).filter(is_there).cloned().collect();
    let output = stage.plane.kubectl(&["create", "-f", "-"], &list(&items).to_string());
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() && !items.is_empty() {
        return Err(complaint);
    }
    // It is not taken from who creates an object.
    for item in items.iter().filter(|item| item.get("status").is_some()) {
        let status = json!({ "status": item["status"] }).to_string();
        let patch = ["patch", "-f", "-", "--subresource=status", "--type=merge", "-p", &status];
        stage.plane.must(&patch, &item.to_string());
    }
    Ok(())
}

#[tokio::test]
async fn every_golden_case_of_a_pod_is_the_same_to_the_webhook() {
    let stage = stage("golden").await;
    let cases = Case::all();
    let mut namespaces: Vec<_> = cases.iter().flat_map(|case| case.namespaces.clone()).collect();
    namespaces.push(stage.namespace.clone());
    let launch = stage.launch().flag("namespaces", &namespaces.join(","));
    let rolegate = launch.start().await;
    let mut caller = launch.caller(&rolegate).await;
    let (mut compared, mut left) = (0, Vec::new());
    for case in &cases {
        if let Err(complaint) = put(&stage, case).await {
            left.push(format!("{}: {}", case.name, complaint.lines().next().unwrap_or_default()));
            continue;
        }
        let all = case.offline(&stage.plane.dir, "patch");
        for pod in case.objects.iter().filter(|object| object["kind"] == "Pod") {
            let metadata = &pod["metadata"];
            let name = metadata.get("name").unwrap_or(&metadata["generateName"]);
            let offline = all.iter().find(|offline| offline["name"] == *name).unwrap();
            let (patch, warnings) = asked(&mut caller, pod).await;
            assert_eq!((&patch, &warnings), (&offline["patch"], &offline["warnings"]), "{}: {pod:#}", case.name);
        }
        // Pods of workloads as well, and there is nothing left to do.
        for pod in case.offline(&stage.plane.dir, "json") {
            let (patch, _) = asked(&mut caller, &pod).await;
            assert_eq!(patch, json!([]), "{}: {pod:#}", case.name);
        }
        compared += 1;
    }
    println!("{compared} cases compared, {} left:\n{}", left.len(), left.join("\n"));
    assert!(compared >= AT_LEAST, "{compared} cases compared, {} left:\n{}", left.len(), left.join("\n"));
}
