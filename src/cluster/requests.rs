//! Requests to the API server by outcome. A missing right or throttling shows here first.

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower::{Layer, Service};

/// Code of requests without an answer.
const NO_ANSWER: &str = "none";

/// Counter of requests; clones count into the same numbers.
#[derive(Clone, Debug, Default)]
pub struct ApiRequests(Family<Answered, Counter>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: String,
    code: String,
}

impl ApiRequests {
    pub fn register(registry: &mut Registry) -> Self {
        let requests = Self::default();
        // Initialized, so that an alert sees the first one.
        for method in [Method::GET, Method::POST, Method::PATCH] {
            for code in [StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS] {
                _ = requests.0.get_or_create(&Answered { method: method.to_string(), code: code.as_str().to_owned() });
            }
        }
        let help = "Requests to the API server by HTTP method and status; \"none\" if no answer came";
        registry.register("api_requests", help, requests.0.clone());
        requests
    }
}

impl<S> Layer<S> for ApiRequests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting { inner, requests: self.clone() }
    }
}

#[derive(Clone, Debug)]
pub struct Counting<S> {
    inner: S,
    requests: ApiRequests,
}

/// One request in flight. Dropped before an answer, it counts as unanswered.
struct InFlight {
    requests: ApiRequests,
    method: Method,
    code: Option<StatusCode>,
}

impl InFlight {
    fn answered(&mut self, code: StatusCode) {
        self.code = Some(code);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let code = self.code.as_ref().map_or(NO_ANSWER, StatusCode::as_str).to_owned();
        self.requests.0.get_or_create(&Answered { method: self.method.to_string(), code }).inc();
    }
}

impl<S, A, B> Service<Request<A>> for Counting<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let mut counted = InFlight { requests: self.requests.clone(), method: request.method().clone(), code: None };
        let answer = self.inner.call(request);
        let counting = async move {
            let answer = answer.await;
            if let Ok(answer) = &answer {
                counted.answered(answer.status());
            }
            answer
        };
        counting.boxed()
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn requests_are_counted_by_their_answers_and_those_without_one_as_well() {
        let requests = ApiRequests::register(&mut Registry::default());
        let answers = requests.layer(tower::service_fn(|request: Request<()>| async move {
            match request.uri().path() {
                "/silent" => std::future::pending().await,
                "/broken" => Err(std::io::Error::other("closed")),
                _ => Ok(Response::builder().status(429).body(()).unwrap()),
            }
        }));
        let ask = |path: &str| answers.clone().oneshot(Request::patch(path).body(()).unwrap());
        assert!(ask("/").await.is_ok() && ask("/broken").await.is_err());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), ask("/silent")).await.is_err());
        let count = |code: &str| {
            requests.0.get_or_create(&Answered { method: "PATCH".to_owned(), code: code.to_owned() }).get()
        };
        assert_eq!((count("429"), count(NO_ANSWER), count("403")), (1, 2, 0));
    }
}
