//! Age of the caches: the time since the API server last sent anything on each watch. A quiet watch gets a bookmark about
//! once a minute. The watcher does not expose it, so all responses are observed here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use http_body_util::combinators::MapFrame;
use hyper::body::{Body, Frame};
use kube::client::Body as RequestBody;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::Service;

use crate::api::ObjectKind;
use crate::cluster::locked::locked;
use crate::cluster::metrics::ApiRequests;
use crate::cluster::metrics::Gauges;
use crate::cluster::objects::root;
use crate::cluster::watch::{is_watch, parameters};

/// The time of the last data on each watch; clones share one state.
#[derive(Clone, Debug, Default)]
pub struct CacheAges(Arc<Mutex<HashMap<Watch, Instant>>>);

/// Identity of a watch; a restarted watch has the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watch {
    path: String,
    selector: String,
}

impl CacheAges {
    pub fn register(registry: &mut Registry) -> Self {
        let ages = Self::default();
        let help = "Seconds since the API server last said anything on the watch of a kind: an event, a bookmark, or that it begins";
        let shown = ages.clone();
        let read = move || shown.seconds().into_iter().collect();
        registry.register_collector(Box::new(Gauges { name: "cache_age_seconds", help, label: "kind", read }));
        ages
    }

    fn heard(&self, watch: &Watch) {
        let mut all = locked(&self.0);
        match all.get_mut(watch) {
            Some(at) => *at = Instant::now(),
            None => _ = all.insert(watch.clone(), Instant::now()),
        }
    }

    /// Drops the age of a kind that is no longer watched in all namespaces.
    pub fn stopped(&self, kind: ObjectKind) {
        self.forget(&Watch { path: format!("{}/{}", root(kind), kind.plural), selector: String::new() });
    }

    fn forget(&self, watch: &Watch) {
        locked(&self.0).remove(watch);
    }

    /// Returns the seconds by kind, of the watch that was silent for longest.
    fn seconds(&self) -> BTreeMap<String, f64> {
        let mut oldest = BTreeMap::new();
        for (watch, at) in &*locked(&self.0) {
            let (age, known) = (at.elapsed().as_secs_f64(), oldest.entry(watch.kind()).or_insert(0.0_f64));
            *known = known.max(age);
        }
        oldest
    }
}

impl Watch {
    /// Returns the collection that a request lists or watches, and whether it watches.
    fn of(uri: &Uri) -> (Self, bool) {
        let selector = parameters(uri).find(|parameter| parameter.starts_with("labelSelector=")).unwrap_or_default();
        (Self { path: uri.path().to_owned(), selector: selector.to_owned() }, is_watch(uri))
    }

    /// Returns the kind as kubectl names it: `pods`, `deployments.v1.apps`.
    fn kind(&self) -> String {
        let parts: Vec<_> = self.path.trim_matches('/').split('/').collect();
        let plural = parts.last().copied().unwrap_or_default();
        match parts.as_slice() {
            ["apis", group, version, ..] => format!("{plural}.{version}.{group}"),
            _ => plural.to_owned(),
        }
    }
}

/// Records cache ages and counts requests.
#[derive(Clone, Debug)]
pub struct Listened<S> {
    pub inner: S,
    pub ages: CacheAges,
    pub requests: ApiRequests,
}

/// Records the time of a frame, and returns the frame.
type Note<D> = Box<dyn FnMut(Frame<D>) -> Frame<D> + Send>;

impl<S, B> Service<Request<RequestBody>> for Listened<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Body + 'static,
{
    type Response = Response<MapFrame<B, Note<B::Data>>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let (ages, (watch, watches)) = (self.ages.clone(), Watch::of(request.uri()));
        let mut counted = self.requests.begin(request.method());
        let answer = self.inner.call(request);
        let listening = async move {
            let answer = answer.await?;
            counted.answered(answer.status());
            let watches = watches && answer.status().is_success();
            if watches {
                ages.heard(&watch);
            } else if answer.status() == StatusCode::NOT_FOUND {
                // The kind is no longer served: nobody waits for its events.
                ages.forget(&watch);
            }
            Ok(answer.map(|body| {
                let note: Note<B::Data> = Box::new(move |frame| {
                    if watches {
                        ages.heard(&watch);
                    }
                    frame
                });
                body.map_frame(note)
            }))
        };
        listening.boxed()
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;
    use crate::cluster::metrics::NO_ANSWER;

    #[tokio::test]
    async fn requests_are_counted_by_their_answers_and_those_without_one_as_well() {
        let requests = ApiRequests::register(&mut Registry::default());
        let inner = tower::service_fn(|request: Request<RequestBody>| async move {
            match request.uri().path() {
                "/silent" => std::future::pending().await,
                "/broken" => Err(std::io::Error::other("closed")),
                _ => Ok(Response::builder().status(429).body(RequestBody::empty()).unwrap()),
            }
        });
        let answers = Listened { inner, ages: CacheAges::default(), requests: requests.clone() };
        let ask = |path: &str| answers.clone().oneshot(Request::patch(path).body(RequestBody::empty()).unwrap());
        assert!(ask("/").await.is_ok() && ask("/broken").await.is_err());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), ask("/silent")).await.is_err());
        let count = |code: &str| requests.of("PATCH", code).get();
        assert_eq!((count("429"), count(NO_ANSWER), count("403")), (1, 2, 0));
    }

    #[test]
    fn a_watch_that_was_ended_has_no_age() {
        use crate::api::node::NODE;
        use crate::api::workload::STATEFUL_SET;
        let ages = CacheAges::default();
        for uri in ["/api/v1/nodes?&watch=true", "/apis/apps/v1/statefulsets?&watch=true"] {
            ages.heard(&Watch::of(&uri.parse().unwrap()).0);
        }
        assert_eq!(ages.seconds().into_keys().collect::<Vec<_>>(), ["nodes", "statefulsets.v1.apps"]);
        [NODE, STATEFUL_SET].iter().for_each(|kind| ages.stopped(*kind));
        assert!(ages.seconds().is_empty());
    }

    #[test]
    fn watches_are_told_apart_by_kind() {
        let kind = |uri: &str| {
            let (watch, watches) = Watch::of(&uri.parse().unwrap());
            (watch.kind(), watch.selector, watches)
        };
        let selector = "labelSelector=rolegate.dev%2Fgroup".to_owned();
        assert_eq!(
            kind("/api/v1/pods?&labelSelector=rolegate.dev%2Fgroup&watch=true&timeoutSeconds=290"),
            ("pods".to_owned(), selector, true)
        );
        assert_eq!(
            kind("/apis/apps/v1/namespaces/ns/deployments?&limit=500"),
            ("deployments.v1.apps".to_owned(), String::new(), false)
        );
    }
}
