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
        let first = api::<Node>(client, *kind, None).list_metadata(&ListParams::default().limit(1)).await;
        if let Some(reason) = first.as_ref().err().and_then(forbidden) {
            let without = if kinds.contains(&NODE) { "without a place" } else { "wherever their volumes are" };
            tracing::warn!(kind = kind.kind, reason, "may not be read: batches go {without}");
            return Some(format!("{} may not be read", kind.plural));
        }
    }
    None
}
