//! Nodes are asked for, for a whole batch (`whenNoFit: provision`), from a stand-in for cluster-autoscaler; the real Karpenter is
//! asked in `tests/neighbours`.

mod buffers;
mod requests;
mod troubles;

use k8s_openapi::api::core::v1::PodTemplate;

use crate::common::prelude::*;
use crate::worlds::cluster_autoscaler::{Cloud, ClusterAutoscaler, define_requests, requests as requests_of};

const RACK: &str = "example.com/rack";

static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok", &["--audit"]);
    define_requests(&plane);
    plane
});

/// A group in segments of ten prefills and five decodes, its cluster-autoscaler, and what was seen of them.
struct Scene {
    stage: Stage,
    group: Group,
    statuses: StatusLog,
    autoscaler: ClusterAutoscaler,
}

/// A namespace without nodes.
async fn stage(namespace: &str) -> Stage {
    let plane = tokio::task::spawn_blocking(|| PLANE.get()).await.unwrap();
    Stage::on(plane, namespace).await
}

fn launch(stage: &Stage) -> Launch {
    stage.launch().flag("allow", "provision")
}

/// The same with a rolegate that may ask for nodes.
async fn served(namespace: &str) -> (Stage, Rolegate) {
    let stage = stage(namespace).await;
    let rolegate = launch(&stage).start().await;
    (stage, rolegate)
}

/// One rack, whose nodes are refused.
fn refusing() -> Cloud {
    Cloud { refuses: true, ..racks(&["r1"]) }
}

/// Racks of three nodes, each with room for five pods: one segment.
fn racks(names: &[&'static str]) -> Cloud {
    Cloud { racks: names.iter().map(|name| (*name, 3)).collect(), ..Cloud::default() }
}

/// The coordination, with nodes asked for at once; `more` is merged into `provision`.
fn coordination(group: &Group, more: &Value) -> Value {
    let mut object = group.coordination_of("StatefulSet", &near(RACK, "RequireSegmentAffinity"));
    let mut provision = json!({ "by": "ProvisioningRequest", "after": "1s", "deadline": "60s" });
    json_patch::merge(&mut provision, more);
    let coordination = &mut object["spec"]["coordination"][0];
    coordination["whenNoFit"] = json!("provision");
    coordination["provision"] = provision;
    object
}

impl Scene {
    /// So many segments, whose pods are made and wait for nodes.
    async fn new(stage: Stage, segments: u32, cloud: Cloud, provision: &Value) -> Self {
        Self::of(Group::new("pd"), stage, segments, cloud, provision).await
    }

    /// One segment whose pods also have a gate of Kueue, which waits for rolegate: they wait between release and binding.
    async fn gated(stage: Stage, cloud: Cloud, provision: &Value) -> Self {
        let gates = json!({
            "metadata": { "annotations": { "kueue.x-k8s.io/admission-gated-by": "rolegate.dev/hold" } },
            "spec": { "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] },
        });
        Self::of(Group::new("pd").template(&gates), stage, 1, cloud, provision).await
    }

    async fn of(group: Group, stage: Stage, segments: u32, cloud: Cloud, provision: &Value) -> Self {
        let group = group.role("prefill", 10 * segments, 10).role("decode", 5 * segments, 5);
        let autoscaler = ClusterAutoscaler::start(&stage, cloud);
        let statuses = stage.coordination_statuses("pd");
        stage.create(coordination(&group, provision)).await;
        stage.create_sets(&group).await;
        Self { stage, group, statuses, autoscaler }
    }

    /// Lifts the gates of somebody else.
    async fn lift_other_gates(&self) {
        let none = json!({ "spec": { "schedulingGates": [] } });
        for pod in self.stage.pods.uids().into_keys() {
            self.stage.patch::<ApiPod>(&pod, &none).await;
        }
    }

    /// How many objects of this resource rolegate has made so far.
    fn made(&self, resource: &str) -> usize {
        let what = format!("create {resource}");
        let all = Account::of(&self.stage).requests();
        all.iter().filter(|request| request.what == what && request.code == 201).count()
    }

    async fn until_ready(&self, segments: usize) {
        self.stage.pods.until("whole segments run", |now| now.count_all(Pod::is_ready) == 15 * segments).await;
    }

    /// Names of the requests that are there.
    async fn requests(&self) -> Vec<String> {
        let found = requests_of(&self.stage).list(&ListParams::default()).await.unwrap();
        found.items.into_iter().map(|request| request.metadata.name.unwrap()).collect()
    }

    /// Takes `provision` out of the spec.
    async fn withdraw(&self) {
        let mut coordination = self.stage.coordinations().get("pd").await.unwrap().data["spec"]["coordination"].clone();
        coordination[0]["whenNoFit"] = json!("hold");
        coordination[0].as_object_mut().unwrap().remove("provision");
        let patch = Patch::Merge(json!({ "spec": { "coordination": coordination } }));
        self.stage.coordinations().patch("pd", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits for the first request.
    async fn until_requested(&self) -> DynamicObject {
        let all = async || requests_of(&self.stage).list(&ListParams::default()).await.unwrap().items;
        until_found("a request", all, |all| !all.is_empty()).await.swap_remove(0)
    }

    /// Waits for another request than this.
    async fn until_another(&self, first: &str) {
        let again = async || self.requests().await.into_iter().find(|name| *name != first);
        until_found("another attempt", again, Option::is_some).await;
    }

    /// Waits until nothing is left of what was asked for.
    async fn until_none_is_left(&self) {
        let left = async || (self.requests().await.len(), self.stage.list::<PodTemplate>().await.len());
        until_is("no request and no template is left", left, (0, 0)).await;
    }

    /// Waits until the one segment runs, and nothing is left of what was asked for.
    async fn until_met(&self) {
        self.until_ready(1).await;
        self.until_none_is_left().await;
    }

    /// The racks of each segment's pods: one, which is no other segment's.
    fn each_segment_has_a_rack(&self, segments: u32) {
        self.stage.pods.now(|now| {
            let mut used = BTreeSet::new();
            for segment in 0..segments {
                let is_of = |pod: &&Pod| pod.index / self.group.find(&pod.role).segment == segment;
                let rack = |pod: &Pod| {
                    let name = pod.node.as_deref()?.strip_prefix(&self.stage.namespace)?.strip_prefix('-')?;
                    name.split('-').next().map(str::to_owned)
                };
                let racks: BTreeSet<_> = now.all().filter(is_of).map(rack).collect();
                assert!(racks.len() == 1 && !racks.contains(&None), "segment {segment} in {racks:?}: {now}");
                used.extend(racks);
            }
            assert_eq!(used.len(), segments as usize, "{used:?}");
        });
    }

    /// No pod of a segment was let go while another had no node to go to.
    fn none_went_in_part(&self) {
        invariants::released_in_order(&self.stage.pods, &self.group);
        let waits = |pod: &Pod| pod.is_released() && !pod.is_scheduled();
        self.stage.pods.now(|now| assert_eq!(now.count_all(waits), 0, "{now}"));
    }
}
