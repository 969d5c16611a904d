//! Pods that Kueue queues, and rolegate holds: two gates on one pod, of two owners that know nothing of each other.

mod gates;
mod quota;
mod server;
mod topology;

use std::sync::LazyLock;

use crate::common::prelude::*;

pub use server::KUEUE;

/// Kueue's gate on every pod that it queues, until their workload has its quota.
pub const ADMISSION: &str = "kueue.x-k8s.io/admission";
/// Its gate on every pod that it queues, until it knows whether it has a place for the pod.
pub const TOPOLOGY: &str = "kueue.x-k8s.io/topology";
/// By which an object says that it is queued.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// The queue of every namespace here.
pub const TEAM: &str = "team";

static PLANE: LazyLock<Arc<ControlPlane>> = LazyLock::new(|| started(&json!({})));

fn started(settings: &Value) -> Arc<ControlPlane> {
    let plane = Arc::new(ControlPlane::start_with_groups("kwok,lws", &[]));
    server::start(&plane, settings);
    plane
}

/// A control plane with a Kueue of its own, whose configuration has these settings as well.
pub async fn start(settings: &Value) -> Arc<ControlPlane> {
    let settings = settings.clone();
    tokio::task::spawn_blocking(move || started(&settings)).await.unwrap()
}

/// The control plane that all tests of this suite share.
pub async fn plane() -> Arc<ControlPlane> {
    tokio::task::spawn_blocking(|| PLANE.clone()).await.unwrap()
}

/// A namespace on it, with a queue that lets so many pods be there at a time.
pub async fn stage(namespace: &str, quota: u32) -> Stage {
    let stage = Stage::on(plane().await, namespace).await;
    queue(&stage, quota, &json!({}));
    stage
}

/// A queue of the namespace, with a quota of pods. `flavor` is merged into the spec of its flavor.
pub fn queue(stage: &Stage, quota: u32, flavor: &Value) {
    queue_of(stage, ("pods", quota), flavor);
}

/// The same with a quota of another resource.
pub fn queue_of(stage: &Stage, (resource, quota): (&str, u32), flavor: &Value) {
    let name = &stage.namespace;
    let api = "kueue.x-k8s.io/v1beta2";
    let mut flavor_spec = json!({ "nodeLabels": { "rolegate.dev/stage": name } });
    json_patch::merge(&mut flavor_spec, flavor);
    let quotas = json!([{ "name": name, "resources": [{ "name": resource, "nominalQuota": quota }] }]);
    let group = json!({ "coveredResources": [resource], "flavors": quotas });
    let objects = [
        object(api, "ResourceFlavor", name).spec(flavor_spec),
        object(api, "ClusterQueue", name).spec(json!({ "namespaceSelector": {}, "resourceGroups": [group] })),
        object(api, "LocalQueue", TEAM)
            .with(&json!({ "metadata": { "namespace": name }, "spec": { "clusterQueue": name } })),
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
        stage.create(set).await;
    }
}

/// Sets the quota of the queue.
pub fn set_quota(stage: &Stage, pods: u32) {
    let quota = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota";
    let patch = json!([{ "op": "replace", "path": quota, "value": pods }]).to_string();
    stage.plane.must(&["patch", "clusterqueue", &stage.namespace, "--type=json", "-p", &patch], "");
}

/// Takes everything down that the queue has let go.
pub fn drain(stage: &Stage) {
    stop(stage, "HoldAndDrain");
}

/// Opens the queue again.
pub fn resume(stage: &Stage) {
    stop(stage, "None");
}

fn stop(stage: &Stage, policy: &str) {
    let patch = json!({ "spec": { "stopPolicy": policy } }).to_string();
    stage.plane.must(&["patch", "clusterqueue", &stage.namespace, "--type=merge", "-p", &patch], "");
}

/// True for a pod that Kueue has not let go.
pub fn is_in_queue(pod: &Pod) -> bool {
    pod.gates.iter().any(|gate| gate == ADMISSION || gate == TOPOLOGY)
}

/// Waits until so many of Kueue's workloads have a quota, and no more.
pub async fn until_admitted(stage: &Stage, wanted: usize) {
    let is_admitted = |workload: &DynamicObject| {
        let conditions = workload.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Admitted" && condition["status"] == "True")
    };
    let admitted = async || workloads(stage).await.into_iter().filter(is_admitted).count();
    until_is("workloads with a quota", admitted, wanted).await;
}

/// Waits until there are so many of Kueue's workloads.
pub async fn until_workloads(stage: &Stage, wanted: usize) {
    until_is("workloads", async || workloads(stage).await.len(), wanted).await;
}

/// What `rolegate explain` says of a pod.
pub async fn explain(stage: &Stage, pod: &str) -> String {
    stage.said(&["explain", "pod", pod]).await
}

/// What Kueue has made of what is queued.
async fn workloads(stage: &Stage) -> Vec<DynamicObject> {
    stage.objects("kueue.x-k8s.io", "v1beta2", "Workload").list(&ListParams::default()).await.unwrap().items
}
