//! `rolegate uninstall`: no pod is held afterwards, no finalizer is left, and nothing of ours.

use kube::core::{ApiResource, GroupVersionKind};
use rolegate::api::provisioning::CAPACITY_BUFFER;
use rolegate::model::names::{REQUEST, TOPOLOGY_FINALIZER, USER_PARTITION};

use crate::common::control_plane::kubernetes;
use crate::common::group::pod_template;
use crate::common::prelude::*;
use crate::lifecycle::rolegate;
use crate::policies::cluster::{define, loose_definition};

/// Names of what is ours in the cluster.
fn left(plane: &ControlPlane, name: &str) -> String {
    let ours = |kind: &str, names: &[&str]| {
        let found = plane.must(&[&["get", kind, "-n", SYSTEM, "-o", "name", "--ignore-not-found"], names].concat(), "");
        found.trim().to_owned()
    };
    let secret = format!("{name}-certificates");
    [
        ours("mutatingwebhookconfiguration", &[name]),
        ours("validatingwebhookconfiguration", &[name]),
        ours("deployment", &[name]),
        ours("lease", &[name]),
        ours("secret", &[&secret]),
    ]
    .concat()
}

fn topologies(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("rolegate.dev", "v1alpha1", "ClusterTopology");
    Api::all_with(stage.client.clone(), &ApiResource::from_gvk(&kind))
}

#[tokio::test]
async fn the_shipped_files_go_as_they_came() {
    let plane = ControlPlane::own(ControlPlane::start).await;
    let base = format!("{}/deploy/base", env!("CARGO_MANIFEST_DIR"));
    // Twice: an object may come before its definition is established.
    plane.kubectl(&["apply", "--server-side", "-k", &base], "");
    plane.must(&["apply", "--server-side", "-k", &base], "");
    plane.until_defined();

    // Nothing runs here: that is found, and nothing is wrong with the files.
    let expected = ["endpoint", "ca-bundle", "admission", "leader"];
    eventually(PATIENT, &format!("errors {expected:?}"), async || {
        let seen = ran(&plane.kubeconfig, &["doctor", "-o", "json"]).await;
        let findings = seen.json()["findings"].as_array().unwrap().clone();
        let bad = findings.iter().filter(|finding| ["error", "warning"].contains(&finding["level"].as_str().unwrap()));
        let mut ids: Vec<_> = bad.map(|finding| finding["check"].as_str().unwrap().to_owned()).collect();
        ids.dedup();
        if ids == expected { Ok(()) } else { Err(seen.out) }
    })
    .await;

    let done = ran(&plane.kubeconfig, &["uninstall", "--yes"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(left(&plane, "rolegate"), "");
    plane.must(&["delete", "--ignore-not-found", "-k", &base], "");
    let ours = plane.must(&["get", "crd,clusterrole,clusterrolebinding,namespace", "-o", "name"], "");
    assert!(!ours.contains("rolegate"), "{ours}");
}

/// Makes a request for nodes.
pub async fn request_for_nodes(stage: &Stage, plane: &ControlPlane) -> kube::Api<DynamicObject> {
    let kind = CAPACITY_BUFFER;
    let defined = (kind.group, &[kind.version][..], kind.kind, kind.plural, "Namespaced");
    define(plane, &loose_definition(defined, &json!({})).to_string());
    let buffers = stage.objects(kind.group, kind.version, kind.kind);
    let mut buffer = object(&kind.api_version(), kind.kind, "asks").spec(json!({ "replicas": 3 }));
    buffer["metadata"]["labels"] = json!({ (REQUEST): "asks" });
    let create = async || buffers.create(&PostParams::default(), &typed(buffer.clone())).await;
    eventually(PATIENT, "a buffer", create).await;
    buffers
}

#[tokio::test]
async fn nothing_is_held_after_it() {
    let plane = ControlPlane::own_with_groups().await;
    let stage = Stage::on(plane.clone(), "uninstall").await.with_room(18).await;
    let launch = stage.launch();
    let running = launch.start().await;
    stage.deploy(&Group::three_segments()).await;
    stage.pods.until("the first segment runs", |now| now.count_all(Pod::is_scheduled) == 6).await;
    stage.pods.until("the others wait", |now| now.count_all(Pod::is_held) == 12).await;
    let topology = object("rolegate.dev/v1alpha1", "ClusterTopology", "racks")
        .spec(json!({ "layers": [{ "name": "host", "key": "kubernetes.io/hostname" }] }));
    topologies(&stage).create(&PostParams::default(), &typed(topology)).await.unwrap();
    let finalizers = async || topologies(&stage).get("racks").await.unwrap().metadata.finalizers.unwrap_or_default();
    let is_protected = |all: &Vec<String>| all.iter().any(|one| one == TOPOLOGY_FINALIZER);
    until_found("a topology with our finalizer", finalizers, is_protected).await;
    let buffers = request_for_nodes(&stage, &plane).await;
    // A rollout in the middle: frozen, and its user asked for partition 3.
    let frozen = json!({
        "metadata": { "annotations": { (USER_PARTITION): "3" } },
        "spec": { "updateStrategy": { "rollingUpdate": { "partition": 2_147_483_647 } } },
    });
    stage.patch::<StatefulSet>("llm-decode", &frozen).await;

    // The API server holds pods by itself, too, where it can.
    let holds = kubernetes().is_none_or(|version| version.as_str() >= "1.36");
    if holds {
        let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/policies/hold.yaml");
        plane.must(&["apply", "-f", policy], "");
    }
    plane.must(&["label", "namespace", "uninstall", "rolegate.dev/hold=always"], "");

    // While one runs that we cannot end, nothing is touched.
    let refused = rolegate(&stage, &["uninstall", "--yes"]).await;
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("a rolegate still runs"), "{refused:?}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 12, "{now}"));

    // One that runs as a Deployment is ended by it; here its process ends when the Deployment is gone.
    let labels = json!({ "app": "rolegate" });
    let template = pod_template(&labels, "none");
    let spec = json!({ "replicas": 0, "selector": { "matchLabels": labels }, "template": template });
    let deployment = json!({ "metadata": { "name": stage.namespace }, "spec": spec });
    let deployments: Api<Deployment> = Api::namespaced(stage.client.clone(), SYSTEM);
    deployments.create(&PostParams::default(), &typed(deployment)).await.unwrap();
    let listed = rolegate(&stage, &["uninstall", "--dry-run", "-o", "json"]).await.json();
    let items = listed["items"].as_array().unwrap();
    let count = |action: &str| items.iter().filter(|item| item["action"] == action).count();
    let counts = ["delete", "release", "thaw", "unprotect"].map(count);
    assert_eq!(counts, [if holds { 8 } else { 6 }, 12, 1, 1], "{listed}");
    let unasked = rolegate(&stage, &["uninstall"]).await;
    assert_eq!((unasked.code, left(&plane, "uninstall").is_empty()), (1, false), "{unasked:?}");

    let ends = async {
        let left = async || deployments.get_opt(&stage.namespace).await.unwrap();
        until_found("the Deployment gone", left, Option::is_none).await;
        running.terminate().await
    };
    let (done, _) = tokio::join!(rolegate(&stage, &["uninstall", "--yes"]), ends);
    assert_eq!(done.code, 0, "{done:?}");
    stage.pods.until("no pod is held", |now| now.count_all(Pod::is_held) == 0).await;
    stage.pods.until("all pods run", |now| now.count_all(Pod::is_scheduled) == 18).await;
    let set = stage.api::<StatefulSet>().get("llm-decode").await.unwrap();
    assert!(!set.metadata.annotations.unwrap_or_default().contains_key(USER_PARTITION));
    let update = set.spec.unwrap().update_strategy.unwrap().rolling_update.unwrap();
    assert_eq!(update.partition, Some(3));
    assert_eq!(left(&plane, "uninstall"), "");
    assert!(buffers.get_opt("asks").await.unwrap().is_none());
    let late = stage.create(Group::three_segments().pod("prefill", "late", "uninstall")).await;
    assert_eq!(late.data["spec"]["schedulingGates"], Value::Null, "somebody still holds pods");
    topologies(&stage).delete("racks", &DeleteParams::default()).await.unwrap();
    let left = async || topologies(&stage).get_opt("racks").await.unwrap();
    until_found("the topology gone", left, Option::is_none).await;
    let again = rolegate(&stage, &["uninstall", "--yes"]).await;
    assert_eq!((again.code, again.out.as_str()), (0, "rolegate is not installed\n"));
}
