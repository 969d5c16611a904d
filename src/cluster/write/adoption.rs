//! The writes of `rolegate adopt`, with the rights of its caller: labels, and a RoleCoordination. The field manager differs
//! from that of the loop, whose own updates no webhook freezes.

use std::time::Duration;

use kube::Client;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::writer::resource;
use crate::api::pod::POD;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::{ObjectKind, Pod};
use crate::cluster::objects::Objects;
use crate::cluster::watch::watched::{Watched, api};
use crate::cluster::write::deadline::{Unfinished, within};
use crate::model::WorkloadKind;
use crate::plan::PodRef;

const MANAGER: &str = "rolegate-adopt";

/// Reads and writes of an adoption in one namespace.
pub struct Adoption {
    client: Client,
    namespace: String,
    timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum AdoptionError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
}

/// Every method fails when the API server refuses, fails, or does not answer.
#[allow(clippy::missing_errors_doc, reason = "said once, above")]
impl Adoption {
    /// Returns an adoption in this namespace; `timeout` limits each request.
    pub fn new(client: Client, namespace: &str, timeout: Duration) -> Self {
        Self { client, namespace: namespace.to_owned(), timeout }
    }

    /// Reads an object; `None` when it or its kind does not exist.
    pub async fn read(&self, kind: ObjectKind, name: &str) -> Result<Option<Value>, AdoptionError> {
        let read = async {
            match self.objects(kind).get(name).await {
                Ok(object) => Ok(Some(object)),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                Err(error) => Err(AdoptionError::from(error)),
            }
        };
        let found = within(self.timeout, read).await?;
        Ok(found.and_then(|object| serde_json::to_value(object).ok()))
    }

    /// Lists all objects of a kind; none where it is not served.
    pub async fn list(&self, kind: ObjectKind) -> Result<Vec<Value>, AdoptionError> {
        let list = async {
            match self.objects(kind).list(&ListParams::default()).await {
                Ok(list) => Ok(list.items),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
                Err(error) => Err(AdoptionError::from(error)),
            }
        };
        let found = within(self.timeout, list).await?;
        Ok(found.into_iter().filter_map(|object| serde_json::to_value(object).ok()).collect())
    }

    pub async fn pods(&self) -> Result<Vec<Pod>, AdoptionError> {
        let pods = api::<Pod>(&self.client, POD, Some(&self.namespace));
        let list = within(self.timeout, async { Ok::<_, AdoptionError>(pods.list(&ListParams::default()).await?) });
        Ok(list.await?.items.into_iter().map(|pod| pod.object).collect())
    }

    /// Labels a pod if its uid matches; returns false when it is gone.
    pub async fn label_pod(&self, pod: &PodRef, labels: &Value) -> Result<bool, AdoptionError> {
        let pods: Objects<Watched<Pod>> = api(&self.client, POD, Some(&self.namespace));
        let patch = Patch::Merge(json!({ "metadata": { "uid": &*pod.uid, "labels": labels } }));
        let patched = async { Ok::<_, AdoptionError>(pods.patch(&pod.name, &params(false), &patch).await?) };
        match within(self.timeout, patched).await {
            Ok(_) => Ok(true),
            Err(AdoptionError::Api(kube::Error::Api(status))) if matches!(status.code, 404 | 409 | 422) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates a RoleCoordination, or with `dry_run` only checks whether that is allowed.
    pub async fn create(&self, object: &Value, dry_run: bool) -> Result<(), AdoptionError> {
        let params = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
        let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        let objects = self.objects(ROLE_COORDINATION);
        within(self.timeout, async { Ok(objects.create(&params, &object).await.map(drop)?) }).await
    }

    /// Patches a workload, or with `dry_run` only checks the patch; returns the patched workload in both cases.
    pub async fn patch(
        &self,
        kind: WorkloadKind,
        name: &str,
        patch: &Value,
        dry_run: bool,
    ) -> Result<Value, AdoptionError> {
        let objects = self.objects(kind.object_kind());
        let patched = async {
            let params = params(dry_run);
            Ok::<_, AdoptionError>(objects.patch(name, &params, &Patch::Merge(patch)).await?)
        };
        Ok(serde_json::to_value(within(self.timeout, patched).await?).unwrap_or_default())
    }

    fn objects(&self, kind: ObjectKind) -> Objects<DynamicObject> {
        Objects::new(
            &self.client,
            &resource(kind),
            Some(&self.namespace).filter(|_| kind.namespaced).map(String::as_str),
        )
    }
}

fn params(dry_run: bool) -> PatchParams {
    PatchParams { dry_run, field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}
