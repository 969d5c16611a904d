//! Requests to the API server by outcome. A missing right or throttling shows here first.

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Code of requests without an answer.
pub const NO_ANSWER: &str = "none";

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

    pub fn begin(&self, method: &Method) -> InFlight {
        InFlight { requests: self.clone(), method: method.clone(), code: None }
    }

    #[cfg(test)]
    pub fn count(&self, method: &str, code: &str) -> u64 {
        self.0.get_or_create(&Answered { method: method.to_owned(), code: code.to_owned() }).get()
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
        let code = self.code.as_ref().map_or(NO_ANSWER, StatusCode::as_str).to_owned();
        self.requests.0.get_or_create(&Answered { method: self.method.to_string(), code }).inc();
    }
}
