//! Devices and the claims on them, read once.

use kube::Client;
use kube::api::ListParams;

use crate::api::ObjectKind;
use crate::cluster::index::Readable;
use crate::cluster::objects::api;
use crate::cluster::watch::devices::served_kinds;
use crate::plan::devices::DeviceObject;

/// Returns all devices, classes, claims, templates and taint rules; `None` if the API server has no such kinds.
///
/// # Errors
///
/// When some may not be read; the text tells which.
pub async fn devices(client: &Client) -> Result<Option<Vec<DeviceObject>>, String> {
    let served = served_kinds(client).await.map_err(|refused| refused.text())?;
    let Some([classes, templates, claims, slices, rules]) = served else { return Ok(None) };
    let mut all = list(client, classes, DeviceObject::Class).await?;
    all.extend(list(client, templates, DeviceObject::Template).await?);
    all.extend(list(client, claims, DeviceObject::Claim).await?);
    all.extend(list(client, slices, DeviceObject::Slice).await?);
    all.extend(list(client, rules, DeviceObject::TaintRule).await?);
    Ok(Some(all))
}

/// Lists a kind; no objects if it is not served.
async fn list<T: Readable>(
    client: &Client,
    kind: Option<ObjectKind>,
    object: fn(T) -> DeviceObject,
) -> Result<Vec<DeviceObject>, String> {
    let Some(kind) = kind else { return Ok(Vec::new()) };
    let all = api::<T>(client, kind, None).list(&ListParams::default()).await;
    let all = all.map_err(|error| format!("{} cannot be read: {error}", kind.plural))?;
    Ok(all.items.into_iter().map(object).collect())
}
