//! One watch: list, then events, for ever. Errors back off; a kind that is not served is waited for.

use std::time::Duration;

use futures::{StreamExt, pin_mut};
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::api::Object;
use crate::cluster::index::Change;
use crate::cluster::objects::Objects;
use crate::cluster::watch::watched::Watched;

/// Pause after the first failure in a row; doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Watches an API until the task is dropped. `recheck` wakes a watch that waits for its kind to be served.
pub async fn watch<T>(
    objects: Objects<Watched<T>>,
    selector: Option<&str>,
    recheck: &Notify,
    mut report: impl FnMut(Change<T>),
) where
    T: Object + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let mut config = watcher::Config::default();
    if let Some(selector) = selector {
        config = config.labels(selector);
    }
    let stream = match objects.all() {
        Ok(api) => watcher(api, config),
        Err(error) => return tracing::error!(%error, "cannot be watched"),
    };
    pin_mut!(stream);
    let (mut listed, mut pause) = (Vec::new(), FIRST_PAUSE);
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(item)) => listed.push(item.object),
            Ok(Event::InitDone) => {
                report(Change::Listed(std::mem::take(&mut listed)));
                pause = FIRST_PAUSE;
            }
            Ok(Event::Apply(item)) => {
                report(Change::Applied(item.object));
                pause = FIRST_PAUSE;
            }
            Ok(Event::Delete(item)) => report(Change::Deleted(item.object)),
            Err(error) => {
                if is_not_served(&error) {
                    report(Change::NotServed);
                } else if is_expired(&error) {
                    // Quiet watches fall behind now and then; the next poll lists again.
                    tracing::debug!(%error, "watch is too old, listing again");
                    continue;
                } else {
                    tracing::warn!(%error, "watch failed, will retry");
                }
                // The stream goes on by itself when it is polled again.
                _ = tokio::time::timeout(pause, recheck.notified()).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == 410)
}

fn is_not_served(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => return false,
    };
    code == 404
}

impl<T> Change<T> {
    /// The same change of something else.
    pub fn map<U>(self, into: impl Fn(T) -> U) -> Change<U> {
        match self {
            Self::Listed(all) => Change::Listed(all.into_iter().map(into).collect()),
            Self::Applied(one) => Change::Applied(into(one)),
            Self::Deleted(one) => Change::Deleted(into(one)),
            Self::NotServed => Change::NotServed,
        }
    }
}
