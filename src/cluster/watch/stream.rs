//! One watch: list, then events, without end. Errors back off; a kind that is not served is awaited.
//!
//! kube's watcher, its requests and its futures are large, and are compiled for each type that they return: here they return
//! text, and only the reading of an object is compiled for its type.

use std::time::Duration;

use futures::{Stream, StreamExt, pin_mut};
use kube::Client;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::ObjectKind;
use crate::cluster::index::{Change, Readable};
use crate::cluster::objects::api;
use crate::cluster::watch::watched::Text;
use crate::rules::DecodeError;
use crate::rules::decode::decode;

/// Pause after the first failure in a row; doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Objects of a page, where the API server does not stream lists. Pages of 500 take three times as long.
const PAGE: u32 = 5_000;

/// Interval of log lines of a failing watch: a kind that may not be read fails every few seconds.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The objects of a watch: a kind, in one namespace or in all, with or without a label selector.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    pub kind: ObjectKind,
    pub namespace: Option<&'a str>,
    pub selector: Option<&'a str>,
}

impl<'a> Selection<'a> {
    /// Returns all objects of a kind.
    pub const fn all(kind: ObjectKind) -> Self {
        Self::within(None, kind)
    }

    /// Returns the objects of a kind in one namespace, or in all.
    pub const fn within(namespace: Option<&'a str>, kind: ObjectKind) -> Self {
        Self { kind, namespace, selector: None }
    }
}

/// Watches objects until the task is dropped. `recheck` wakes a watch that waits for its kind to be served.
pub async fn watch<T>(
    client: &Client,
    selection: Selection<'_>,
    recheck: &Notify,
    mut report: impl FnMut(Change<T>) + Send,
) where
    T: Readable,
{
    let mut listed = Vec::new();
    let mut take = |step: Step<'_>| {
        match step {
            Step::Began => listed.clear(),
            Step::Item(text) => listed.push(decode(text)?),
            Step::Listed => report(Change::Listed(std::mem::take(&mut listed))),
            Step::Applied(text) => report(Change::Applied(decode(text)?)),
            Step::Deleted(text) => report(Change::Deleted(decode(text)?)),
            Step::NotServed => report(Change::NotServed),
        }
        Ok(())
    };
    watch_text(client, selection, recheck, &mut take).await;
}

/// A step of a watch, with the JSON of its object.
enum Step<'a> {
    /// A list begins.
    Began,
    Item(&'a str),
    Listed,
    Applied(&'a str),
    Deleted(&'a str),
    NotServed,
}

/// Takes a step. An object that cannot be read is an error: the watch begins anew.
type Take<'a> = &'a mut (dyn FnMut(Step<'_>) -> Result<(), DecodeError> + Send);

async fn watch_text(client: &Client, selection: Selection<'_>, recheck: &Notify, take: Take<'_>) {
    let mut config = watcher::Config::default().page_size(PAGE);
    if let Some(selector) = selection.selector {
        config = config.labels(selector);
    }
    let api = match api::<Text>(client, selection.kind, selection.namespace).all() {
        Ok(api) => api,
        Err(error) => return tracing::error!(%error, "cannot be watched"),
    };
    // The watch begins with the list, in one answer; where the API server cannot do that, the list comes in pages.
    let mut streams = true;
    loop {
        let config = if streams { config.clone().streaming_lists() } else { config.clone() };
        let End::NoStreamedLists = follow(watcher(api.clone(), config), streams, recheck, take).await else { continue };
        tracing::debug!("this API server does not stream lists");
        streams = false;
    }
}

/// Why a watcher is left.
enum End {
    /// The API server does not stream lists.
    NoStreamedLists,
    /// An object cannot be read.
    Unreadable,
}

/// Reports the events of a watcher until it has to be left.
async fn follow(
    stream: impl Stream<Item = Result<Event<Text>, watcher::Error>>,
    streams: bool,
    recheck: &Notify,
    take: Take<'_>,
) -> End {
    pin_mut!(stream);
    let (mut pause, mut expired) = (FIRST_PAUSE, false);
    let mut failures = Failures::default();
    while let Some(event) = stream.next().await {
        let taken = match &event {
            Ok(Event::Init) => take(Step::Began),
            Ok(Event::InitApply(item)) => take(Step::Item(item.json())),
            Ok(Event::InitDone) => {
                (pause, expired) = (FIRST_PAUSE, false);
                take(Step::Listed)
            }
            Ok(Event::Apply(item)) => {
                pause = FIRST_PAUSE;
                take(Step::Applied(item.json()))
            }
            Ok(Event::Delete(item)) => take(Step::Deleted(item.json())),
            Err(error) => {
                if streams && is_refused(error) {
                    return End::NoStreamedLists;
                }
                if is_not_served(error) {
                    _ = take(Step::NotServed);
                } else if is_expired(error) && !std::mem::replace(&mut expired, true) {
                    // Quiet watches fall behind now and then. The next poll lists again, without a pause only the first time.
                    tracing::debug!(%error, "watch is too old, listing again");
                    continue;
                } else if let Some(failures) = failures.told(Instant::now()) {
                    tracing::warn!(%error, failures, "watch failed, will retry");
                }
                // The stream continues when it is polled again.
                _ = tokio::time::timeout(pause, recheck.notified()).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                Ok(())
            }
        };
        if let Err(error) = taken {
            tracing::warn!(%error, "an object cannot be read, the watch begins anew");
            tokio::time::sleep(LONGEST_PAUSE).await;
            return End::Unreadable;
        }
    }
    End::Unreadable
}

/// Failures of a watch since the last log line.
#[derive(Default)]
struct Failures {
    count: u64,
    told: Option<Instant>,
}

impl Failures {
    /// Counts a failure; returns the count when a log line is due.
    fn told(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.told.is_some_and(|told| now.duration_since(told) < TOLD_EVERY) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

/// Reports whether the API server refuses the parameters of a streamed list, as Kubernetes before 1.34 does by default.
fn is_refused(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::api::Pod;
    use crate::api::pod::POD;

    #[test]
    fn a_watch_that_goes_on_failing_says_once_a_minute_how_often() {
        let (mut failures, begin) = (Failures::default(), Instant::now());
        let told = (0..=26).map(|number| failures.told(begin + number * Duration::from_secs(5)));
        let told: Vec<_> = told.enumerate().filter_map(|(number, told)| Some((number, told?))).collect();
        assert_eq!(told, [(0, 1), (12, 12), (24, 12)]);
    }

    /// An API server with one pod that does not stream lists.
    async fn before_1_34(request: Request<Body>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
        let query = request.uri().query().unwrap_or_default();
        let (code, answer) = if query.contains("sendInitialEvents=true") {
            let message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            (
                422,
                json!({ "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422, "message": message }),
            )
        } else if query.contains("watch=true") {
            std::future::pending().await
        } else {
            let pod = json!({ "metadata": { "name": "p", "namespace": "ns", "resourceVersion": "1" } });
            (200, json!({ "kind": "PodList", "metadata": { "resourceVersion": "1" }, "items": [pod] }))
        };
        let answer = Response::builder().status(code).body(Full::new(answer.to_string().into()));
        Ok(answer.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_answers_every_watch_as_expired_is_not_asked_without_a_pause() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let expired = move |_: Request<Body>| {
            // Without a pause the test would never end.
            assert!(counted.fetch_add(1, Ordering::SeqCst) < 100, "it is asked without a pause");
            let status =
                json!({ "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "" });
            let event = json!({ "type": "ERROR", "object": status });
            std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from(format!(
                "{event}\n"
            ))))))
        };
        let client = Client::new(tower::service_fn(expired), "ns");
        let never = Notify::new();
        let watching = watch(&client, Selection::all(POD), &never, |change: Change<Pod>| panic!("{change:?}"));
        _ = tokio::time::timeout(Duration::from_secs(60), watching).await;
        let asked = asked.load(Ordering::SeqCst);
        assert!((10..40).contains(&asked), "asked {asked} times in a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_does_not_stream_lists_is_asked_for_pages() {
        let client = Client::new(tower::service_fn(before_1_34), "ns");
        let (told, mut changes) = tokio::sync::mpsc::unbounded_channel();
        let never = Notify::new();
        let watching = watch(&client, Selection::all(POD), &never, |change: Change<Pod>| _ = told.send(change));
        tokio::select! {
            () = watching => panic!("the watch is over"),
            change = changes.recv() => match change {
                Some(Change::Listed(pods)) => assert_eq!(pods[0].metadata.display_name(), "p"),
                other => panic!("{other:?}"),
            }
        }
    }
}
