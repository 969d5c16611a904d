//! What is read of pods and nodes does not depend on the encoding in which the API server sends them.

use std::fmt::Debug;

use k8s_openapi::api::core::v1 as core;
use kube::api::Api;
use rolegate::api::node::NODE;
use rolegate::api::pod::POD;
use rolegate::api::protobuf::object;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::api::{Node, Object, ObjectKind, Pod};
use rolegate::cluster::index::Change;
use rolegate::cluster::metrics::ApiRequests;
use rolegate::cluster::watch::cache_age::CacheAges;
use rolegate::cluster::watch::client::client;
use rolegate::cluster::watch::{Selection, watch};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, mpsc};

use crate::common::control_plane::config_of;
use crate::common::prelude::*;

const NAMESPACE: &str = "encodings";
const SELECTOR: &str = "encodings=both";

/// Has every field that anything of ours reads.
fn whole() -> Value {
    let labels = json!({ "matchLabels": { "app": "x" }, "matchExpressions": [
        { "key": "tier", "operator": "In", "values": ["a", "b"] }, { "key": "old", "operator": "DoesNotExist" },
    ] });
    let term = json!({
        "topologyKey": "rack", "labelSelector": labels, "namespaces": ["one", "two"],
        "namespaceSelector": {}, "matchLabelKeys": ["pod-template-hash"], "mismatchLabelKeys": ["tenant"],
    });
    let terms = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 7, "podAffinityTerm": term }],
    });
    json!({
        "metadata": {
            "name": "whole", "namespace": NAMESPACE, "finalizers": ["example.com/stays"],
            "labels": { "encodings": "both", "empty": "" },
            "annotations": { "text": "quotes \", lines\n and \u{1f600}", "rolegate.dev/held-by": "g/segments" },
            "ownerReferences": [
                { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "1", "controller": true, "blockOwnerDeletion": true },
                { "apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "2" },
            ],
        },
        "spec": {
            "schedulingGates": [{ "name": "rolegate.dev/hold" }, { "name": "example.com/other" }],
            "hostname": "h", "subdomain": "d", "schedulerName": "other", "hostNetwork": true,
            "nodeSelector": { "pool": "", "zone": "z" },
            "affinity": {
                "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                    { "matchExpressions": [{ "key": "gpu", "operator": "Exists" }] },
                    { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] },
                ] } },
                "podAffinity": terms, "podAntiAffinity": terms,
            },
            "tolerations": [{ "operator": "Exists" }, { "key": "k", "value": "v", "effect": "NoSchedule" }],
            "topologySpreadConstraints": [{
                "maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels, "minDomains": 3,
                "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["pod-template-hash"],
            }],
            "containers": [
                {
                    "name": "one", "image": "x",
                    "env": [
                        { "name": "EMPTY" }, { "name": "SET", "value": "$(EMPTY)" },
                        { "name": "FROM", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                    ],
                    "resources": { "requests": { "cpu": "1500m", "example.com/gpu": "2" }, "limits": { "example.com/gpu": "2", "memory": "1Gi" } },
                    "ports": [{ "containerPort": 80, "hostPort": 80, "hostIP": "127.0.0.1", "protocol": "UDP" }],
                },
                { "name": "two", "image": "x" },
            ],
            "initContainers": [{ "name": "sidecar", "image": "x", "restartPolicy": "Always" }, { "name": "once", "image": "x" }],
            "volumes": [
                { "name": "a", "persistentVolumeClaim": { "claimName": "c" } }, { "name": "b", "emptyDir": {} },
                { "name": "e", "ephemeral": { "volumeClaimTemplate": { "spec": {
                    "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
                } } } },
            ],
            "resourceClaims": [{ "name": "r", "resourceClaimName": "r" }],
        },
    })
}

fn status() -> Value {
    json!({ "status": {
        "phase": "Failed", "reason": "Evicted", "message": "the node was low on memory", "nominatedNodeName": "n",
        "allocatedResources": { "cpu": "1" }, "resources": { "requests": { "cpu": "2" } },
        "initContainerStatuses": [{
            "name": "sidecar", "image": "x", "imageID": "", "ready": true, "restartCount": 0,
            "allocatedResources": { "cpu": "250m" }, "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "1" } },
        }],
        "conditions": [{ "type": "Ready", "status": "False", "reason": "PodFailed" }, { "type": "PodScheduled", "status": "True" }],
        "containerStatuses": [
            {
                "name": "one", "image": "x", "imageID": "", "ready": false, "restartCount": 3,
                "allocatedResources": { "memory": "1Gi" }, "resources": { "requests": { "memory": "2Gi" } },
                "state": { "terminated": { "exitCode": 137, "reason": "OOMKilled", "message": "killed" } },
                "lastState": { "terminated": { "exitCode": 0, "reason": "Completed" } },
            },
            {
                "name": "two", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            },
        ],
    } })
}

/// As rolegate has it.
async fn ours(plane: &ControlPlane) -> Client {
    client(&CacheAges::default(), &ApiRequests::default(), config_of(&plane.kubeconfig).await).unwrap()
}

/// What is listed at first and told after it, as text and without versions.
async fn told<T>(
    client: &Client,
    kind: ObjectKind,
    change: impl AsyncFnOnce(),
    version: Version<T>,
) -> (Vec<String>, String)
where
    T: Object + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let (changed, mut changes) = mpsc::unbounded_channel();
    let never = Notify::new();
    let asked = Selection { selector: Some(SELECTOR), ..Selection::all(kind) };
    let watching = watch(client, asked, &never, |change| _ = changed.send(change));
    let text = |mut object: T| {
        *version(&mut object) = None;
        format!("{object:#?}")
    };
    let told = async {
        let Some(Change::Listed(all)) = changes.recv().await else { panic!("nothing is listed") };
        change().await;
        let Some(Change::Applied(one)) = changes.recv().await else { panic!("no change is told") };
        (all.into_iter().map(text).collect(), text(one))
    };
    tokio::select! {
        () = watching => panic!("the watch is over"),
        told = tokio::time::timeout(PATIENT, told) => told.expect("it is told in time"),
    }
}

/// Where an object has its version: it changes though everything else is changed back.
type Version<T> = fn(&mut T) -> &mut Option<String>;

/// Both clients are told the same when `change` makes `values.1` of `values.0`. A controller that writes in between lets them
/// be asked again.
async fn told_alike<T>(
    clients: [&Client; 2],
    kind: ObjectKind,
    version: Version<T>,
    values: (&str, &str),
    change: impl AsyncFn(&str),
) where
    T: Object + Clone + Debug + DeserializeOwned + Send + 'static,
{
    eventually(PATIENT, "both are told the same", async || {
        let mut all = Vec::new();
        for client in clients {
            change(values.0).await;
            all.push(told(client, kind, async || change(values.1).await, version).await);
        }
        let is_told = all[1].1.contains(&format!("{:?}", values.1));
        if is_told && all[0] == all[1] { Ok(()) } else { Err(format!("{all:#?}")) }
    })
    .await;
}

/// One object of the API server in this encoding.
async fn sent(client: &Client, path: &str, accept: &str) -> Vec<u8> {
    let request =
        http::Request::get(path).header(http::header::ACCEPT, accept).body(kube::client::Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.headers()[http::header::CONTENT_TYPE], accept);
    http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes().to_vec()
}

/// One and the same version of an object, as JSON and in protobuf: controllers write to it meanwhile.
async fn in_both(client: &Client, path: &str) -> [Vec<u8>; 2] {
    let (json, protobuf) = ("application/json", "application/vnd.kubernetes.protobuf");
    eventually(PATIENT, "nobody changes it between two answers", async || {
        let before = sent(client, path, json).await;
        let binary = sent(client, path, protobuf).await;
        if sent(client, path, json).await == before { Ok([before, binary]) } else { Err("changed") }
    })
    .await
}

fn same<T: DeserializeOwned + Debug>(json: &[u8], protobuf: &[u8]) {
    let read = |text: &[u8]| format!("{:#?}", serde_json::from_slice::<T>(text).unwrap());
    assert_eq!(read(&object(protobuf).unwrap()), read(json));
}

#[tokio::test]
async fn pods_and_nodes_are_read_from_protobuf_as_from_json() {
    let plane = ControlPlane::own(ControlPlane::start).await;
    let (plain, ours) = (plane.client().await, ours(&plane).await);
    make_namespace(&plain, NAMESPACE, &json!({})).await;
    let pods: Api<core::Pod> = Api::namespaced(plain.clone(), NAMESPACE);
    let nodes: Api<core::Node> = Api::all(plain.clone());
    let post = PostParams::default();
    let least = json!({
        "metadata": { "generateName": "least-", "namespace": NAMESPACE, "labels": { "encodings": "both" } },
        "spec": { "containers": [{ "name": "c", "image": "x" }] },
    });
    for pod in [whole(), least] {
        pods.create(&post, &typed(pod)).await.unwrap();
    }
    pods.patch_status("whole", &PatchParams::default(), &Patch::Merge(status())).await.unwrap();
    pods.delete("whole", &DeleteParams::default()).await.unwrap();
    let node = json!({
        "metadata": { "name": "n", "labels": { "encodings": "both", "rack": "r1" } },
        "spec": { "unschedulable": true, "taints": [{ "key": "k", "value": "v", "effect": "NoExecute" }, { "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }] },
        "status": {
            "allocatable": { "cpu": "64", "memory": "1000Mi", "example.com/gpu": "8" }, "capacity": { "cpu": "65" },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        },
    });
    nodes.create(&post, &typed(node)).await.unwrap();

    let [pod, pod_again] = in_both(&plain, &format!("/api/v1/namespaces/{NAMESPACE}/pods/whole")).await;
    same::<Pod>(&pod, &pod_again);
    same::<SchedulingPod>(&pod, &pod_again);
    let read: Value = serde_json::from_slice(&object(&pod_again).unwrap()).unwrap();
    assert!(read["metadata"]["deletionTimestamp"].is_string() && read["status"]["reason"] == "Evicted", "{read:#}");
    eventually(PATIENT, "the controller of nodes has written what it writes to each", async || {
        let node = nodes.get("n").await.map_err(|error| error.to_string())?;
        let written = node.metadata.annotations.is_some_and(|all| all.contains_key("node.alpha.kubernetes.io/ttl"));
        if written { Ok(()) } else { Err("no annotation".to_owned()) }
    })
    .await;
    let [node, node_again] = in_both(&plain, "/api/v1/nodes/n").await;
    same::<Node>(&node, &node_again);

    // Or else the two would be asked for one and the same.
    sent(&plain, "/api/v1/pods?watch=true&timeoutSeconds=1", "application/vnd.kubernetes.protobuf;stream=watch").await;
    let patch = PatchParams::default();
    let clients = [&plain, &ours];
    let change_pod = async |text: &str| {
        let change = Patch::Merge(json!({ "metadata": { "annotations": { "text": text } } }));
        pods.patch("whole", &patch, &change).await.unwrap();
    };
    let texts = ("quotes \", lines\n and \u{1f600}", "changed");
    told_alike::<Pod>(clients, POD, |pod| &mut pod.metadata.resource_version, texts, change_pod).await;
    let change_node = async |rack: &str| {
        let change = Patch::Merge(json!({ "metadata": { "labels": { "rack": rack } } }));
        nodes.patch("n", &patch, &change).await.unwrap();
    };
    told_alike::<Node>(clients, NODE, |node| &mut node.metadata.resource_version, ("r1", "r2"), change_node).await;
}
