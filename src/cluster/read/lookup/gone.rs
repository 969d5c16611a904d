//! Whether what carried a group is gone for good, or only its kind.

use super::{Lookup, LookupError};
use crate::api::pod_group::POD_GROUP;
use crate::api::{ObjectKind, PodGroup};
use crate::cluster::watch::sources::CARRIERS;
use crate::cluster::watch::watched::api;
use crate::model::GroupKey;

impl Lookup {
    /// True when a live read says that the group is gone, and that its kind could be seen if it were there: a deleted
    /// CustomResourceDefinition takes every object with it, and must not open every hold. `carrier` is the kind that
    /// carried it, when that is known.
    ///
    /// # Errors
    ///
    /// When the API server fails.
    pub async fn is_gone(&self, key: &GroupKey, carrier: Option<ObjectKind>) -> Result<bool, LookupError> {
        let error =
            |source| LookupError::Read { kind: "CustomResourceDefinition", key: key.clone(), source: Box::new(source) };
        // What carried it may be read in another version since.
        let candidates = carrier.filter(|kind| self.reads(*kind)).map_or_else(|| CARRIERS.to_vec(), |kind| vec![kind]);
        let mut established = false;
        for kind in candidates.into_iter().filter(|kind| self.reads(*kind)) {
            let is_established = self.is_established(kind).await.map_err(error)?;
            if is_established && self.index.read().is_served(kind) == Some(false) {
                // It came back just now: the watch has not listed yet, and whoever brings the groups may need a moment.
                return Ok(false);
            }
            established |= is_established;
        }
        if !established {
            return Ok(false);
        }
        // Not what the watches know: they notice only after a while that a kind is served again.
        self.read_carriers(key, |_| true).await?;
        Ok(self.index.read().group(key).is_none())
    }

    /// True when a live read says that a KAI PodGroup is not there, and its kind is.
    ///
    /// # Errors
    ///
    /// When the API server fails.
    pub async fn is_pod_group_gone(&self, key: &GroupKey) -> Result<bool, LookupError> {
        let error = |source| LookupError::Read { kind: POD_GROUP.kind, key: key.clone(), source: Box::new(source) };
        let is_established = self.is_established(POD_GROUP).await.map_err(error)?;
        // It may have come back just now, and whoever brings the objects needs a moment.
        if !is_established || self.index.read().is_served(POD_GROUP) == Some(false) {
            return Ok(false);
        }
        let pod_groups = api::<PodGroup>(&self.client, POD_GROUP, Some(&key.namespace));
        match pod_groups.get_metadata(&key.name).await {
            Ok(_) => Ok(false),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            Err(source) => Err(error(source)),
        }
    }

    /// True when the API server defines the kind in the version that is read, and is not about to remove it.
    ///
    /// # Errors
    ///
    /// When the API server fails.
    pub async fn is_established(&self, kind: ObjectKind) -> Result<bool, kube::Error> {
        use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
        let crds: kube::Api<CustomResourceDefinition> = kube::Api::all(self.client.clone());
        let Some(crd) = crds.get_opt(&kind.crd_name()).await? else { return Ok(false) };
        let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
        let established = conditions.iter().any(|c| c.type_ == "Established" && c.status == "True");
        let served = crd.spec.versions.iter().any(|version| version.name == kind.version && version.served);
        Ok(established && served && crd.metadata.deletion_timestamp.is_none())
    }
}
