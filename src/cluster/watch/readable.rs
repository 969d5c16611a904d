//! Whether the kinds needed only for placement may be read.

use std::time::Duration;

use kube::Client;
use kube::api::ListParams;

use crate::api::node::NODE;
use crate::api::{Node, ObjectKind};
use crate::cluster::failure::forbidden;
use crate::cluster::watch::watched::api;

/// Pause before the next check of a refused kind.
pub(super) const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// Returns why one of these kinds may not be read; `None` if all may be.
pub(super) async fn refusal(client: &Client, kinds: &[ObjectKind]) -> Option<String> {
    for kind in kinds {
        let without = if kinds.contains(&NODE) { "without a place" } else { "wherever their volumes are" };
        if let Err(Refused(why)) = first(client, *kind, without).await {
            return Some(why);
        }
    }
    None
}

/// The reason why a kind may not be read.
pub struct Refused(pub String);

/// Returns the kind in the first of these versions that the API server serves.
pub(super) async fn served(
    client: &Client,
    kind: ObjectKind,
    versions: &[&'static str],
) -> Result<Option<ObjectKind>, Refused> {
    for version in versions {
        let kind = ObjectKind { version, ..kind };
        if first(client, kind, "wherever their devices are").await? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// Reads the first object of a kind; returns false if the kind is not served.
async fn first(client: &Client, kind: ObjectKind, without: &str) -> Result<bool, Refused> {
    let first = api::<Node>(client, kind, None).list_metadata(&ListParams::default().limit(1)).await;
    if let Some(reason) = first.as_ref().err().and_then(forbidden) {
        tracing::warn!(kind = kind.kind, reason, "may not be read: batches go {without}");
        return Err(Refused(format!("{} may not be read", kind.plural)));
    }
    Ok(!matches!(first, Err(kube::Error::Api(status)) if status.code == 404))
}
