//! The request path behind TLS and HTTP: an index that knows the group of a pod, and no API server.

use std::convert::Infallible;
use std::hint::black_box;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, header};
use kube::Client;
use prometheus_client::registry::Registry;
use rolegate::api::Pod;
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::status::GroupStatus;
use rolegate::api::workload::StatefulSet;
use rolegate::cluster::index::{CarrierObject, SeenWorkload, SharedIndex};
use rolegate::cluster::read::lookup::Lookup;
use rolegate::cluster::read::shortages::Shortages;
use rolegate::model::GroupKey;
use rolegate::mutate::{GroupLookup, Lookups, PodSettings, Subject, mutate_pod};
use rolegate::rules::Options;
use rolegate::server::admission::Admission;
use rolegate::server::admission::beside::Beside;
use rolegate::server::admission::metrics::AdmissionMetrics;
use rolegate::server::http::body::Bodies;
use rolegate::server::http::limits::Limits;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::planning;
use crate::reviews::{NAMESPACE, of_decode_pods};

/// A webhook, and the review that it gets.
pub struct Webhook {
    index: SharedIndex,
    body: Bytes,
}

impl Webhook {
    /// What the pod of the review is: `held`, held with `discovery`, or `foreign`.
    pub fn of(pod: &str) -> Self {
        let index = SharedIndex::default();
        let mut group = planning::group(10, "1", &GroupStatus::default());
        group.metadata.name = Some("llm".to_owned());
        group.metadata.namespace = Some(NAMESPACE.to_owned());
        if pod == "discovery" {
            group.metadata.annotations.insert("rolegate.dev/discovery".to_owned(), "enabled".to_owned());
        }
        index.write(|index| {
            index.apply_carrier(None, CarrierObject::rbg(ROLE_BASED_GROUP, &group));
            for (role, replicas) in [("prefill", 100), ("decode", 50)] {
                let name = if role == "decode" { role } else { "llm-prefill" };
                let labels = json!({ "rolegate.dev/group": "llm", "rolegate.dev/role": role });
                let set = json!({
                    "metadata": { "name": name, "namespace": NAMESPACE, "uid": role, "labels": labels },
                    "spec": { "replicas": replicas, "serviceName": name },
                });
                index.apply_workload(None, SeenWorkload::of(&serde_json::from_value::<StatefulSet>(set).unwrap()));
            }
        });
        let mut body = of_decode_pods().swap_remove(7);
        if pod == "foreign" {
            body = String::from_utf8(body.to_vec()).unwrap().replace("rolegate.dev/", "bench.example/").into();
        }
        Self { index, body }
    }

    /// From a pod that was read to its patch.
    pub fn mutate(&self, count: u32) {
        let review: Value = serde_json::from_slice(&self.body).unwrap();
        let pod: Pod = serde_json::from_value(review["request"]["object"].clone()).unwrap();
        let group = self.index.read().group(&GroupKey::new(NAMESPACE, "llm")).unwrap();
        let settings = PodSettings::default();
        for _ in 0..count {
            let subject = Subject::of(black_box(&pod), NAMESPACE, &*self.index.read());
            let lookups = Lookups { group: GroupLookup::Found(&group), ..Lookups::default() };
            black_box(mutate_pod(&pod, &subject, &lookups, &settings).patch.to_json());
        }
    }

    /// From a body to the answer's.
    pub fn review(self, count: u32) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let body = self.body.clone();
            let router = self.router();
            for _ in 0..count {
                let request = Request::post("/mutate").header(header::CONTENT_TYPE, "application/json");
                let request = request.body(Body::from(body.clone())).unwrap();
                let answer = router.clone().oneshot(request).await.unwrap();
                assert_eq!(answer.status(), 200);
                black_box(axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap());
            }
        });
    }

    fn router(self) -> Router {
        // The reviews here find all in the index: this would never answer.
        let nobody = tower::service_fn(|_: Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, Infallible>>()
        });
        let client = Client::new(nobody, "default");
        let admission = Admission {
            lookup: Lookup::new(client.clone(), self.index.clone(), Options::default()),
            shortages: Shortages::new(client, self.index, None),
            kai_pods: true,
            strict: false,
            pods: PodSettings::default(),
            bodies: Bodies::new(&Limits::default()),
            beside: Beside::default(),
            metrics: AdmissionMetrics::register(&mut Registry::default()),
        };
        admission.router()
    }
}
