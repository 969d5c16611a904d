//! What operators were seen to do, each by its name in README.md.

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PropagationPolicy;

use super::operator::World;
use crate::common::prelude::*;

/// Something that an operator does over and over.
pub struct Habit {
    pub name: &'static str,
    /// One turn: how many of its writes were taken.
    pub turn: for<'a> fn(&'a World) -> BoxFuture<'a, Turn>,
}

pub type Turn = Result<u32, kube::Error>;

/// The gate that Grove gives its pods.
pub const GATE_OF_GROVE: &str = "grove.io/podgang-pending-creation";

/// Every operator: what it wants and does not find, it makes.
pub static SETS_MADE: Habit = Habit { name: "sets-made", turn: |world| Box::pin(sets_made(world)) };
/// The same of pods that it makes itself.
pub static PODS_MADE: Habit = Habit { name: "pods-made", turn: |world| Box::pin(pods_made(world)) };
/// A StatefulSet with an annotation that it has not written is one that was edited: it is written anew, with the partition
/// at which a rollout begins.
pub static ANNOTATIONS_COMPARED: Habit =
    Habit { name: "annotations-compared", turn: |world| Box::pin(annotations_compared(world)) };
/// It has a rollout of its own, and asks for the partitions of its next steps.
pub static PARTITION_STEPPED: Habit =
    Habit { name: "partition-stepped", turn: |world| Box::pin(partition_stepped(world)) };
/// Labels of a StatefulSet that it has not written go.
pub static SET_LABELS_RESET: Habit =
    Habit { name: "set-labels-reset", turn: |world| Box::pin(set_labels_reset(world)) };
/// A StatefulSet with another template is deleted without its pods, and made anew.
pub static SET_MADE_ANEW: Habit = Habit { name: "set-made-anew", turn: |world| Box::pin(set_made_anew(world)) };
/// When it lifts its gate, it sets the whole list of gates to nothing.
pub static GATES_CLEARED: Habit = Habit { name: "gates-cleared", turn: |world| Box::pin(gates_cleared(world)) };
/// It lifts its gate by a list of all others, as it has read them; of a scaled gang when all pods of its base have nodes.
pub static GATES_LISTED: Habit = Habit { name: "gates-listed", turn: |world| Box::pin(gates_listed(world)) };
/// Labels and annotations of a pod that it has not written go.
pub static POD_LABELS_RESET: Habit =
    Habit { name: "pod-labels-reset", turn: |world| Box::pin(pod_labels_reset(world)) };
/// It keeps a condition `Ready` of its own in the status of its group.
pub static READY_KEPT: Habit = Habit { name: "ready-kept", turn: |world| Box::pin(ready_kept(world)) };
/// It writes the whole status of its group by a type that knows its own fields alone.
pub static STATUS_REPLACED: Habit = Habit { name: "status-replaced", turn: |world| Box::pin(status_replaced(world)) };

fn by(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The image of a workload's only container.
fn image(set: &Value) -> &Value {
    &set["spec"]["template"]["spec"]["containers"][0]["image"]
}

/// A StatefulSet as it is, and as it is wanted.
async fn sets(world: &World) -> Result<Vec<(Option<StatefulSet>, Value)>, kube::Error> {
    let api = world.api::<StatefulSet>();
    let mut all = Vec::new();
    for wanted in world.wanted().sets {
        all.push((api.get_opt(name(&wanted)).await?, wanted));
    }
    Ok(all)
}

/// Those that are there.
async fn live_sets(world: &World) -> Result<Vec<(Value, Value)>, kube::Error> {
    let all = sets(world).await?.into_iter();
    Ok(all.filter_map(|(live, wanted)| Some((serde_json::to_value(live?).unwrap(), wanted))).collect())
}

async fn sets_made(world: &World) -> Turn {
    let mut writes = 0;
    for (live, wanted) in sets(world).await? {
        if live.is_none() {
            world.api::<StatefulSet>().create(&PostParams::default(), &typed(wanted)).await?;
            writes += 1;
        }
    }
    Ok(writes)
}

async fn pods_made(world: &World) -> Turn {
    let api = world.api::<Pod>();
    let mut writes = 0;
    for wanted in world.wanted().pods {
        if api.get_opt(name(&wanted)).await?.is_none() {
            api.create(&PostParams::default(), &typed(wanted)).await?;
            writes += 1;
        }
    }
    Ok(writes)
}

/// Keys that an operator does not take for foreign: `objectsEqual` of RBG leaves these out.
const UNCOMPARED: [&str; 3] =
    ["deployment.kubernetes.io/revision", "rolebasedgroup.workloads.x-k8s.io/", "app.kubernetes.io/"];

async fn annotations_compared(world: &World) -> Turn {
    let mut writes = 0;
    for (live, wanted) in live_sets(world).await? {
        let own = |key: &str| {
            UNCOMPARED.iter().any(|prefix| key.starts_with(prefix)) || !wanted["metadata"]["annotations"][key].is_null()
        };
        let annotations = live["metadata"]["annotations"].as_object();
        let foreign = annotations.into_iter().flatten().any(|(key, _)| !own(key));
        if foreign || image(&live) != image(&wanted) {
            let rolling =
                json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": live["spec"]["replicas"] } });
            let spec = json!({ "template": wanted["spec"]["template"], "updateStrategy": rolling });
            patch_set(world, &wanted, &json!({ "spec": spec })).await?;
            writes += 1;
        }
    }
    Ok(writes)
}

async fn partition_stepped(world: &World) -> Turn {
    let mut writes = 0;
    for (live, wanted) in live_sets(world).await? {
        let partition = &live["spec"]["updateStrategy"]["rollingUpdate"]["partition"];
        if image(&live) == image(&wanted) && partition.as_i64().is_some_and(|partition| partition > 0) {
            let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } });
            patch_set(world, &wanted, &json!({ "spec": { "updateStrategy": rolling } })).await?;
            writes += 1;
        }
    }
    Ok(writes)
}

async fn patch_set(world: &World, set: &Value, patch: &Value) -> Result<(), kube::Error> {
    world.api::<StatefulSet>().patch(name(set), &by("rbg"), &Patch::Strategic(patch)).await.map(drop)
}

async fn set_labels_reset(world: &World) -> Turn {
    let mut writes = 0;
    for (live, wanted) in live_sets(world).await? {
        let labels = live["metadata"]["labels"].as_object().into_iter().flatten();
        let foreign = labels.filter(|(key, _)| wanted["metadata"]["labels"][key].is_null());
        let gone: BTreeMap<_, _> = foreign.map(|(key, _)| (key.clone(), Value::Null)).collect();
        if !gone.is_empty() {
            patch_set(world, &wanted, &json!({ "metadata": { "labels": gone } })).await?;
            writes += 1;
        }
    }
    Ok(writes)
}

async fn set_made_anew(world: &World) -> Turn {
    let api = world.api::<StatefulSet>();
    let orphans = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    let mut writes = 0;
    for (live, wanted) in live_sets(world).await? {
        if image(&live) != image(&wanted) && live["metadata"]["deletionTimestamp"].is_null() {
            api.delete(name(&wanted), &orphans).await?;
            writes += 1;
        }
    }
    Ok(writes)
}

async fn patch_pod(world: &World, pod: &Pod, patch: Value) -> Result<(), kube::Error> {
    let name = pod.metadata.name.as_deref().unwrap();
    world.api::<Pod>().patch(name, &by("operator"), &Patch::Merge(patch)).await.map(drop)
}

/// All pods of the group that are not on their way out.
async fn pods(world: &World) -> Result<Vec<Pod>, kube::Error> {
    let all = world.api::<Pod>().list(&ListParams::default()).await?.items;
    Ok(all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
}

/// The gates of a pod, when its operator's is among them.
fn gates(pod: &Pod) -> Option<Vec<Value>> {
    let gates = pod.spec.as_ref()?.scheduling_gates.as_ref()?;
    gates.iter().any(|gate| gate.name == GATE_OF_GROVE).then(|| gates.iter().map(|gate| json!(gate)).collect())
}

/// All are tried: what is refused of one pod does not keep the others.
async fn gates_cleared(world: &World) -> Turn {
    let (mut writes, mut refused) = (0, None);
    for pod in pods(world).await?.iter().filter(|pod| gates(pod).is_some()) {
        match patch_pod(world, pod, json!({ "spec": { "schedulingGates": null } })).await {
            Ok(()) => writes += 1,
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if writes == 0 => Err(error),
        _ => Ok(writes),
    }
}

async fn gates_listed(world: &World) -> Turn {
    let all = pods(world).await?;
    let gang_of = |pod: &Pod, key: &str| pod.metadata.labels.as_ref()?.get(key).cloned();
    let has_node = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let is_scheduled =
        |gang: &Option<String>| all.iter().filter(|pod| gang_of(pod, "grove.io/podgang") == *gang).all(has_node);
    let mut writes = 0;
    for pod in &all {
        let Some(mut gates) = gates(pod) else { continue };
        let base = gang_of(pod, "grove.io/base-podgang");
        if base.is_some() && !is_scheduled(&base) {
            continue;
        }
        gates.retain(|gate| gate["name"] != GATE_OF_GROVE);
        patch_pod(world, pod, json!({ "spec": { "schedulingGates": gates } })).await?;
        writes += 1;
    }
    Ok(writes)
}

/// What the controllers of Kubernetes write on their own pods.
const OF_CONTROLLERS: [&str; 2] = ["apps.kubernetes.io/", "statefulset.kubernetes.io/"];

async fn pod_labels_reset(world: &World) -> Turn {
    let sets = world.wanted().sets;
    let templates: Vec<_> = sets.iter().map(|set| &set["spec"]["template"]["metadata"]).collect();
    let is_own = |field: &str, key: &str| {
        OF_CONTROLLERS.iter().any(|prefix| key.starts_with(prefix))
            || key == "controller-revision-hash"
            || templates.iter().any(|template| !template[field][key].is_null())
    };
    let mut writes = 0;
    for pod in pods(world).await? {
        let metadata = serde_json::to_value(&pod.metadata).unwrap();
        let foreign = |field: &str| {
            let entries = metadata[field].as_object().into_iter().flatten();
            let gone = entries.filter(|(key, _)| !is_own(field, key)).map(|(key, _)| (key.clone(), Value::Null));
            gone.collect::<BTreeMap<_, _>>()
        };
        let (labels, annotations) = (foreign("labels"), foreign("annotations"));
        if !(labels.is_empty() && annotations.is_empty()) {
            patch_pod(world, &pod, json!({ "metadata": { "labels": labels, "annotations": annotations } })).await?;
            writes += 1;
        }
    }
    Ok(writes)
}

fn own_ready() -> Value {
    json!({
        "type": "Ready",
        "status": "False",
        "reason": "RolesReady",
        "message": "0 of 2 roles",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// It reads what is there, writes all conditions with its own changed, and comes again when it was too late.
async fn ready_kept(world: &World) -> Turn {
    let found = world.groups().get(&world.group).await?;
    let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    if conditions.contains(&own_ready()) {
        return Ok(0);
    }
    let mut conditions: Vec<_> = conditions.into_iter().filter(|condition| condition["type"] != "Ready").collect();
    conditions.push(own_ready());
    let version = found.metadata.resource_version;
    let patch = json!({ "metadata": { "resourceVersion": version }, "status": { "conditions": conditions } });
    world.groups().patch_status(&world.group, &by("operator"), &Patch::Merge(patch)).await?;
    Ok(1)
}

async fn status_replaced(world: &World) -> Turn {
    let mut found = world.groups().get(&world.group).await?;
    let generation = found.metadata.generation;
    let own = json!({ "observedGeneration": generation, "roleStatuses": [], "conditions": [own_ready()] });
    if found.data["status"] == own {
        return Ok(0);
    }
    found.data["status"] = own;
    world.groups().replace_status(&world.group, &PostParams::default(), &found).await?;
    Ok(1)
}
