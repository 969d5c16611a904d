//! A webhook in place of rolegate that answers every pod with the same patch: it measures what any webhook costs the
//! API server.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use json_patch::jsonptr::Token;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::common::rolegate::Rolegate;
use crate::common::stage::typed;
use crate::common::tls::TlsListener;
use crate::common::{Group, PATIENT, eventually};

/// A running webhook; it ends on drop.
pub struct ConstantWebhook {
    asked: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl ConstantWebhook {
    /// Replaces a rolegate: its webhook configuration, with all conditions, points here, and each pod gets the patch
    /// that rolegate gave a pod of this group.
    pub async fn replace(client: &Client, name: &str, rolegate: Rolegate, group: &Group) -> Self {
        let pods: Api<Pod> = Api::namespaced(client.clone(), name);
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let role = &group.roles[0];
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), name);
        // The webhook may hold a pod whose StatefulSet does not exist.
        let mut set = group.set(role, name);
        set["spec"]["replicas"] = json!(0);
        let set = sets.create(&PostParams::default(), &typed(set)).await.unwrap().metadata;
        let set_name = set.name.unwrap();
        let mut pod = group.pod(&role.name, &format!("{set_name}-0"), name);
        let made = json!({ "metadata": {
            "labels": { "apps.kubernetes.io/pod-index": "0" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set_name, "uid": set.uid, "controller": true }],
        } });
        json_patch::merge(&mut pod, &made);
        let create = async || pods.create(&dry_run, &typed(pod.clone())).await.map_err(|error| error.to_string());
        let patched = serde_json::to_value(create().await.unwrap()).unwrap();
        assert!(patched["spec"].get("schedulingGates").is_none(), "the pod is held: {patched}");
        sets.delete(&set_name, &DeleteParams::default()).await.unwrap();
        rolegate.terminate().await;

        let server = TlsListener::bind().await;
        let config = WebhookClientConfig {
            url: Some(format!("https://{}/mutate", server.address)),
            ca_bundle: Some(ByteString(server.ca.clone().into_bytes())),
            service: None,
        };
        let (asked, patch) = (Arc::new(AtomicU64::new(0)), Arc::new(additions(&pod, &patched)));
        let count = asked.clone();
        let task = tokio::spawn(server.serve(move |request| answer(request, patch.clone(), count.clone())));
        // The constant webhook does not validate workloads.
        Api::<ValidatingWebhookConfiguration>::all(client.clone())
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        let webhooks: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        let mut ours = webhooks.get(name).await.unwrap();
        ours.webhooks.iter_mut().flatten().for_each(|webhook| webhook.client_config = config.clone());
        webhooks.replace(name, &PostParams::default(), &ours).await.unwrap();
        eventually(PATIENT, "the API server asks the constant webhook", async || {
            create().await?;
            if asked.load(Ordering::SeqCst) > 0 { Ok(()) } else { Err("it does not".to_owned()) }
        })
        .await;
        Self { asked, task }
    }

    /// Returns the number of reviews.
    #[allow(dead_code, reason = "not every benchmark counts them")]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for ConstantWebhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the webhook's changes as a JSON patch that applies to any pod of the template.
fn additions(pod: &Value, patched: &Value) -> Value {
    let mut patch = Vec::new();
    let mut add = |path: String, value: &Value| patch.push(json!({ "op": "add", "path": path, "value": value }));
    for map in ["/metadata/labels", "/metadata/annotations", "/spec/nodeSelector"] {
        match (pod.pointer(map).and_then(Value::as_object), patched.pointer(map).and_then(Value::as_object)) {
            (Some(before), Some(after)) => after
                .iter()
                .filter(|(key, _)| !before.contains_key(*key))
                .for_each(|(key, value)| add(format!("{map}/{}", Token::new(key).encoded()), value)),
            (None, Some(after)) => add(map.to_owned(), &json!(after)),
            _ => (),
        }
    }
    for field in ["/spec/containers/0/env", "/spec/affinity"] {
        patched.pointer(field).into_iter().for_each(|value| add(field.to_owned(), value));
    }
    assert!(!patch.is_empty(), "nothing was added: {patched}");
    json!(patch)
}

#[derive(Deserialize)]
struct Review {
    request: Asked,
}

#[derive(Deserialize)]
struct Asked {
    uid: String,
    kind: Kind,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

async fn answer(
    request: Request<Incoming>,
    patch: Arc<Value>,
    asked: Arc<AtomicU64>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.expect("a whole body").to_bytes();
    let Review { request } = serde_json::from_slice(&body).expect("an AdmissionReview");
    let mut response = json!({ "uid": request.uid, "allowed": true });
    if request.kind.kind == "Pod" {
        asked.fetch_add(1, Ordering::SeqCst);
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(base64::engine::general_purpose::STANDARD.encode(patch.to_string()));
    }
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response });
    let answer = Response::builder().header("content-type", "application/json");
    Ok(answer.body(Full::new(Bytes::from(review.to_string()))).expect("a response"))
}
