//! The writer: releases pods, sets partitions, writes the status of groups. Sibling modules write other objects.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::api::pod::POD;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::status::GroupStatus;
use crate::api::workload::{STATEFUL_SET, StatefulSet};
use crate::api::{ObjectKind, Pod, RoleBasedGroup, RoleCoordination};
use crate::cluster::failure::unless;
use crate::cluster::index::{CarrierObject, SeenWorkload};
use crate::cluster::objects::{Objects, api};
use crate::cluster::watch::sources::{read_coordination, read_rbg};
use crate::cluster::watch::watched::Guarded;
use crate::cluster::write::deadline::{Unfinished, within};
use crate::model::workload_object::WithType;
use crate::model::{
    Group, MemberKey, Queued, RolledWorkload, ScaledWorkload, WorkloadKey, WorkloadObject, names, pinned,
};
use crate::mutate::Entry;
pub use crate::mutate::rollout::MANAGER;
use crate::mutate::rollout::partition_patch;
use crate::plan::marks::Mark;
use crate::plan::{MemberEdit, Pin, PodRef};

#[derive(Clone)]
pub struct Writer {
    pub(super) client: Client,
    pub(super) timeout: Duration,
}

#[derive(Debug)]
pub enum Written {
    /// The status is stored; the current object, where it can be read.
    Done(Option<CarrierObject>),
    /// The object was changed since it was read, or another one has its name.
    Conflict,
    /// The object is gone, or its kind is not served.
    Gone,
}

impl Writer {
    /// Returns a writer with this client; `timeout` limits each operation.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self { client, timeout }
    }

    /// Runs an operation within the time limit. Every write is awaited through it.
    pub async fn in_time<T, E: From<Unfinished>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        within(self.timeout, work).await
    }

    /// Returns the objects of a kind without a Rust type.
    pub(super) fn dynamic(&self, kind: ObjectKind, namespace: Option<&str>) -> Objects<DynamicObject> {
        api(&self.client, kind, namespace)
    }

    fn pods(&self, namespace: &str) -> Objects<Pod> {
        api(&self.client, POD, Some(namespace))
    }

    /// Releases a pod by such a patch as [`release_patch`] returns. Returns the current pod; `None` when it is gone, or another
    /// one has its name.
    pub async fn release(&self, namespace: &str, pod: &PodRef, patch: Value) -> kube::Result<Option<Pod>> {
        self.patch_pod(namespace, pod, &Patch::Strategic(patch)).await
    }

    async fn patch_pod(&self, namespace: &str, pod: &PodRef, patch: &Patch<Value>) -> kube::Result<Option<Pod>> {
        released(self.pods(namespace).patch(&pod.name, &params(), patch).await)
    }

    /// Releases a pod of which only the name and uid are known: it is read before.
    pub async fn release_unseen(&self, namespace: &str, pod: &PodRef) -> kube::Result<Option<Pod>> {
        let Some(found) = self.pods(namespace).find(&pod.name).await? else { return Ok(None) };
        let patch = release_patch(pod, ReleaseEdits { queued: Queued::of(&found), ..ReleaseEdits::default() });
        self.release(namespace, pod, patch).await
    }

    /// Deletes a pod if it has no node and has a controller that makes it again; returns false when it may not be deleted.
    /// The precondition is the version that was read: a pod that is bound meanwhile stays.
    pub async fn delete_without_node(&self, namespace: &str, pod: &PodRef) -> kube::Result<bool> {
        let pods = self.pods(namespace);
        let Some(found) = pods.find(&pod.name).await? else { return Ok(true) };
        let meta = &found.metadata;
        if meta.uid.as_deref() != Some(&*pod.uid) || meta.is_deleting() {
            return Ok(true);
        }
        // A pod with gates of others waits for them, not for the scheduler.
        let waits_for_others =
            !found.has_gate(names::GATE) && found.spec.scheduling_gates.iter().flatten().next().is_some();
        if found.spec.node_name.is_some() || waits_for_others || meta.controller().is_none() {
            return Ok(false);
        }
        let preconditions = Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        let deleted = pods.delete(&pod.name, &DeleteParams::default().preconditions(preconditions)).await;
        // A pod that was changed meanwhile is checked again later.
        Ok(unless(&[409], unless(&[404], deleted))?.is_some())
    }

    /// Deletes a pod by uid, whatever its state. `with_dependents` deletes its dependents first, so that its successor finds
    /// none.
    pub async fn delete(&self, namespace: &str, pod: &PodRef, with_dependents: bool) -> kube::Result<()> {
        let params = if with_dependents { DeleteParams::foreground() } else { DeleteParams::default() };
        let deleted = self.pods(namespace).delete(&pod.name, &params.preconditions(only(pod.uid.to_string()))).await;
        // With 409 another pod has its name: this one is gone.
        unless(&[404, 409], deleted).map(drop)
    }

    /// Writes the status of a group if the object was not changed since it was read.
    pub async fn write_status(&self, group: &Group, status: &GroupStatus) -> kube::Result<Written> {
        let carrier = &group.carrier;
        let patch = Patch::Merge(status_patch(group, status));
        let (kind, namespace, name) = (carrier.kind, Some(&*group.key.namespace), &carrier.name);
        written(if kind == ROLE_COORDINATION {
            let objects: Objects<Guarded<RoleCoordination>> = api(&self.client, kind, namespace);
            objects.patch_status(name, &params(), &patch).await.map(|written| read_coordination(&written))
        } else {
            let objects: Objects<Guarded<RoleBasedGroup>> = api(&self.client, kind, namespace);
            objects.patch_status(name, &params(), &patch).await.map(|written| read_rbg(kind, &written))
        })
    }
}

/// What a release changes of a pod, beside its gate.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReleaseEdits<'a> {
    pub labels: &'a [Entry],
    pub pod_groups: &'a [MemberEdit],
    /// The domain or node that the pod is bound to.
    pub pin: Option<&'a Pin>,
    pub queued: Queued,
    /// The ProvisioningRequest whose nodes the pod takes, and its class.
    pub consumes: Option<&'a (String, String)>,
}

/// Returns the strategic merge patch that removes the gate of a pod, adds labels, puts it into its PodGroup, and pins it to
/// nodes; it contains the pod's uid. It names the gate, so other gates stay, no index goes stale, and a retry changes nothing.
/// It also ends the wait of Kueue for rolegate, and names the ProvisioningRequest, with its class, whose nodes the pod takes.
pub fn release_patch(pod: &PodRef, edits: ReleaseEdits<'_>) -> Value {
    let ReleaseEdits { labels, pod_groups, pin, queued, consumes } = edits;
    let pin = pin.filter(|pin| !pin.is_empty());
    let mut labels: Map<_, _> = labels.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
    let recorded = pin.map(|pin| (names::PINNED.to_owned(), json!(pinned::text(pin))));
    let ungated = (queued == Queued::AfterUs).then(|| (names::KUEUE_GATED_BY.to_owned(), Value::Null));
    let request = consumes.into_iter().flat_map(|(request, class)| {
        [(names::CONSUME_REQUEST.to_owned(), json!(request)), (names::REQUEST_CLASS.to_owned(), json!(class))]
    });
    let mut annotations: Map<_, _> = recorded.into_iter().chain(ungated).chain(request).collect();
    for (key, name) in pod_groups {
        let beside = key.beside().map(|(key, value)| (key.to_owned(), json!(name.as_ref().map(|_| value))));
        annotations.extend(beside);
        let fields = if matches!(key, MemberKey::Label(_)) { &mut labels } else { &mut annotations };
        fields.insert(key.as_str().to_owned(), json!(name));
    }
    let gate = json!({ "$patch": "delete", "name": names::GATE });
    let mut metadata = json!({ "uid": &*pod.uid, "labels": labels, "annotations": annotations });
    let mut spec = json!({ "schedulingGates": [gate], "nodeSelector": pin });
    for fields in [&mut metadata, &mut spec].into_iter().filter_map(Value::as_object_mut) {
        fields.retain(|_, value| *value != json!({}) && !value.is_null());
    }
    json!({ "metadata": metadata, "spec": spec })
}

/// Returns the JSON Merge Patch of a group's status. It applies only to the version that was read.
pub fn status_patch(group: &Group, status: &GroupStatus) -> Value {
    let carrier = &group.carrier;
    json!({
        "metadata": { "resourceVersion": carrier.resource_version, "uid": carrier.uid },
        "status": merge_patch(&to_value(&group.status), &to_value(status)),
    })
}

/// Interprets the answer to the patch of a pod: `None` when the pod is gone, or another one has its name.
pub fn released(answer: kube::Result<Pod>) -> kube::Result<Option<Pod>> {
    match answer {
        Err(kube::Error::Api(status)) if is_other_uid(&status) => Ok(None),
        answer => unless(&[404], answer),
    }
}

/// Interprets the answer to a status write. The object is `None` when the answer cannot be read.
pub fn written(answer: kube::Result<Option<CarrierObject>>) -> kube::Result<Written> {
    match answer {
        Ok(object) => Ok(Written::Done(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Written::Gone),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Written::Conflict),
        Err(error) => Err(error),
    }
}

impl Writer {
    /// Sets the partition of a workload, if it takes one, and if it was not changed since it was read. At the end of a rollout
    /// the annotation with the user's partition is removed as well. Returns the current workload; `None` where it was changed,
    /// or is not (yet) in the expected state.
    pub async fn set_partition(
        &self,
        workload: &RolledWorkload,
        partition: u32,
        ends: bool,
    ) -> kube::Result<Option<SeenWorkload>> {
        let version = json!({ "resourceVersion": workload.resource_version, "uid": &*workload.uid });
        let partition = Some(partition).filter(|_| workload.takes_partition);
        let Some(patch) = partition_patch(workload.key.kind, partition, ends, version) else { return Ok(None) };
        if ends && !self.leaders_are_at(workload).await? {
            return Ok(None);
        }
        let (client, key) = (&self.client, &workload.key);
        let patched = key.kind.with_type(PatchWorkload { client, key, patch: Patch::Merge(patch) }).await;
        unless(&[404, 409], patched)
    }

    /// Scales a workload; returns its current version, or `None` when it was changed since it was read, or is gone.
    pub async fn scale(&self, workload: &ScaledWorkload, replicas: u32) -> kube::Result<Option<String>> {
        let key = &workload.key;
        let patch = json!({
            "metadata": { "resourceVersion": workload.resource_version, "uid": &*workload.uid },
            "spec": { "replicas": replicas },
        });
        let workloads = self.dynamic(key.kind.object_kind(), Some(&key.namespace));
        let scaled = workloads.patch_scale(&key.name, &params(), &Patch::Merge(patch)).await;
        Ok(unless(&[404, 409], scaled)?.map(|scale| scale.metadata.resource_version.unwrap_or_default()))
    }

    /// Adds and removes labels of a pod, and sets its deletion cost.
    pub async fn mark(&self, namespace: &str, mark: &Mark) -> kube::Result<Option<Pod>> {
        self.patch_pod(namespace, &mark.pod, &Patch::Merge(mark_patch(mark))).await
    }

    /// Reports whether the leaders of a LeaderWorkerSet have its update revision, by a live read. The revision stands on
    /// another object, whose watch may be behind: a rollout that looks finished may not have begun.
    async fn leaders_are_at(&self, workload: &RolledWorkload) -> kube::Result<bool> {
        let RolledWorkload { key, update_revision, .. } = workload;
        if key.kind.row().made_by.is_none() || update_revision.is_none() {
            return Ok(true);
        }
        let sets: Objects<StatefulSet> = api(&self.client, STATEFUL_SET, Some(&key.namespace));
        let leaders = sets.get_opt(&key.name).await?;
        Ok(leaders.as_ref().and_then(WorkloadObject::leaders_at) == update_revision.as_deref())
    }
}

/// Returns the JSON Merge Patch of a pod's labels and deletion cost; it contains the pod's uid.
pub fn mark_patch(mark: &Mark) -> Value {
    let labels: Map<_, _> = mark.labels.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
    let mut metadata = json!({ "uid": &*mark.pod.uid, "labels": labels });
    if let (Some(cheapest), Some(metadata)) = (mark.cheapest, metadata.as_object_mut()) {
        let cost = cheapest.then(|| i32::MIN.to_string());
        metadata.insert("annotations".to_owned(), json!({ names::DELETION_COST: cost }));
    }
    json!({ "metadata": metadata })
}

/// Patches a workload, and reads the answer as its type.
struct PatchWorkload<'a> {
    client: &'a Client,
    key: &'a WorkloadKey,
    patch: Patch<Value>,
}

impl<'a> WithType for PatchWorkload<'a> {
    type Output = BoxFuture<'a, kube::Result<SeenWorkload>>;

    fn of<T: WorkloadObject>(self) -> Self::Output {
        let workloads = api::<T>(self.client, T::KIND.object_kind(), Some(&self.key.namespace));
        async move {
            let patched = workloads.patch(&self.key.name, &params(), &self.patch).await?;
            Ok(SeenWorkload::of(&patched))
        }
        .boxed()
    }
}

/// Returns the condition that an object has this uid.
pub(super) fn only(uid: String) -> Preconditions {
    Preconditions { uid: Some(uid), resource_version: None }
}

pub(crate) fn params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Reports whether a patch was refused because the pod is another one: it would change the immutable uid.
fn is_other_uid(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns the JSON Merge Patch (RFC 7386) that turns `before` into `after`; removed fields become `null`.
fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let removed = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(value)).map(|(key, value)| {
        let patch = before.get(key).map_or_else(|| value.clone(), |old| merge_patch(old, value));
        (key.clone(), patch)
    });
    Value::Object(removed.chain(changed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_takes_our_word_from_kueue_where_it_was_given() {
        let pod = PodRef { name: "a".into(), uid: "1".into() };
        let edits = |queued| ReleaseEdits { queued, ..ReleaseEdits::default() };
        let metadata = |queued| release_patch(&pod, edits(queued))["metadata"].clone();
        assert_eq!(metadata(Queued::AfterUs), json!({ "uid": "1", "annotations": { names::KUEUE_GATED_BY: null } }));
        // A value of the user stays.
        assert_eq!(metadata(Queued::Waits), json!({ "uid": "1" }));
    }

    #[test]
    fn a_release_puts_a_pod_into_its_pod_group_and_takes_it_out_of_that_of_another_scheduler() {
        let pod = PodRef { name: "a".into(), uid: "1".into() };
        let [kube, volcano, kai] = [
            MemberKey::Label(names::KUBE_POD_GROUP),
            MemberKey::Annotation(names::VOLCANO_POD_GROUP),
            MemberKey::Annotation(names::KAI_POD_GROUP),
        ];
        let metadata = |pod_groups: &[MemberEdit]| {
            release_patch(&pod, ReleaseEdits { pod_groups, ..ReleaseEdits::default() })["metadata"].clone()
        };
        let to_kai = metadata(&[(kube, None), (kai, Some("ns.pd-c-0".to_owned()))]);
        let annotations = json!({ names::KAI_POD_GROUP: "ns.pd-c-0", names::KAI_SKIP_PODGROUPER: "true" });
        assert_eq!(
            to_kai,
            json!({ "uid": "1", "labels": { names::KUBE_POD_GROUP: null }, "annotations": annotations })
        );
        let to_volcano = metadata(&[(volcano, Some("pd-c-0".to_owned())), (kai, None)]);
        let annotations = json!({
            names::VOLCANO_POD_GROUP: "pd-c-0", names::KAI_POD_GROUP: null, names::KAI_SKIP_PODGROUPER: null,
        });
        assert_eq!(to_volcano, json!({ "uid": "1", "annotations": annotations }));
    }

    #[test]
    fn a_release_records_what_it_writes_into_the_node_selector() {
        let pod = PodRef { name: "a".into(), uid: "1".into() };
        let pin = Pin::from([("rack".to_owned(), "r1".to_owned())]);
        let consumes = ("pd-s-0-1".to_owned(), "atomic".to_owned());
        let (pin, consumes, queued) = (Some(&pin), Some(&consumes), Queued::AfterUs);
        let patch = release_patch(&pod, ReleaseEdits { pin, queued, consumes, ..ReleaseEdits::default() });
        let annotations = json!({
            names::KUEUE_GATED_BY: null, names::PINNED: "rack=r1",
            names::CONSUME_REQUEST: "pd-s-0-1", names::REQUEST_CLASS: "atomic",
        });
        assert_eq!(patch["metadata"], json!({ "uid": "1", "annotations": annotations }));
        assert_eq!(patch["spec"]["nodeSelector"], json!({ "rack": "r1" }));
    }

    #[test]
    fn a_merge_patch_names_what_changed_and_what_vanished() {
        let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]});
        let after = json!({"a": 1, "b": {"c": 3}, "f": 4});
        assert_eq!(merge_patch(&before, &after), json!({"b": {"c": 3, "d": null}, "e": null, "f": 4}));
    }
}
