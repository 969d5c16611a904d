//! Writes the objects that the carrier of a group owns, PodGroups of batches in the API of each scheduler and the objects by which
//! nodes are requested, and the placement annotation of PodGroups that place their pods.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PostParams, TypeMeta};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::ObjectKind;
use crate::api::pod::POD;
use crate::api::pod_group::POD_GROUP;
use crate::api::provisioning::CAPACITY_BUFFER;
use crate::cluster::failure::unless;
use crate::cluster::objects::{self, Objects};
use crate::cluster::read::pod_groups::{TAKEN, stays};
use crate::cluster::write::writer::{Writer, only, params};
use crate::model::{GangTree, Group, Placement, PodGroupPolicy, names};
use crate::plan::BatchPodGroup;
use crate::plan::provision::entry::{Content, RequestObject, Sample};
use crate::plan::provision::template::template;
use crate::plan::reconcile::owned_memory::{FoundOwned, OwnedId};

impl Writer {
    /// Creates the PodGroup of a batch, owned by the carrier of the group. The members of an existing one only decrease,
    /// unless its batch is renewed. Returns false when the existing one has yet to go.
    pub async fn ensure_pod_group(&self, group: &Group, gang: &BatchPodGroup) -> kube::Result<bool> {
        let Some((kind, spec)) = spec_of(gang) else { return Ok(true) };
        let api = self.dynamic(kind, Some(&group.key.namespace));
        let created = self.create_owned(group, kind, &gang.name, &[], json!({ "spec": spec })).await?;
        if created { Ok(true) } else { set_members(&api, group, gang).await }
    }

    /// Creates an object that the carrier of the group owns; returns false when one of its name exists.
    async fn create_owned(
        &self,
        group: &Group,
        kind: ObjectKind,
        name: &str,
        labels: &[(&str, &str)],
        data: Value,
    ) -> kube::Result<bool> {
        let labels = label(group).into_iter().chain(labels.iter().copied());
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            owner_references: Some(vec![owner(group)]),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()),
            ..ObjectMeta::default()
        };
        let types = Some(TypeMeta { api_version: kind.api_version(), kind: kind.kind.to_owned() });
        let object = DynamicObject { types, metadata, data };
        let api = self.dynamic(kind, Some(&group.key.namespace));
        Ok(unless(&[409], api.create(&PostParams::default(), &object).await)?.is_some())
    }

    /// Lists the objects of these kinds that the carrier of the group owns. An unserved kind is skipped.
    pub async fn find_owned(&self, group: &Group, kinds: &BTreeSet<ObjectKind>) -> kube::Result<Vec<FoundOwned>> {
        let mut found = Vec::new();
        for kind in kinds.iter().copied() {
            let api = self.dynamic(kind, Some(&group.key.namespace));
            let params = label(group)
                .map_or_else(ListParams::default, |(key, name)| ListParams::default().labels(&format!("{key}={name}")));
            let all = unless(&[404], api.list(&params).await)?.into_iter().flatten();
            let ours = all.filter(|object| is_controlled(&object.metadata, &group.carrier.uid));
            found.extend(ours.filter(|object| object.metadata.deletion_timestamp.is_none()).filter_map(|object| {
                let members = object.data.pointer("/spec/minMember").and_then(Value::as_u64);
                let min_member = members.and_then(|members| u32::try_from(members).ok()).unwrap_or(1);
                Some(FoundOwned { kind, name: object.metadata.name?, min_member })
            }));
        }
        Ok(found)
    }

    /// Lowers the members of a left-over PodGroup, if it is there and belongs to this owner.
    pub async fn relax_pod_group(&self, group: &Group, id: &OwnedId, members: u32) -> kube::Result<()> {
        let api = self.dynamic(id.kind, Some(&group.key.namespace));
        let Some(present) = api.get_opt(&id.name).await? else { return Ok(()) };
        if is_controlled(&present.metadata, &id.owner) {
            write_members(&api, &present, members, false).await?;
        }
        Ok(())
    }

    /// Deletes an owned object, if it belongs to this owner.
    pub async fn remove_owned(&self, group: &Group, id: &OwnedId) -> kube::Result<()> {
        let api = self.dynamic(id.kind, Some(&group.key.namespace));
        let Some(present) = api.get_opt(&id.name).await? else { return Ok(()) };
        if !is_controlled(&present.metadata, &id.owner) {
            return Ok(());
        }
        if id.kind == CAPACITY_BUFFER {
            empty_buffer(&api, &present).await?;
        }
        let params = DeleteParams::default().preconditions(only(present.metadata.uid.unwrap_or_default()));
        unless(&[404, 409], api.delete(&id.name, &params).await).map(drop)
    }

    /// Writes the placement annotation of a PodGroup; returns false when it was changed since it was read, or is gone.
    pub async fn note_placement(&self, tree: &GangTree, placement: &Placement) -> kube::Result<bool> {
        let api = self.dynamic(POD_GROUP, Some(&tree.key.namespace));
        let patch = json!({ "metadata": {
            "uid": tree.uid,
            "resourceVersion": tree.resource_version,
            "annotations": { names::PLACEMENT: placement.text() },
        } });
        Ok(unless(&[404, 409], api.patch(&tree.key.name, &params(), &Patch::Merge(patch)).await)?.is_some())
    }
}

/// Empties a CapacityBuffer before it is deleted: Karpenter keeps the empty nodes of a deleted one until something else makes it
/// look at them.
pub(super) async fn empty_buffer(api: &Objects<DynamicObject>, present: &DynamicObject) -> kube::Result<()> {
    let name = present.metadata.name.as_deref().unwrap_or_default();
    let patch = json!({ "metadata": { "uid": present.metadata.uid }, "spec": { "replicas": 0 } });
    unless(&[404, 409], api.patch(name, &params(), &Patch::Merge(patch)).await)?;
    for _ in 0..LOOKS {
        let seen = api.get_opt(name).await?;
        let replicas = seen.as_ref().and_then(|seen| seen.data.pointer("/status/replicas")).and_then(Value::as_u64);
        if replicas.unwrap_or_default() == 0 {
            break;
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// The looks at an emptied CapacityBuffer before it is deleted all the same, and the interval between them.
const LOOKS: u32 = 20;
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Sets the members of an existing PodGroup; returns false when it has yet to go.
async fn set_members(api: &Objects<DynamicObject>, group: &Group, gang: &BatchPodGroup) -> kube::Result<bool> {
    let Some(present) = api.get_opt(&gang.name).await? else { return Ok(false) };
    if !stays(&present.metadata, &group.carrier.uid) {
        return Ok(false);
    }
    write_members(api, &present, gang.min_member, gang.renewed).await.map(|()| true)
}

/// Writes the members of a PodGroup; they only decrease, unless they may rise.
async fn write_members(
    api: &Objects<DynamicObject>,
    present: &DynamicObject,
    wanted: u32,
    may_rise: bool,
) -> kube::Result<()> {
    let known = present.data.pointer("/spec/minMember").and_then(Value::as_u64);
    let asked = u64::from(wanted);
    if known.is_none_or(|known| known == asked || known < asked && !may_rise) {
        return Ok(());
    }
    let patch = json!({
        "metadata": { "resourceVersion": present.metadata.resource_version },
        "spec": { "minMember": wanted },
    });
    let name = present.metadata.name.as_deref().unwrap_or_default();
    api.patch(name, &params(), &Patch::Merge(patch)).await.map(drop)
}

/// Returns the label that selects the PodGroups of a group; `None` for a name that is no label value.
fn label(group: &Group) -> Option<(&'static str, &str)> {
    let name = &*group.key.name;
    names::is_label_value(name).then_some((names::GROUP, name))
}

fn is_controlled(present: &ObjectMeta, owner: &str) -> bool {
    let mut owners = present.owner_references.iter().flatten();
    owners.any(|known| known.uid == owner && known.controller == Some(true))
}

fn owner(group: &Group) -> OwnerReference {
    let carrier = &group.carrier;
    OwnerReference {
        api_version: carrier.kind.api_version(),
        kind: carrier.kind.kind.to_owned(),
        name: carrier.name.clone(),
        uid: carrier.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// Returns the kind and the spec; `None` for an unknown policy.
fn spec_of(gang: &BatchPodGroup) -> Option<(ObjectKind, Value)> {
    let mut spec = json!({ "minMember": gang.min_member });
    let text = |text: &Option<String>| text.clone().map(Value::from);
    let fields = match &gang.policy {
        PodGroupPolicy::KubeScheduling { schedule_timeout_seconds } => {
            vec![("scheduleTimeoutSeconds", schedule_timeout_seconds.map(Value::from))]
        }
        PodGroupPolicy::VolcanoScheduling { queue, priority_class_name }
        | PodGroupPolicy::Kai { queue, priority_class_name } => {
            vec![("queue", text(queue)), ("priorityClassName", text(priority_class_name))]
        }
        PodGroupPolicy::Unknown => return None,
    };
    let object = spec.as_object_mut()?;
    object.extend(fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))));
    Some((gang.policy.kind()?, spec))
}

/// Reason for a template whose pod is gone, or was created anew.
const NO_SAMPLE: &str = "the pod or workload that it is made from is not there";

impl Writer {
    /// Creates an object of a request; returns why not. The sample of a template is read live.
    pub async fn create_request(&self, group: &Group, object: &RequestObject) -> kube::Result<Option<&'static str>> {
        let refs = || object.templates.iter().map(|name| json!({ "name": name }));
        let data = match &object.content {
            Content::Template { sample, domains } => {
                let Some(sample) = self.sample(group, sample).await? else { return Ok(Some(NO_SAMPLE)) };
                json!({ "template": template(&sample, &object.request, domains) })
            }
            Content::Buffer { replicas } => {
                json!({ "spec": { "podTemplateRef": refs().next(), "replicas": replicas } })
            }
            Content::Request { class, counts } => {
                let set = |(template, count): (Value, &u32)| json!({ "podTemplateRef": template, "count": count });
                let sets: Vec<_> = refs().zip(counts).map(set).collect();
                json!({ "spec": { "provisioningClassName": class, "podSets": sets } })
            }
        };
        let labels = [(names::REQUEST, object.request.as_str())];
        if self.create_owned(group, object.kind, &object.name, &labels, data).await? {
            return Ok(None);
        }
        let api = self.dynamic(object.kind, Some(&group.key.namespace));
        let present = api.get_opt(&object.name).await?;
        let is_ours = present.is_some_and(|present| stays(&present.metadata, &group.carrier.uid));
        Ok((!is_ours).then_some(TAKEN))
    }

    async fn sample(&self, group: &Group, sample: &Sample) -> kube::Result<Option<Value>> {
        let namespace = &group.key.namespace;
        match sample {
            Sample::Pod(pod) => {
                let read = objects::read(&self.client, POD, namespace, &pod.name).await?;
                let is_it = |read: &Value| read.pointer("/metadata/uid").and_then(Value::as_str) == Some(&*pod.uid);
                Ok(read.filter(is_it))
            }
            Sample::Workload(key, part, added) => {
                let read = objects::read(&self.client, key.kind.object_kind(), namespace, &key.name).await?;
                let paths = key.kind.row().templates.iter().skip(*part);
                let template = |path: &&[&str]| read.as_ref()?.pointer(&format!("/{}", path.join("/"))).cloned();
                let mut found = paths.copied().find_map(|path| template(&path));
                let spec = found.as_mut().and_then(|found| found.get_mut("spec")).and_then(Value::as_object_mut);
                spec.into_iter().for_each(|spec| added.add_to_template(spec));
                Ok(found)
            }
        }
    }
}
