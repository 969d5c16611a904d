//! Devices and the claims on them, read once.

use kube::Client;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use crate::api::{Object, ObjectKind};
use crate::cluster::watch::devices::served_kinds;
use crate::cluster::watch::watched::api;
use crate::plan::devices::DeviceObject;

/// Returns all devices, classes, claims, templates and taint rules; `None` if some may not be read, or the API server has none.
pub async fn devices(client: &Client) -> Option<Vec<DeviceObject>> {
    let [classes, templates, claims, slices, rules] = served_kinds(client).await.ok()??;
    let mut all = list(client, classes, DeviceObject::Class).await?;
    all.extend(list(client, templates, DeviceObject::Template).await?);
    all.extend(list(client, claims, DeviceObject::Claim).await?);
    all.extend(list(client, slices, DeviceObject::Slice).await?);
    all.extend(list(client, rules, DeviceObject::TaintRule).await?);
    Some(all)
}

/// Lists a kind; no objects if it is not served.
async fn list<T>(client: &Client, kind: Option<ObjectKind>, object: fn(T) -> DeviceObject) -> Option<Vec<DeviceObject>>
where
    T: Object + DeserializeOwned + Clone + std::fmt::Debug + Send + 'static,
{
    let Some(kind) = kind else { return Some(Vec::new()) };
    let all = api::<T>(client, kind, None).list(&ListParams::default()).await.ok()?;
    Some(all.items.into_iter().map(|one| object(one.object)).collect())
}
