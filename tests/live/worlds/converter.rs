//! The conversion webhook of RBG's operator: what one version does not have is dropped on the way to it, and when the operator
//! is away every conversion fails.

use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio_util::task::AbortOnDropHandle;

use crate::common::prelude::*;
use crate::common::tls::TlsListener;

/// The annotation that is lost on the way to v1alpha1 (`rolebasedgroup_conversion.go` of v0.8.0-alpha.5).
pub const GROUP_GANG: &str = "rbg.workloads.x-k8s.io/group-gang-scheduling";

/// A running one; it ends with this handle.
pub struct Converter {
    address: SocketAddr,
    ca: String,
    is_away: Arc<AtomicBool>,
    _task: AbortOnDropHandle<()>,
}

impl Converter {
    pub async fn start() -> Self {
        let server = TlsListener::bind().await;
        let (address, ca, is_away) = (server.address, server.ca.clone(), Arc::new(AtomicBool::new(false)));
        let away = is_away.clone();
        let task = tokio::spawn(server.serve(move |request| answer(away.clone(), request)));
        Self { address, ca, is_away, _task: AbortOnDropHandle::new(task) }
    }

    /// `spec.conversion` of a definition.
    pub fn conversion(&self) -> Value {
        let bundle = base64::engine::general_purpose::STANDARD.encode(&self.ca);
        let client = json!({ "url": format!("https://{}/convert", self.address), "caBundle": bundle });
        let webhook = json!({ "clientConfig": client, "conversionReviewVersions": ["v1"] });
        json!({ "strategy": "Webhook", "webhook": webhook })
    }

    /// From now on it answers with 500, or converts.
    pub fn is_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }
}

async fn answer(is_away: Arc<AtomicBool>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    if is_away.load(Ordering::SeqCst) {
        return Ok(Response::builder().status(500).body(Full::default()).unwrap());
    }
    let review: Value = serde_json::from_slice(&body).unwrap();
    let request = &review["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap().iter();
    let converted: Vec<_> = objects.map(|object| converted(object.clone(), version)).collect();
    let response = json!({ "uid": request["uid"], "result": { "status": "Success" }, "convertedObjects": converted });
    let review = json!({ "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response });
    let answer = Response::builder().header("content-type", "application/json");
    Ok(answer.body(Full::new(Bytes::from(review.to_string()))).unwrap())
}

fn converted(mut object: Value, version: &str) -> Value {
    object["apiVersion"] = json!(version);
    if version.ends_with("/v1alpha1")
        && let Some(annotations) = object["metadata"]["annotations"].as_object_mut()
    {
        annotations.remove(GROUP_GANG);
    }
    if version.ends_with("/v1alpha2")
        && let Some(spec) = object["spec"].as_object_mut()
    {
        spec.remove("coordination");
    }
    object
}
