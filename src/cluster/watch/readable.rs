//! Whether the kinds needed only for placement may be read.

use std::time::Duration;

use kube::Client;
use kube::api::ListParams;

use crate::api::{Node, ObjectKind};
use crate::cluster::failure::forbidden;
use crate::cluster::objects::api;

/// Pause before the next check of a refused kind.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// The reason why a kind may not be read.
#[derive(PartialEq, Eq)]
pub struct Refused {
    kind: ObjectKind,
    reason: String,
}

impl Refused {
    /// Returns the reason as `nodes may not be read`.
    pub fn text(&self) -> String {
        format!("{} may not be read", self.kind.plural)
    }
}

/// Looks until the kinds are found that are to be read. While `look` returns `None`, they are not served. `refused` gets the
/// reason why they may not be read, once for each change.
pub(super) async fn until_readable<T, L: Future<Output = Result<Option<T>, Refused>>>(
    look: impl Fn() -> L,
    without: &str,
    refused: impl Fn(String),
) -> T {
    let mut told: Option<Refused> = None;
    loop {
        let why = match look().await {
            Ok(Some(found)) => return found,
            Ok(None) => None,
            Err(why) => Some(why),
        };
        if let Some(why) = why.as_ref().filter(|why| told.as_ref() != Some(*why)) {
            tracing::warn!(kind = why.kind.kind, reason = why.reason, "may not be read: batches go {without}");
            refused(why.text());
        }
        told = why;
        tokio::time::sleep(REFUSED_PAUSE).await;
    }
}

/// Reads the first object of each kind.
///
/// # Errors
///
/// When a kind may not be read.
pub(super) async fn all_readable(client: &Client, kinds: &[ObjectKind]) -> Result<Option<()>, Refused> {
    for kind in kinds {
        first(client, *kind).await?;
    }
    Ok(Some(()))
}

/// Returns the kind in the first of these versions that the API server serves.
pub(super) async fn served(
    client: &Client,
    kind: ObjectKind,
    versions: &[&'static str],
) -> Result<Option<ObjectKind>, Refused> {
    for version in versions {
        let kind = ObjectKind { version, ..kind };
        if first(client, kind).await? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// Reads the first object of a kind; returns false if the kind is not served.
async fn first(client: &Client, kind: ObjectKind) -> Result<bool, Refused> {
    let first = api::<Node>(client, kind, None).list_metadata(&ListParams::default().limit(1)).await;
    if let Some(reason) = first.as_ref().err().and_then(forbidden) {
        return Err(Refused { kind, reason: reason.to_owned() });
    }
    Ok(!matches!(first, Err(kube::Error::Api(status)) if status.code == 404))
}
