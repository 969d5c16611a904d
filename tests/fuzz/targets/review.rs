//! Bodies of any bytes at both endpoints: an answer to the review that was sent, or plain words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::api_server::{Webhook, block_on};
use super::scenario;

/// What is there: reviews of pods that name it have more to do.
fn objects() -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "workloads.x-k8s.io/v1alpha1", "kind": "RoleBasedGroup",
            "metadata": { "name": "pd", "namespace": "default", "annotations": { "rolegate.dev/discovery": "enabled" } },
            "spec": {
                "roles": [{ "name": "prefill", "replicas": 4 }, { "name": "decode", "replicas": 2 }],
                "coordination": [
                    { "name": "s", "strategy": { "segmentPlacement": { "segmentSize": { "prefill": 2, "decode": 1 } } } },
                    { "name": "r", "roles": ["prefill", "decode"], "strategy": { "rollingUpdate": { "maxSkew": "10%" } } },
                ],
            },
            "status": { "firstReadyTime": "2026-01-01T00:00:00Z" },
        }),
        json!({
            "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
            "metadata": { "name": "job", "namespace": "default", "annotations": { "rolegate.dev/place": "enabled" } },
            "spec": { "minMember": 2 },
        }),
    ]
}

/// Tries one body.
pub fn run(data: &[u8]) {
    block_on(async {
        let webhook = Webhook::before(objects());
        for path in ["/mutate", "/validate"] {
            let Ok(answer) = webhook.ask(path, data.to_vec()).await else { continue };
            if let Some(patch) = patch(&answer) {
                assert!(answer["response"]["allowed"] == true && path == "/mutate", "{patch}");
            }
            // In what is skipped an escape may stand for no character.
            let Ok(asked) = serde_json::from_slice::<Value>(data) else { continue };
            // Lists of the fields' values, in order, read as well: no API server sends them.
            if asked["request"].is_object() {
                assert_eq!(answer["response"]["uid"], asked["request"]["uid"]);
                assert_eq!(answer["apiVersion"], asked["apiVersion"]);
            }
        }
    });
}

/// The patch of an answer.
pub fn patch(answer: &Value) -> Option<Value> {
    let patch = STANDARD.decode(answer["response"]["patch"].as_str()?).expect("base64");
    Some(serde_json::from_slice(&patch).expect("a patch is JSON"))
}

/// The recorded reviews, and what is no review.
pub fn seeds() -> Vec<Vec<u8>> {
    let recorded = scenario::reviews().into_iter().map(|review| review.to_string().into_bytes());
    let pod = json!({
        "metadata": {
            "generateName": "prefill-", "namespace": "default",
            "labels": { "rolegate.dev/group": "pd", "rolegate.dev/role": "prefill" }, "annotations": { "pod-group-name": "job" },
        },
        "spec": { "containers": [{ "name": "c", "env": [] }] },
    });
    let request = json!({
        "uid": "u", "operation": "CREATE", "namespace": "default", "object": pod,
        "kind": { "group": "", "version": "v1", "kind": "Pod" }, "resource": { "group": "", "version": "v1", "resource": "pods" },
    });
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    let others = [review.to_string(), String::new(), "{}".to_owned(), "[".repeat(600)];
    recorded.chain(others.map(String::into_bytes)).collect()
}
