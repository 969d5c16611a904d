//! Writes the PodGroups of batches, each in the words of its scheduler.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::api::ObjectKind;
use crate::api::pod_group::POD_GROUP;
use crate::cluster::write::writer::{MANAGER, Writer};
use crate::model::{Group, PodGroupPolicy};
use crate::plan::BatchPodGroup;

/// `PodGroup` of the scheduler plugins.
const KUBE_POD_GROUP: ObjectKind = ObjectKind {
    group: "scheduling.x-k8s.io",
    version: "v1alpha1",
    kind: "PodGroup",
    plural: "podgroups",
    namespaced: true,
};
/// `PodGroup` of Volcano.
const VOLCANO_POD_GROUP: ObjectKind =
    ObjectKind { group: "scheduling.volcano.sh", version: "v1beta1", ..KUBE_POD_GROUP };

impl Writer {
    /// Makes the PodGroup of a batch, owned by the object that carries the group; of one that is there, the number of
    /// members only ever falls.
    ///
    /// # Errors
    ///
    /// When the API server refuses or fails.
    pub async fn ensure_pod_group(&self, group: &Group, gang: &BatchPodGroup) -> Result<(), kube::Error> {
        let Some((kind, spec)) = spec_of(gang) else { return Ok(()) };
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client().clone(), &group.key.namespace, &resource);
        let mut object = DynamicObject::new(&gang.name, &resource);
        object.metadata.owner_references = Some(vec![owner(group)]);
        object.data = json!({ "spec": spec });
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => lower(&api, gang).await,
            Err(error) => Err(error),
        }
    }
}

/// Lowers the members of a PodGroup that is there.
async fn lower(api: &Api<DynamicObject>, gang: &BatchPodGroup) -> Result<(), kube::Error> {
    let Some(present) = api.get_opt(&gang.name).await? else { return Ok(()) };
    let members = present.data.pointer("/spec/minMember").and_then(Value::as_u64);
    if members.is_none_or(|members| members <= u64::from(gang.min_member)) {
        return Ok(());
    }
    let patch = json!({
        "metadata": { "resourceVersion": present.metadata.resource_version },
        "spec": { "minMember": gang.min_member },
    });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&gang.name, &params, &Patch::Merge(patch)).await.map(|_| ())
}

fn owner(group: &Group) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
    let carrier = &group.carrier;
    k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
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
    let (kind, fields) = match &gang.policy {
        PodGroupPolicy::KubeScheduling { schedule_timeout_seconds } => {
            (KUBE_POD_GROUP, vec![("scheduleTimeoutSeconds", schedule_timeout_seconds.map(Value::from))])
        }
        PodGroupPolicy::VolcanoScheduling { queue, priority_class_name } => {
            let text = |text: &Option<String>| text.clone().map(Value::from);
            (VOLCANO_POD_GROUP, vec![("queue", text(queue)), ("priorityClassName", text(priority_class_name))])
        }
        PodGroupPolicy::Kai { queue } => (POD_GROUP, vec![("queue", queue.clone().map(Value::from))]),
        PodGroupPolicy::Unknown => return None,
    };
    let object = spec.as_object_mut()?;
    object.extend(fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))));
    Some((kind, spec))
}
