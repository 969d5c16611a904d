//! The real HorizontalPodAutoscaler controller scales the RoleCoordination, by a metric of a small metrics API behind the API
//! server's aggregation layer.

use std::io::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use jiff::Timestamp;
use tokio_util::task::AbortOnDropHandle;

use crate::common::prelude::*;
use crate::common::tls::TlsListener;
use crate::elastic::support::{Pair, launch};

const API: &str = "/apis/external.metrics.k8s.io/v1beta1";

/// A metrics API that knows one number; it ends with this handle.
struct Metrics {
    address: SocketAddr,
    queued: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl Metrics {
    async fn start() -> Self {
        let server = TlsListener::bind().await;
        let (address, queued) = (server.address, Arc::new(AtomicU64::new(0)));
        let number = queued.clone();
        let task = tokio::spawn(
            server.serve(move |request| std::future::ready(answer(&request, number.load(Ordering::SeqCst)))),
        );
        Self { address, queued, _task: AbortOnDropHandle::new(task) }
    }

    /// What the API server is told of it.
    fn registration(&self) -> Value {
        let service = json!({ "namespace": "default", "name": "metrics", "port": self.address.port() });
        json!([
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": { "name": "metrics", "namespace": "default" },
                "spec": { "type": "ExternalName", "externalName": "localhost" },
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": { "name": "v1beta1.external.metrics.k8s.io" },
                "spec": {
                    "group": "external.metrics.k8s.io",
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "insecureSkipTLSVerify": true,
                    "service": service,
                },
            },
        ])
    }
}

fn answer(request: &Request<Incoming>, queued: u64) -> Result<Response<Full<Bytes>>, Error> {
    let version = "external.metrics.k8s.io/v1beta1";
    let resource = json!({
        "name": "queued_requests", "singularName": "", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": ["get"],
    });
    let body = if request.uri().path() == API {
        json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource] })
    } else {
        let value = json!({
            "metricName": "queued_requests", "metricLabels": {}, "timestamp": Timestamp::now().to_string(),
            "value": queued.to_string(),
        });
        json!({ "kind": "ExternalMetricValueList", "apiVersion": version, "metadata": {}, "items": [value] })
    };
    let answer = Response::builder().header("content-type", "application/json");
    answer.body(Full::new(Bytes::from(body.to_string()))).map_err(Error::other)
}

fn autoscaler() -> Value {
    let at_once =
        json!({ "policies": [{ "type": "Pods", "value": 100, "periodSeconds": 1 }], "stabilizationWindowSeconds": 0 });
    let metric = json!({
        "type": "External",
        "external": {
            "metric": { "name": "queued_requests" },
            "target": { "type": "AverageValue", "averageValue": "20" },
        },
    });
    object("autoscaling/v2", "HorizontalPodAutoscaler", "pd").spec(json!({
        "scaleTargetRef": { "apiVersion": "rolegate.dev/v1alpha1", "kind": "RoleCoordination", "name": "pd" },
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [metric],
        "behavior": { "scaleUp": at_once, "scaleDown": at_once },
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn autoscalers_scale_a_pair_and_do_not_stop_that_of_a_router() {
    let sync = ["--controller-manager-flag", "horizontal-pod-autoscaler-sync-period=1s"];
    let plane = ControlPlane::own(move || ControlPlane::start_with_groups("kwok", &sync)).await;
    let metrics = Metrics::start().await;
    let registration = json!({ "apiVersion": "v1", "kind": "List", "items": metrics.registration() }).to_string();
    plane.must(&["create", "-f", "-"], &registration);
    let path = format!("{API}/namespaces/default/queued_requests");
    let asked = async || plane.kubectl(&["get", "--raw", &path], "");
    until_found("the API server hands metrics on", asked, |asked| asked.status.success()).await;
    up_to_ten_segments_and_back_to_three(plane.clone(), &metrics).await;
    metrics.queued.store(40, Ordering::SeqCst);
    beside_that_of_a_router(plane).await;
}

async fn up_to_ten_segments_and_back_to_three(plane: Arc<ControlPlane>, metrics: &Metrics) {
    let stage = Stage::on(plane, "elastic-autoscaler").await.with_room(60).await;
    let _rolegate = launch(&stage).start().await;
    let pair = Pair::scaled(stage, 2).await;
    metrics.queued.store(40, Ordering::SeqCst);
    pair.stage.create(autoscaler()).await;
    // Twenty for each segment.
    metrics.queued.store(200, Ordering::SeqCst);
    pair.until_scaled(10).await;
    metrics.queued.store(60, Ordering::SeqCst);
    pair.until_scaled(3).await;
    pair.ratio_was_kept();
    pair.nobody_waited_for_a_turn();
    let told = pair.stage.kubectl(&["get", "hpa", "pd"]);
    assert!(told.contains("20/20 (avg)"), "{told}");
}

async fn beside_that_of_a_router(plane: Arc<ControlPlane>) {
    let stage = Stage::on(plane, "elastic-router").await.with_room(60).await;
    let _rolegate = launch(&stage).start().await;
    let role = |kind: &str, name: &str| json!({ "name": name, "workloadRef": { "kind": kind, "name": name } });
    let roles = json!([role("Deployment", "router"), role("StatefulSet", "prefill"), role("StatefulSet", "decode")]);
    let pair = Pair::create(stage, "StatefulSet", &json!({ "segments": 2, "roles": roles }), &json!({})).await;
    let labels = json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": "router" });
    let mut router = object("apps/v1", "Deployment", "router")
        .spec(json!({ "replicas": 2, "selector": { "matchLabels": { "rolegate.dev/role": "router" } } }));
    router["spec"]["template"] = crate::common::group::pod_template(&labels, &pair.stage.namespace);
    let mut of_router = autoscaler();
    of_router["metadata"]["name"] = json!("router");
    of_router["spec"]["scaleTargetRef"] = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "router" });

    for object in [router, autoscaler(), of_router] {
        pair.stage.create(object).await;
    }
    let active = async |name: &str| {
        let autoscalers = pair.stage.objects("autoscaling", "v2", "HorizontalPodAutoscaler");
        let status = autoscalers.get(name).await.unwrap().data["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition["type"] == "ScalingActive");
        found.map(|condition| format!("{} {}", condition["status"], condition["reason"]).replace('"', ""))
    };
    for name in ["pd", "router"] {
        until_is(name, async || active(name).await, Some("True ValidMetricFound".to_owned())).await;
    }
    // The selector of before was that of every pod of the group.
    let told = pair.stage.kubectl(&["get", "rcoord", "pd", "-o", "jsonpath={.status.selector}"]);
    let selected = async || {
        let names = pair.stage.kubectl(&["get", "pods", "-l", &told, "-o", "name"]);
        names.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    until_is("the first pods of both segments", selected, ["pod/prefill-0", "pod/prefill-2"]).await;
}
