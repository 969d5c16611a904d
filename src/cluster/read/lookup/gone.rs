//! Whether the carrier of a group is gone for good, or only its kind.

use super::{Looked, Lookup, LookupError};
use crate::api::pod_group::POD_GROUP;
use crate::api::{ObjectKind, PodGroup};
use crate::cluster::failure::unless;
use crate::cluster::objects::api;
use crate::cluster::watch::sources::CARRIERS;
use crate::model::GroupKey;

impl Lookup {
    /// Reports whether a live read proves that the group is gone while its kind is served. A deleted CustomResourceDefinition
    /// removes all objects of the kind, and must not open every hold. `carrier` is the kind that carried the group, if known.
    pub async fn is_gone(&self, key: &GroupKey, carrier: Option<ObjectKind>) -> Looked<bool> {
        let error = |source| LookupError::read(format!("CustomResourceDefinition {key}"), source);
        // The carrier may be read in another version by now.
        let candidates = carrier.filter(|kind| self.reads(*kind)).map_or_else(|| CARRIERS.to_vec(), |kind| vec![kind]);
        let mut established = false;
        for kind in candidates.into_iter().filter(|kind| self.reads(*kind)) {
            let is_established = self.is_established(kind).await.map_err(error)?;
            if is_established && self.index.read().is_served(kind) == Some(false) {
                // The kind just came back: its watch has not listed yet, and the groups may be restored in a moment.
                return Ok(false);
            }
            established |= is_established;
        }
        if !established {
            return Ok(false);
        }
        // Not from the index: a watch notices only after a while that its kind is served again.
        self.read_carriers(key, |_| true).await?;
        Ok(self.index.read().group(key).is_none())
    }

    /// Reports whether a live read proves that a KAI PodGroup is gone while its kind is served.
    pub async fn is_pod_group_gone(&self, key: &GroupKey) -> Looked<bool> {
        let error = |source| LookupError::read(format!("{} {key}", POD_GROUP.kind), source);
        let is_established = self.is_established(POD_GROUP).await.map_err(error)?;
        // The kind may have just come back, and its objects may be restored in a moment.
        if !is_established || self.index.read().is_served(POD_GROUP) == Some(false) {
            return Ok(false);
        }
        let pod_groups = api::<PodGroup>(&self.client, POD_GROUP, Some(&key.namespace));
        let found = unless(&[404], pod_groups.get_metadata(&key.name).await);
        found.map(|found| found.is_none()).map_err(error)
    }

    /// Reports whether the API server serves the kind in the version that is read, and is not about to remove it.
    pub async fn is_established(&self, kind: ObjectKind) -> kube::Result<bool> {
        use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
        let crds: kube::Api<CustomResourceDefinition> = kube::Api::all(self.client.clone());
        let Some(crd) = crds.get_opt(&kind.crd_name()).await? else { return Ok(false) };
        let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
        let established = conditions.iter().any(|c| c.type_ == "Established" && c.status == "True");
        let served = crd.spec.versions.iter().any(|version| version.name == kind.version && version.served);
        Ok(established && served && crd.metadata.deletion_timestamp.is_none())
    }
}
