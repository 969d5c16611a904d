//! Requests to the API server by outcome. A missing right or throttling shows here first.

use http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::cluster::metrics::shown;

/// Code of requests without an answer.
pub const NO_ANSWER: &str = "none";

/// Counter of requests; clones count into the same numbers.
#[derive(Clone, Debug, Default)]
pub struct ApiRequests(Family<[(&'static str, String); 2], Counter>);

impl ApiRequests {
    pub fn register(registry: &mut Registry) -> Self {
        let help = "Requests to the API server by HTTP method and status; \"none\" if no answer came";
        let requests = Self(shown(registry, "api_requests", help));
        // Initialized, so that an alert sees the first one.
        for method in [Method::GET, Method::POST, Method::PATCH] {
            for code in [StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS] {
                _ = requests.of(method.as_str(), code.as_str());
            }
        }
        requests
    }

    pub fn begin(&self, method: &Method) -> InFlight {
        InFlight { requests: self.clone(), method: method.clone(), code: None }
    }

    /// Returns the counter of an HTTP method and a status.
    pub fn of(&self, method: &str, code: &str) -> Counter {
        self.0.get_or_create(&[("method", method.to_owned()), ("code", code.to_owned())]).clone()
    }
}

/// One request in flight. Dropped before an answer, it counts as unanswered.
pub struct InFlight {
    requests: ApiRequests,
    method: Method,
    code: Option<StatusCode>,
}

impl InFlight {
    pub fn answered(&mut self, code: StatusCode) {
        self.code = Some(code);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let code = self.code.as_ref().map_or(NO_ANSWER, StatusCode::as_str);
        self.requests.of(self.method.as_str(), code).inc();
    }
}
