//! Whether the PodGroups exist that batches wait for.

use std::collections::BTreeMap;

use futures::future::join_all;
use kube::Client;
use kube::api::ObjectMeta;

use crate::api::{ObjectKind, PodGroup};
use crate::cluster::failure::unless;
use crate::cluster::objects::api;
use crate::model::Group;
use crate::plan::MissingOwned;

/// Reason for a PodGroup whose name is taken.
pub const TAKEN: &str = "one of this name is there, which is another object's or about to go";
/// Reason for a PodGroup that does not exist.
const ABSENT: &str = "it is not there, or its kind is not defined";

/// Returns the missing PodGroups among those that batches wait for, by name and kind. An unreadable one is left out.
pub async fn missing(client: &Client, group: &Group, awaited: &BTreeMap<String, ObjectKind>) -> Vec<MissingOwned> {
    let look = async |(name, kind): (&String, &ObjectKind)| {
        let pod_groups = api::<PodGroup>(client, *kind, Some(&group.key.namespace));
        // An undefined kind has the code 404 as well, with another body.
        let why = match unless(&[404], pod_groups.get_metadata(name).await).ok()? {
            Some(present) if stays(&present.metadata, &group.carrier.uid) => return None,
            Some(_) => TAKEN,
            None => ABSENT,
        };
        Some(MissingOwned { name: name.clone(), why: why.to_owned() })
    };
    join_all(awaited.iter().map(look)).await.into_iter().flatten().collect()
}

/// Reports whether a PodGroup stays as long as the carrier of the group. A PodGroup that is being deleted does not, nor one
/// owned by an earlier object of the same name: it is garbage-collected with that object.
pub fn stays(present: &ObjectMeta, owner: &str) -> bool {
    let owners = present.owner_references.as_deref().unwrap_or_default();
    present.deletion_timestamp.is_none() && (owners.is_empty() || owners.iter().any(|known| known.uid == owner))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
