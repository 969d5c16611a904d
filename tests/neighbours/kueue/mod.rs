//! Pods that Kueue queues, and rolegate holds: two gates on one pod, of two owners that know nothing of each other.

mod explore;
mod server;

use std::sync::{Arc, LazyLock};

use kube::Api;
use kube::api::{DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};

use crate::common::control_plane::Shared;
use crate::common::rolegate::rolegate_command;
use crate::common::stage::typed;
use crate::common::{ControlPlane, Group, PATIENT, Stage, eventually};

pub use server::KUEUE;

/// Kueue's gate on every pod that it queues, until their workload has its quota.
pub const ADMISSION: &str = "kueue.x-k8s.io/admission";
/// Its gate on every pod that it queues, until it knows whether it has a place for the pod.
pub const TOPOLOGY: &str = "kueue.x-k8s.io/topology";
/// By which an object says that it is queued.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// The queue of every namespace here.
pub const TEAM: &str = "team";

static PLANE: Shared = LazyLock::new(|| {
    let plane = Arc::new(ControlPlane::start_with_groups("kwok,lws", &[]));
    server::start(&plane, &json!({}));
    plane
});

/// A namespace on the control plane that all tests of this suite share, with a queue that lets so many pods be there at a time.
pub async fn stage(namespace: &str, quota: u32) -> Stage {
    let plane = tokio::task::spawn_blocking(|| PLANE.clone()).await.unwrap();
    let stage = Stage::on(plane, namespace).await;
    queue(&stage, quota, &json!({}));
    stage
}

/// A queue of the namespace, with a quota of pods. `flavor` is merged into the spec of its flavor.
pub fn queue(stage: &Stage, quota: u32, flavor: &Value) {
    let name = &stage.namespace;
    let api = "kueue.x-k8s.io/v1beta2";
    let mut flavor_spec = json!({ "nodeLabels": { "rolegate.dev/stage": name } });
    json_patch::merge(&mut flavor_spec, flavor);
    let quotas = json!([{ "name": name, "resources": [{ "name": "pods", "nominalQuota": quota }] }]);
    let objects = [
        json!({ "apiVersion": api, "kind": "ResourceFlavor", "metadata": { "name": name }, "spec": flavor_spec }),
        json!({
            "apiVersion": api, "kind": "ClusterQueue", "metadata": { "name": name },
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{ "coveredResources": ["pods"], "flavors": quotas }],
            },
        }),
        json!({
            "apiVersion": api, "kind": "LocalQueue", "metadata": { "name": TEAM, "namespace": name },
            "spec": { "clusterQueue": name },
        }),
    ];
    for object in objects {
        stage.plane.must(&["create", "-f", "-"], &object.to_string());
    }
}

/// Creates the StatefulSets of a group, queued.
pub async fn create_queued_sets(stage: &Stage, group: &Group) {
    for role in &group.roles {
        let mut set = group.set(role, &stage.namespace);
        set["metadata"]["labels"] = json!({ QUEUE: TEAM });
        let sets = stage.api::<k8s_openapi::api::apps::v1::StatefulSet>();
        sets.create(&PostParams::default(), &typed(set)).await.unwrap();
    }
}

/// What Kueue has made of what is queued.
pub fn workloads(stage: &Stage) -> Api<DynamicObject> {
    stage.objects("kueue.x-k8s.io", "v1beta2", "Workload")
}

/// What a command of rolegate prints.
pub async fn printed(stage: &Stage, command: &[&str]) -> String {
    let command = [command, &["-n", &stage.namespace]].concat();
    let printed = rolegate_command(&stage.plane.kubeconfig, &command).output().await.unwrap();
    String::from_utf8_lossy(&[printed.stdout, printed.stderr].concat()).into_owned()
}
