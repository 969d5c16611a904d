//! Writes the PodGroups of batches, each in the words of its scheduler.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{DynamicObject, ObjectMeta, Patch, PostParams};
use serde_json::{Value, json};

use crate::api::ObjectKind;
use crate::api::pod_group::POD_GROUP;
use crate::cluster::write::writer::{Writer, params, resource};
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
    /// members only ever falls. False when the one that is there has yet to go.
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
            Err(kube::Error::Api(status)) if status.code == 409 => lower(&api, group, gang).await,
            Err(error) => Err(error),
        }
    }
}

/// True for a PodGroup that stays as long as the object that carries the group. One that is being deleted does not, nor one
/// that an earlier object of the same name owns: it is garbage-collected with that one.
pub fn stays(present: &ObjectMeta, owner: &str) -> bool {
    let owners = present.owner_references.as_deref().unwrap_or_default();
    present.deletion_timestamp.is_none() && (owners.is_empty() || owners.iter().any(|known| known.uid == owner))
}

/// Lowers the members of a PodGroup that is there; false when it has yet to go.
async fn lower(api: &Api<DynamicObject>, group: &Group, gang: &BatchPodGroup) -> Result<bool, kube::Error> {
    let Some(present) = api.get_opt(&gang.name).await? else { return Ok(false) };
    if !stays(&present.metadata, &group.carrier.uid) {
        return Ok(false);
    }
    let members = present.data.pointer("/spec/minMember").and_then(Value::as_u64);
    if members.is_none_or(|members| members <= u64::from(gang.min_member)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn present(meta: Value) -> ObjectMeta {
        serde_json::from_value(meta).unwrap()
    }

    #[test]
    fn a_pod_group_of_an_earlier_object_or_on_its_way_out_has_yet_to_go() {
        let owned = |uid: &str| json!([{ "apiVersion": "v1", "kind": "RoleBasedGroup", "name": "pd", "uid": uid }]);
        assert!(stays(&present(json!({ "ownerReferences": owned("new") })), "new"));
        assert!(stays(&present(json!({})), "new"), "somebody made it by hand");
        assert!(!stays(&present(json!({ "ownerReferences": owned("old") })), "new"));
        let going = json!({ "ownerReferences": owned("new"), "deletionTimestamp": "2026-01-01T00:00:00Z" });
        assert!(!stays(&present(going), "new"));
    }
}
