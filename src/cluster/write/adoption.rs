//! The writes of `rolegate adopt`, with the rights of its caller: labels, and a RoleCoordination. The field manager differs
//! from that of the loop, whose own updates no webhook freezes.

use std::time::Duration;

use kube::Client;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde::Deserialize;
use serde_json::{Value, json};

use super::writer::released;
use crate::api::pod::POD;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::{ObjectKind, Pod};
use crate::cluster::failure::unless;
use crate::cluster::objects::{self, Objects, api};
use crate::cluster::write::deadline::within;
use crate::model::WorkloadKind;
use crate::plan::PodRef;

const MANAGER: &str = "rolegate-adopt";

/// Reads and writes of an adoption in one namespace.
pub struct Adoption {
    client: Client,
    namespace: String,
    timeout: Duration,
}

impl Adoption {
    /// Returns an adoption in this namespace; `timeout` limits each request.
    pub fn new(client: Client, namespace: &str, timeout: Duration) -> Self {
        Self { client, namespace: namespace.to_owned(), timeout }
    }

    /// Reads an object; `None` when it or its kind does not exist.
    pub async fn read(&self, kind: ObjectKind, name: &str) -> kube::Result<Option<Value>> {
        within(self.timeout, objects::read(&self.client, kind, &self.namespace, name)).await
    }

    /// Lists all objects of a kind; none where it is not served.
    pub async fn list(&self, kind: ObjectKind) -> kube::Result<Vec<Value>> {
        let list = within(self.timeout, self.objects(kind).list(&ListParams::default())).await;
        let found = unless(&[404], list)?.into_iter().flatten();
        Ok(found.filter_map(|object| serde_json::to_value(object).ok()).collect())
    }

    pub async fn pods(&self) -> kube::Result<Vec<Pod>> {
        let pods = api::<Pod>(&self.client, POD, Some(&self.namespace));
        Ok(within(self.timeout, pods.list(&ListParams::default())).await?.items)
    }

    /// Labels a pod if its uid matches; returns false when it is gone, or another one has its name.
    pub async fn label_pod(&self, pod: &PodRef, labels: &Value) -> kube::Result<bool> {
        let pods = api::<Pod>(&self.client, POD, Some(&self.namespace));
        let patch = Patch::Merge(json!({ "metadata": { "uid": &*pod.uid, "labels": labels } }));
        Ok(released(within(self.timeout, pods.patch(&pod.name, &params(false), &patch)).await)?.is_some())
    }

    /// Creates a RoleCoordination, or with `dry_run` only checks whether that is allowed.
    pub async fn create(&self, object: &Value, dry_run: bool) -> kube::Result<()> {
        let params = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
        let object = DynamicObject::deserialize(object).map_err(kube::Error::SerdeError)?;
        within(self.timeout, self.objects(ROLE_COORDINATION).create(&params, &object)).await.map(drop)
    }

    /// Patches a workload, or with `dry_run` only checks the patch; returns the patched workload in both cases.
    pub async fn patch(&self, kind: WorkloadKind, name: &str, patch: &Value, dry_run: bool) -> kube::Result<Value> {
        let objects = self.objects(kind.object_kind());
        let patched = within(self.timeout, objects.patch(name, &params(dry_run), &Patch::Merge(patch.clone()))).await?;
        Ok(serde_json::to_value(patched).unwrap_or_default())
    }

    fn objects(&self, kind: ObjectKind) -> Objects<DynamicObject> {
        api(&self.client, kind, Some(&self.namespace))
    }
}

fn params(dry_run: bool) -> PatchParams {
    PatchParams { dry_run, field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}
