//! How long the creation of one pod takes through the API server: of no group, about which nobody is asked, and of a group,
//! which rolegate holds. In turns, one at a time.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::common::Group;
use crate::common::pods::GATE;
use crate::common::stage::typed;
use crate::section::Section;

const PODS: usize = 500;

/// Measures and prints a table. rolegate runs.
pub async fn compare(out: &mut Section, client: &Client, groups: &Api<DynamicObject>, namespace: &str) {
    let group = Group::new("creates").role("prefill", 2, 1).role("decode", 2, 1);
    groups.create(&PostParams::default(), &typed(group.object())).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = |name: String| group.pod("prefill", &name, namespace);
    let (mut foreign, mut held) = (Vec::new(), Vec::new());
    for number in 0..PODS {
        let ours = pod(format!("held-{number}"));
        let (time, made) = create(&pods, &ours).await;
        let gates = made.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten());
        assert!(gates.into_iter().any(|gate| gate.name == GATE), "it is held");
        held.push(time);
        let others = super::of_no_group(&pod(format!("foreign-{number}")));
        foreign.push(create(&pods, &others).await.0);
    }
    writeln!(out, "| a pod is created | p50 | p99 |").unwrap();
    writeln!(out, "|---|---|---|").unwrap();
    for (what, mut times) in [("of no group", foreign), ("held by rolegate", held)] {
        times.sort();
        writeln!(out, "| {what} | {:.2?} | {:.2?} |", times[PODS / 2], times[PODS * 99 / 100]).unwrap();
    }
    writeln!(out).unwrap();
}

async fn create(pods: &Api<Pod>, pod: &Value) -> (Duration, Pod) {
    let mut pod = pod.clone();
    // Nobody has anything to do with it afterwards.
    json_patch::merge(&mut pod, &json!({ "spec": { "schedulerName": "nobody" } }));
    let pod: Pod = typed(pod);
    let started = Instant::now();
    let made = pods.create(&PostParams::default(), &pod).await.unwrap();
    (started.elapsed(), made)
}
