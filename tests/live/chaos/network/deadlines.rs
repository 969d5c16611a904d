//! The time that the API server gives is kept: what cannot be answered in it is answered 503 before it is over.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};

use crate::common::prelude::*;
use crate::policies::hold::webhook;

const LATE: &str = "rolegate_late_reviews_total";

/// Creates a pod of a group that nobody has seen yet, which must be read, and says how long that took.
async fn create_pod(stage: &Stage, name: &str) -> (Answer, Duration) {
    let pod = Group::new(name).role("main", 1, 0).pod("main", name, &stage.namespace);
    let start = Instant::now();
    (stage.post(CORE, "pods", &pod).await, start.elapsed())
}

/// A configuration that lets pods pass when there is no answer within a second.
fn lenient(stage: &Stage, url: &str, ca: &[u8]) -> Value {
    let client = json!({ "url": url, "caBundle": k8s_openapi::ByteString(ca.to_vec()) });
    let mut lenient = webhook(&stage.namespace, &client, "Ignore");
    lenient["webhooks"][0]["name"] = json!("lenient.rolegate.dev");
    lenient["webhooks"][0]["timeoutSeconds"] = json!(1);
    lenient
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_is_answered_before_it_gives_up() {
    let stage = Stage::new("net-deadlines").await;
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let launch = stage.launch().flag("reach", "loopback").through(&proxy);
    let rolegate = launch.start().await;
    let ca = launch.ca_bundle().await;
    assert_eq!(rolegate.metric(LATE).await, 0);
    // What is asked now is never answered.
    proxy.silence();
    let (refused, took) = create_pod(&stage, "strict").await;
    assert_eq!((refused.code, rolegate.metric(LATE).await), (500, 1), "{refused:?}");
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains("no answer in time"), "{message}");
    assert!(took > Duration::from_millis(2_500), "{took:?}");
    // Another time-out and failure policy than ours.
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(stage.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(stage.client.clone());
    mutating.delete(&stage.namespace, &DeleteParams::default()).await.unwrap();
    validating.delete(&stage.namespace, &DeleteParams::default()).await.unwrap();
    let lenient = lenient(&stage, &format!("https://{}/mutate", rolegate.webhook), &ca);
    mutating.create(&PostParams::default(), &typed(lenient.clone())).await.unwrap();
    let (mut number, mut asked) = (0, rolegate.metric(LATE).await);
    let took =
        eventually(PATIENT, "a pod about which nobody is asked any longer but us, with one second", async || {
            number += 1;
            let (passed, took) = create_pod(&stage, &format!("lenient-{number}")).await;
            let before = std::mem::replace(&mut asked, rolegate.metric(LATE).await);
            if passed.code == 201 && asked == before + 1 { Ok(took) } else { Err(format!("{took:?} {passed:?}")) }
        })
        .await;
    assert!(took > Duration::from_millis(850), "{took:?}");
    // It passes as well when there is no answer in time: that would be code 0.
    let metrics = stage.plane.must(&["get", "--raw", "/metrics"], "");
    let answered = metrics.lines().any(|line| {
        let of_this = line.starts_with("apiserver_admission_webhook_request_total{");
        of_this && line.contains("name=\"lenient.rolegate.dev\"") && line.contains("code=\"503\"")
    });
    assert!(answered, "the API server has not seen a 503 of lenient.rolegate.dev");
    mutating.delete(lenient["metadata"]["name"].as_str().unwrap(), &DeleteParams::default()).await.unwrap();
}
