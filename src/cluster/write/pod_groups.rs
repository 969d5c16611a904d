//! Writes the PodGroups of batches, each in the words of its scheduler, and notes on those that place their pods where
//! these go.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, Patch, PostParams};
use serde_json::{Value, json};

use crate::api::ObjectKind;
use crate::api::pod_group::POD_GROUP;
use crate::cluster::objects::Objects;
use crate::cluster::read::pod_groups::stays;
use crate::cluster::write::writer::{Writer, params, resource};
use crate::model::{GangTree, Group, Placement, PodGroupPolicy, names};
use crate::plan::BatchPodGroup;

impl Writer {
    /// Makes the PodGroup of a batch, owned by the object that carries the group; of one that is there, the number of
    /// members only falls, unless its batch is made anew. False when the one that is there has yet to go.
    ///
    /// # Errors
    ///
    /// When the API server refuses or fails.
    pub async fn ensure_pod_group(&self, group: &Group, gang: &BatchPodGroup) -> Result<bool, kube::Error> {
        let Some((kind, spec)) = spec_of(gang) else { return Ok(true) };
        let api = self.dynamic(kind, Some(&group.key.namespace));
        let mut object = DynamicObject::new(&gang.name, &resource(kind));
        object.metadata.owner_references = Some(vec![owner(group)]);
        object.data = json!({ "spec": spec });
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => set_members(&api, group, gang).await,
            Err(error) => Err(error),
        }
    }

    /// Notes on a PodGroup where its pods go; false when somebody changed it since it was read, or it is gone.
    ///
    /// # Errors
    ///
    /// When the API server refuses or fails.
    pub async fn note_placement(&self, tree: &GangTree, placement: &Placement) -> Result<bool, kube::Error> {
        let api = self.dynamic(POD_GROUP, Some(&tree.key.namespace));
        let patch = json!({ "metadata": {
            "uid": tree.uid,
            "resourceVersion": tree.resource_version,
            "annotations": { names::PLACEMENT: placement.text() },
        } });
        match api.patch(&tree.key.name, &params(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Sets the members of a PodGroup that is there; false when it has yet to go.
async fn set_members(api: &Objects<DynamicObject>, group: &Group, gang: &BatchPodGroup) -> Result<bool, kube::Error> {
    let Some(present) = api.get_opt(&gang.name).await? else { return Ok(false) };
    if !stays(&present.metadata, &group.carrier.uid) {
        return Ok(false);
    }
    let members = present.data.pointer("/spec/minMember").and_then(Value::as_u64);
    let wanted = u64::from(gang.min_member);
    if members.is_none_or(|members| members == wanted || members < wanted && !gang.renewed) {
        return Ok(true);
    }
    let patch = json!({
        "metadata": { "resourceVersion": present.metadata.resource_version },
        "spec": { "minMember": gang.min_member },
    });
    api.patch(&gang.name, &params(), &Patch::Merge(patch)).await.map(|_| true)
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

/// The kind and the spec; `None` for a policy that nobody knows.
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
