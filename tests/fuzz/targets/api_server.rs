//! The webhook, with nothing behind it but the objects of an input: whatever it asks for is read from these.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Method, Request, Response, header};
use kube::Client;
use prometheus_client::registry::Registry;
use rolegate::api::pod_group::POD_GROUP;
use rolegate::cluster::index::{Change, SharedIndex};
use rolegate::cluster::read::lookup::Lookup;
use rolegate::cluster::read::shortages::Shortages;
use rolegate::mutate::PodSettings;
use rolegate::rules::Options;
use rolegate::server::admission::Admission;
use rolegate::server::admission::beside::Beside;
use rolegate::server::admission::metrics::AdmissionMetrics;
use rolegate::server::http::body::Bodies;
use rolegate::server::http::limits::Limits;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use super::scenario::{text, type_of};

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
}

/// Runs to its end on a runtime of this thread.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let done = work.await;
            // A client has a task of its own, which ends with it: only a runtime that comes to look at its tasks frees them.
            tokio::task::yield_now().await;
            done
        })
    })
}

/// A client of an API server that answers by a function. To be called within [`block_on`].
pub fn client(answer: impl Fn(&Method, &str, &[u8]) -> (u16, Value) + Send + Sync + 'static) -> Client {
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap_or_default();
            let (status, value) = answer(&parts.method, parts.uri.path(), &body);
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
            Ok::<_, Infallible>(response.body(kube::client::Body::from(value.to_string().into_bytes())).unwrap())
        }
    });
    Client::new(service, "default")
}

/// What is said of an object that is not there.
pub fn not_found() -> (u16, Value) {
    (404, json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404 }))
}

/// The plural of a kind, as all kinds that are read here have theirs.
pub fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"))
}

/// Answers a request from these objects.
fn serve(objects: &[Value], method: &Method, path: &str) -> (u16, Value) {
    if *method == Method::POST {
        return (201, json!({ "status": { "allowed": true } }));
    }
    let mut steps: Vec<_> = path.trim_matches('/').split('/').collect();
    // The version of the core group stands where others have their group.
    let prefix = if steps.first() == Some(&"api") { 1 } else { 2 };
    if steps.len() <= prefix {
        return not_found();
    }
    let root: Vec<_> = steps.drain(..=prefix).skip(1).collect();
    let (api_version, mut namespace) = (root.join("/"), None);
    if steps.len() > 2 && steps[0] == "namespaces" {
        namespace = Some(steps[1]);
        steps.drain(..2);
    }
    let is_meant = |object: &&Value| {
        let (version, kind) = type_of(object);
        let of = text(object, "/metadata/namespace");
        version == api_version
            && Some(&plural(kind).as_str()) == steps.first()
            && namespace.is_none_or(|namespace| namespace == if of.is_empty() { "default" } else { of })
    };
    let mut found = objects.iter().filter(is_meant);
    match steps.get(1) {
        None if steps.is_empty() => not_found(),
        None => (
            200,
            json!({ "apiVersion": api_version, "kind": "List", "metadata": {}, "items": found.collect::<Vec<_>>() }),
        ),
        Some(name) => {
            let object = found.find(|object| text(object, "/metadata/name") == *name);
            object.map_or_else(not_found, |object| (200, object.clone()))
        }
    }
}

/// The webhook.
pub struct Webhook(Router);

impl Webhook {
    /// Before these objects. To be called within [`block_on`].
    pub fn before(objects: Vec<Value>) -> Self {
        let index = SharedIndex::default();
        let is_of_pod_groups = |object: &&Value| {
            let is_definition = type_of(object) == ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
            is_definition && text(object, "/metadata/name") == POD_GROUP.crd_name()
        };
        let definitions = objects.iter().filter(is_of_pod_groups);
        let definitions = definitions.filter_map(|object| serde_json::from_value(object.clone()).ok()).collect();
        index.write(|index| index.definition_change(Change::Listed(definitions)));
        let client = client(move |method, path, _| serve(&objects, method, path));
        let admission = Admission {
            lookup: Lookup::new(client.clone(), index.clone(), Options::default()),
            shortages: Shortages::new(client, index, None),
            kai_pods: true,
            strict: false,
            pods: PodSettings::default(),
            bodies: Bodies::new(&Limits::default()),
            beside: Beside::default(),
            metrics: AdmissionMetrics::register(&mut Registry::default()),
        };
        Self(admission.router())
    }

    /// What is answered to a body: the review's answer, or why there is none that can be read.
    pub async fn ask(&self, path: &str, body: Vec<u8>) -> Result<Value, String> {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body)).unwrap();
        let answer = self.0.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(!body.contains("panicked"), "{body}");
        match status {
            // An API server reads 10,000 levels, `serde_json` 128; a conversion adds one to those of what was asked.
            200 => serde_json::from_str(&body).map_err(|error| {
                assert!(error.to_string().starts_with("recursion limit exceeded"), "{error}: {body}");
                error.to_string()
            }),
            400 | 500 => Err(body),
            other => panic!("answered {other}: {body}"),
        }
    }
}
