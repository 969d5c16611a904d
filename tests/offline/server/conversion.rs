//! Reviews of conversions, as an API server sends them and as nobody should.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, header};
use http_body_util::BodyExt;
use kube::Client;
use prometheus_client::registry::Registry;
use rolegate::cluster::index::SharedIndex;
use rolegate::cluster::read::live_world::LiveWorld;
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
use tower::ServiceExt;

struct Webhook {
    router: Router,
    registry: Registry,
}

impl Webhook {
    /// One without a cluster: conversions ask nobody.
    fn new() -> Self {
        let nobody = tower::service_fn(|request: Request<kube::client::Body>| async move {
            panic!("asks for {}", request.uri());
            #[allow(unreachable_code, reason = "says what it never returns")]
            Ok::<_, Infallible>(Response::new(kube::client::Body::empty()))
        });
        let (client, index) = (Client::new(nobody, "default"), SharedIndex::default());
        let mut registry = Registry::with_prefix("rolegate");
        let admission = Admission {
            lookup: Lookup::new(client.clone(), index.clone()),
            live_world: LiveWorld::new(client.clone(), index.clone(), Options::default()),
            shortages: Shortages::new(client, index, None),
            strict: false,
            pods: PodSettings::default(),
            bodies: Bodies::new(&Limits::default()),
            beside: Beside::default(),
            metrics: AdmissionMetrics::register(&mut registry),
        };
        Self { router: admission.router(), registry }
    }

    async fn post(&self, body: impl Into<Body>) -> (u16, String) {
        let request = Request::post("/convert?timeout=30s").header(header::CONTENT_TYPE, "application/json");
        let answer = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn convert(&self, desired: &str, objects: Value) -> Value {
        let (status, answer) = self.post(review(desired, &objects)).await;
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}

fn review(desired: &str, objects: &Value) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "705ab4f5", "desiredAPIVersion": desired, "objects": objects },
    })
    .to_string()
}

const ALPHA: &str = "rolegate.dev/v1alpha1";
const BETA: &str = "rolegate.dev/v1beta1";

fn alpha(name: &str) -> Value {
    json!({
        "apiVersion": ALPHA, "kind": "RoleCoordination", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "roles": [{ "name": "prefill", "replicas": 4 }],
            "coordination": [
                { "name": "s", "strategy": { "segmentPlacement": { "segmentSize": { "prefill": 2 } } }, "whenNoFit": "hold" },
                { "name": "r", "type": "RollingUpdate", "strategy": { "maxSkew": "10%", "maxUnavailableRatio": "5%" } },
            ],
        },
        "status": { "segments": 2 },
    })
}

fn beta(name: &str) -> Value {
    let spelled = json!({ "r": alpha(name)["spec"]["coordination"][1] }).to_string();
    json!({
        "apiVersion": BETA, "kind": "RoleCoordination",
        "metadata": {
            "name": name, "namespace": "default", "annotations": { "rolegate.dev/v1alpha1-spelling": spelled },
        },
        "spec": {
            "roles": [{ "name": "prefill", "replicas": 4 }],
            "coordinations": [
                { "name": "s", "segmentPlacement": { "segmentSize": { "prefill": 2 } }, "whenNoFit": "Hold" },
                { "name": "r", "rollingUpdate": { "maxSkew": "10%", "maxUnavailable": "5%" } },
            ],
        },
        "status": { "segments": 2 },
    })
}

#[tokio::test]
async fn objects_come_back_in_their_order_and_those_of_the_version_as_they_are() {
    let webhook = Webhook::new();
    let answer = webhook.convert(BETA, json!([alpha("a"), beta("b"), alpha("c")])).await;
    let expected = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {
            "uid": "705ab4f5", "convertedObjects": [beta("a"), beta("b"), beta("c")], "result": { "status": "Success" },
        },
    });
    assert_eq!(answer, expected);
    let answer = webhook.convert(ALPHA, json!([beta("a"), alpha("b")])).await;
    assert_eq!(answer["response"]["convertedObjects"], json!([alpha("a"), alpha("b")]));
    assert_eq!(webhook.convert(ALPHA, json!([])).await["response"]["result"]["status"], "Success");
    let metrics = webhook.metrics();
    assert!(metrics.contains("rolegate_conversions_total{to=\"v1beta1\",result=\"converted\"} 1\n"), "{metrics}");
    assert!(metrics.contains("rolegate_conversions_total{to=\"v1alpha1\",result=\"converted\"} 2\n"), "{metrics}");
}

#[tokio::test]
async fn a_thousand_objects_are_converted_in_one_review() {
    let webhook = Webhook::new();
    let all = |of: fn(&str) -> Value| (0..1000).map(|number| of(&format!("pd-{number}"))).collect::<Vec<_>>();
    let answer = webhook.convert(BETA, all(alpha).into()).await;
    assert_eq!(answer["response"]["convertedObjects"], Value::from(all(beta)));
}

#[tokio::test]
async fn one_that_cannot_be_converted_fails_the_review_and_is_named() {
    let webhook = Webhook::new();
    let mut broken = alpha("broken");
    broken["spec"]["coordination"][1]["strategy"] = json!("fast");
    let (mut pod, mut future, mut mixed) = (alpha("pod"), alpha("future"), beta("mixed"));
    pod["kind"] = json!("Pod");
    future["apiVersion"] = json!("rolegate.dev/v2");
    mixed["spec"]["coordinations"][0]["strategy"] = json!({});
    let only = "only RoleCoordinations of rolegate.dev/v1alpha1 and v1beta1 can be converted";
    for (desired, object, why) in [
        (BETA, &broken, "object 2 of 2, default/broken: spec.coordination[1].strategy: must be an object".to_owned()),
        (BETA, &pod, format!("object 2 of 2, default/pod: {only}: this is \"Pod\" of \"rolegate.dev/v1alpha1\"")),
        (
            BETA,
            &future,
            format!("object 2 of 2, default/future: {only}: this is \"RoleCoordination\" of \"rolegate.dev/v2\""),
        ),
        (BETA, &json!(7), format!("object 2 of 2, /: {only}: this is \"\" of \"\"")),
        (
            ALPHA,
            &mixed,
            "object 2 of 2, default/mixed: spec.coordinations[0].strategy: is a field of the other version".to_owned(),
        ),
        (
            "rolegate.dev/v1",
            &alpha("b"),
            "object 1 of 2, default/a: a RoleCoordination can be of rolegate.dev/v1alpha1 or v1beta1, and not of \
             \"rolegate.dev/v1\""
                .to_owned(),
        ),
    ] {
        let answer = webhook.convert(desired, json!([alpha("a"), object])).await;
        let result = json!({ "status": "Failure", "message": why });
        assert_eq!(answer["response"], json!({ "uid": "705ab4f5", "convertedObjects": [], "result": result }));
    }
    let metrics = webhook.metrics();
    assert!(metrics.contains("rolegate_conversions_total{to=\"other\",result=\"refused\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn what_is_no_review_is_refused_in_plain_words() {
    let webhook = Webhook::new();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, why) in [
        (String::new(), "the body is not a ConversionReview: EOF"),
        ("[]".to_owned(), "the body is not a ConversionReview: invalid"),
        (deep.clone(), "the body is not a ConversionReview: "),
        (
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": null }).to_string(),
            "the body is not a ConversionReview of apiextensions.k8s.io/v1: it says apiVersion \"admission.k8s.io/v1\"",
        ),
        (
            json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview" }).to_string(),
            "the ConversionReview has no `request`",
        ),
    ] {
        let (status, answer) = webhook.post(body).await;
        assert!(status == 400 && answer.starts_with(why), "{status} {answer}");
    }
    // Within an object it is that object's fault.
    let object = format!(r#"{{"apiVersion":"{ALPHA}","kind":"RoleCoordination","spec":{deep}}}"#);
    let review = review(BETA, &json!(["HERE"])).replace(r#""HERE""#, &object);
    let (status, answer) = webhook.post(review).await;
    assert!(status == 200 && answer.contains("object 1 of 1, /: recursion limit exceeded"), "{status} {answer}");
    let (status, _) = webhook.post(vec![b' '; 8 << 20]).await;
    assert_eq!(status, 413);
    assert!(webhook.metrics().contains("rolegate_refused_bodies_total{reason=\"TooLarge\"} 1\n"));
    assert!(webhook.metrics().contains("rolegate_unreadable_bodies_total 5\n"));
}
