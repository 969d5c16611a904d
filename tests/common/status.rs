//! An observer of a group's status: records every version in order.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::wait::PATIENT;

/// A status of a group; `null` before the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status(pub Value);

/// A status and its resourceVersion.
#[derive(Clone, Debug)]
struct Written {
    version: u64,
    status: Status,
}

impl Status {
    /// Returns a condition in one line, `False PartialDeployment: 15/150 pods ready`; `""` when absent.
    pub fn condition(&self, kind: &str) -> String {
        let conditions = self.0["conditions"].as_array().into_iter().flatten();
        let Some(found) = conditions.into_iter().find(|condition| condition["type"] == kind) else {
            return String::new();
        };
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        let line = format!("{} {}: {}", text("status"), text("reason"), text("message"));
        line.trim_end_matches(": ").to_owned()
    }

    pub fn ready(&self) -> String {
        self.condition("Ready")
    }

    pub fn minimum(&self) -> String {
        self.condition("MinimumSegmentsAvailable")
    }

    pub fn progressing(&self) -> String {
        self.condition("Progressing")
    }

    /// Returns the hold reason; `""` when no pod is held.
    pub fn reason(&self) -> &str {
        self.0["summary"]["reason"].as_str().unwrap_or_default()
    }

    /// Returns the committed released count of a role; 0 before the first commit.
    pub fn released(&self, role: &str) -> u64 {
        self.0["coordinationState"][0]["progress"][role]["released"].as_u64().unwrap_or(0)
    }

    /// Returns the state of a role in the first coordination.
    pub fn state(&self, role: &str) -> &str {
        self.0["coordinationState"][0]["progress"][role]["state"].as_str().unwrap_or_default()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

/// A watch of one group; it ends on drop.
pub struct StatusLog {
    all: Arc<Mutex<Vec<Written>>>,
    changed: watch::Receiver<()>,
    _task: AbortOnDropHandle<()>,
}

impl StatusLog {
    /// Starts the watch; the group, and its kind, may be created later.
    pub fn start(api: Api<DynamicObject>, name: &str) -> Self {
        let all = Arc::new(Mutex::new(Vec::new()));
        let (tell, changed) = watch::channel(());
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let writing = all.clone();
        let task = tokio::spawn(async move {
            let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
            while let Some(event) = stream.next().await {
                if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
                    let status = Status(object.data["status"].clone());
                    let version = object.metadata.resource_version.and_then(|version| version.parse().ok());
                    let mut all = writing.lock().unwrap();
                    if all.last().is_none_or(|last: &Written| last.status != status) {
                        all.push(Written { version: version.unwrap_or_default(), status });
                    }
                    tell.send_replace(());
                }
            }
        });
        Self { all, changed, _task: AbortOnDropHandle::new(task) }
    }

    /// Returns every version so far, in order.
    pub fn all(&self) -> Vec<Status> {
        self.all.lock().unwrap().iter().map(|written| written.status.clone()).collect()
    }

    /// Returns the last status before a resourceVersion.
    pub fn before(&self, version: u64) -> Status {
        let all = self.all.lock().unwrap();
        all.iter().rfind(|written| written.version < version).map(|written| written.status.clone()).unwrap_or_default()
    }

    /// Returns the released counts of a role without repetitions, in order.
    pub fn released_counts(&self, role: &str) -> Vec<u64> {
        let mut counts: Vec<_> = self.all().iter().map(|status| status.released(role)).collect();
        counts.dedup();
        counts
    }

    /// Returns the last version; `null` before the first.
    pub fn now(&self) -> Status {
        self.all.lock().unwrap().last().map(|written| written.status.clone()).unwrap_or_default()
    }

    /// Waits until the status passes a test, and returns it.
    pub async fn until(&self, what: &str, test: impl Fn(&Status) -> bool) -> Status {
        self.until_within(PATIENT, what, test).await
    }

    /// Like [`StatusLog::until`], with another deadline.
    pub async fn until_within(&self, deadline: Duration, what: &str, test: impl Fn(&Status) -> bool) -> Status {
        let mut changed = self.changed.clone();
        let waiting = async {
            loop {
                let now = self.now();
                if test(&now) {
                    return now;
                }
                changed.changed().await.unwrap();
            }
        };
        let came = tokio::time::timeout(deadline, waiting).await.ok();
        came.unwrap_or_else(|| panic!("not within {deadline:?}: {what}\nfound: {}", self.now()))
    }
}
