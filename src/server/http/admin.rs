//! The admin port: liveness, readiness and metrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;

use crate::cluster::failure;
use crate::cluster::locked::locked;
use crate::cluster::metrics::Gauges;

/// The content type that Prometheus expects of `OpenMetrics` text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Checks = BTreeMap<String, Result<(), String>>;

/// The readiness checks of the process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    checks: Arc<Mutex<Checks>>,
    /// Mode shown by `?verbose`.
    mode: Arc<OnceLock<&'static str>>,
}

impl Readiness {
    /// Adds a check, which fails until it is first set. A second check of the same name replaces the first.
    pub fn register(&self, name: &str) -> Check {
        locked(&self.checks).insert(name.to_owned(), Err("not checked yet".to_owned()));
        Check { name: name.to_owned(), readiness: self.clone() }
    }

    /// Reports whether every check passes.
    pub fn is_ready(&self) -> bool {
        locked(&self.checks).values().all(Result::is_ok)
    }

    /// Returns the names and reasons of failing checks.
    pub fn failing(&self) -> Vec<(String, String)> {
        let failing = |(name, state): (&String, &Result<(), String>)| Some((name.clone(), state.clone().err()?));
        locked(&self.checks).iter().filter_map(failing).collect()
    }

    /// Sets the mode that `?verbose` shows.
    pub fn tell_mode(&self, mode: &'static str) {
        _ = self.mode.set(mode);
    }

    /// Registers the checks as metrics.
    pub fn show(&self, registry: &mut Registry) {
        let shown = self.clone();
        let read = move || {
            locked(&shown.checks).iter().map(|(name, state)| (name.clone(), i64::from(state.is_ok()))).collect()
        };
        let help = "1 while this check passes; the process is ready while all do";
        registry.register_collector(Box::new(Gauges { name: "ready", help, label: "check", read }));
    }

    fn report(&self, verbose: bool) -> (StatusCode, String) {
        let checks = locked(&self.checks);
        let ready = checks.values().all(Result::is_ok);
        let mut text = String::new();
        for (name, state) in checks.iter() {
            let _ = match state {
                Ok(()) if verbose => writeln!(text, "[+] {name} ok"),
                Ok(()) => Ok(()),
                Err(why) if verbose => writeln!(text, "[-] {name} failed: {why}"),
                Err(why) => writeln!(text, "{name}: {why}"),
            };
        }
        if let Some(mode) = self.mode.get().filter(|_| verbose) {
            _ = writeln!(text, "mode {mode}");
        }
        if ready {
            text.push_str("ok");
        }
        (if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text)
    }
}

/// One check. It fails for good when dropped, since nothing watches its subject any more.
#[derive(Debug)]
pub struct Check {
    name: String,
    readiness: Readiness,
}

impl Check {
    /// Sets the state; `reason` is shown while the check fails.
    pub fn set(&self, ok: bool, reason: impl Into<String>) {
        let state = if ok { Ok(()) } else { Err(failure::one_line(&reason.into())) };
        let known = locked(&self.readiness.checks).insert(self.name.clone(), state.clone());
        match state {
            Ok(()) if known != Some(Ok(())) => tracing::info!(check = self.name, "readiness check passes"),
            Err(why) if known.as_ref().is_some_and(Result::is_ok) => {
                tracing::warn!(check = self.name, why, "readiness check fails");
            }
            _ => {}
        }
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        self.set(false, "no longer checked");
    }
}

/// Returns the routes `/livez`, `/readyz` (with `?verbose`) and `/metrics`.
///
/// `/livez` only reports that the process answers. A restart cures no other fault.
pub fn router(readiness: Readiness, registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(metrics).with_state(registry))
}

async fn readyz(State(readiness): State<Readiness>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let verbose =
        query.is_some_and(|query| query.split('&').any(|key| key == "verbose" || key.starts_with("verbose=")));
    readiness.report(verbose)
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn get(router: &Router, path: &str) -> (u16, String, String) {
        let response = router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, kind.unwrap_or_default(), String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_lists_what_fails() {
        let (readiness, mut registry) = (Readiness::default(), Registry::default());
        readiness.show(&mut registry);
        let router = router(readiness.clone(), Arc::new(registry));
        assert_eq!(get(&router, "/readyz").await.2, "ok");
        let (dial, watch) = (readiness.register("dial"), readiness.register("watch"));
        assert_eq!(get(&router, "/readyz").await.2, "dial: not checked yet\nwatch: not checked yet\n");
        dial.set(true, "");
        watch.set(false, "two\nlines");
        assert_eq!(get(&router, "/readyz").await.0, 503);
        assert_eq!(get(&router, "/readyz").await.2, "watch: two lines\n");
        assert_eq!(get(&router, "/readyz?verbose").await.2, "[+] dial ok\n[-] watch failed: two lines\n");
        let metrics = get(&router, "/metrics").await.2;
        assert!(metrics.contains("ready{check=\"dial\"} 1\nready{check=\"watch\"} 0\n"), "{metrics}");
        watch.set(true, "");
        assert_eq!(get(&router, "/readyz?verbose").await.2, "[+] dial ok\n[+] watch ok\nok");
        drop(dial);
        assert_eq!(readiness.failing(), [("dial".to_owned(), "no longer checked".to_owned())]);
        assert!(!readiness.is_ready());
        assert_eq!(get(&router, "/livez").await.0, 200);
    }

    #[tokio::test]
    async fn metrics_are_openmetrics_text() {
        let mut registry = Registry::with_prefix("rolegate");
        crate::server::http::metrics::register(&mut registry);
        let (status, kind, text) = get(&router(Readiness::default(), Arc::new(registry)), "/metrics").await;
        assert_eq!((status, kind.as_str()), (200, OPENMETRICS));
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
