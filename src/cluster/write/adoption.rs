//! What `rolegate adopt` writes, with the rights of whoever calls it: labels, and a RoleCoordination. Its field manager is not that of
//! the loop, whose own updates no webhook freezes.

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

/// Field manager of these writes.
const MANAGER: &str = "rolegate-adopt";

/// Reads what is adopted, and writes what makes it so, in one namespace.
pub struct Adoption {
    client: Client,
    namespace: String,
    timeout: Duration,
}

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum AdoptionError {
    /// The API server refuses or fails.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// It does not answer.
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
}

/// Each fails when the API server refuses or fails.
#[allow(clippy::missing_errors_doc, reason = "said once, above")]
impl Adoption {
    /// In this namespace; each write may take so long.
    pub fn new(client: Client, namespace: &str, timeout: Duration) -> Self {
        Self { client, namespace: namespace.to_owned(), timeout }
    }

    /// An object as it stands; `None` when it is not there, or its kind is not served.
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

    /// All objects of a kind; none where it is not served.
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

    /// The pods of the namespace.
    pub async fn pods(&self) -> Result<Vec<Pod>, AdoptionError> {
        let pods = api::<Pod>(&self.client, POD, Some(&self.namespace));
        let list = within(self.timeout, async { Ok::<_, AdoptionError>(pods.list(&ListParams::default()).await?) });
        Ok(list.await?.items.into_iter().map(|pod| pod.object).collect())
    }

    /// Gives a pod labels, if it is this very pod; false when it is gone.
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

    /// Creates a RoleCoordination, or only asks whether that would be allowed.
    pub async fn create(&self, object: &Value, dry_run: bool) -> Result<(), AdoptionError> {
        let params = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
        let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        let objects = self.objects(ROLE_COORDINATION);
        within(self.timeout, async { Ok(objects.create(&params, &object).await.map(drop)?) }).await
    }

    /// Patches a workload, or only asks what would become of it, which is the answer in both cases.
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
