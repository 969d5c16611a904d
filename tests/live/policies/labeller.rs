//! A webhook of somebody else: gives pods their group in admission.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::common::tls::TlsListener;

/// Serves in the background, and returns how the API server reaches it.
pub async fn serve() -> Value {
    let server = TlsListener::bind().await;
    let configured = json!({"url": format!("https://{}/", server.address), "caBundle": BASE64.encode(&server.ca)});
    tokio::spawn(server.serve(answer));
    configured
}

/// Labels pods that ask for it with the label `late`.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let request = &review["request"];
    let patch = json!([{"op": "add", "path": "/metadata/labels/rolegate.dev~1group", "value": "llm"}]);
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if request["object"]["metadata"]["labels"]["late"].is_string() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = BASE64.encode(patch.to_string()).into();
    }
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(Response::new(Full::from(answer.to_string())))
}
