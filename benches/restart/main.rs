//! `make bench-restart`: how long rolegate takes from its start to having seen a large cluster, and what that costs, on a real
//! API server: 1,000 groups of 100 held pods. Then nothing happens for a while, and that should cost nothing.
//!
//! `ROLEGATE_GROUPS` is the number of groups.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark stops where it fails"
)]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../process.rs"]
mod process;
#[path = "../section.rs"]
mod section;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use common::pods::GATE;
use common::rolegate::Launch;
use common::stage::{groups, make_namespace, typed};
use common::{ControlPlane, Group, eventually};
use section::Section;

const NAMESPACE: &str = "restart";
/// Prefill and decode of a group, and of a segment.
const PODS: [(&str, u32, u32); 2] = [("prefill", 60, 10), ("decode", 40, 5)];
/// While they are made: groups at a time, and pods at a time of each.
const AT_ONCE: (usize, usize) = (4, 8);
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() {
    let groups: u32 = std::env::var("ROLEGATE_GROUPS").ok().and_then(|groups| groups.parse().ok()).unwrap_or(1_000);
    let plane = Arc::new(ControlPlane::start());
    plane.define_groups();
    let client = plane.client().await;
    make_namespace(&client, NAMESPACE, &json!({})).await;
    // Nobody but us makes pods, or takes them away.
    plane.command("stop", "kube-controller-manager").await;
    let started = Instant::now();
    for first in (0..groups).step_by(50) {
        stream::iter(first..(first + 50).min(groups))
            .for_each_concurrent(AT_ONCE.0, |number| make(&client, number))
            .await;
        eprint!("\r{} of {groups} groups are there after {:.0?}", (first + 50).min(groups), started.elapsed());
    }
    eprintln!();

    let mut out = Section::new("bench-restart");
    writeln!(out, "| groups | pods | | ready after | CPU | resident | CPU in {} s of nothing |", IDLE.as_secs())
        .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|").unwrap();
    for what in ["first start", "restart"] {
        let started = Instant::now();
        let rolegate = Launch::new(plane.clone(), client.clone(), NAMESPACE).flag("webhooks", "off").start().await;
        let ready = started.elapsed();
        let cpu = process::cpu(rolegate.pid());
        // What the first pass over each group writes is written before it counts as nothing.
        let calm = async || {
            let spent = spent_in(Duration::from_secs(2), rolegate.pid()).await;
            if spent < Duration::from_millis(200) { Ok(()) } else { Err(format!("{spent:?} in 2 s")) }
        };
        eventually(Duration::from_secs(300), "rolegate has nothing to do", calm).await;
        let idle = spent_in(IDLE, rolegate.pid()).await;
        let resident = process::resident(rolegate.pid()) / 1024;
        writeln!(
            out,
            "| {groups} | {} | {what} | {ready:.1?} | {cpu:.1?} | {resident} MiB | {idle:.2?} |",
            groups * 100
        )
        .unwrap();
        rolegate.terminate().await;
    }
    out.finish();
}

/// A process's time on processors while this one waits.
async fn spent_in(time: Duration, pid: u32) -> Duration {
    let before = process::cpu(pid);
    tokio::time::sleep(time).await;
    process::cpu(pid).saturating_sub(before)
}

/// A group, its StatefulSets and their pods, all held.
async fn make(client: &Client, number: u32) {
    let group = PODS
        .iter()
        .fold(Group::new(&format!("g{number}")), |group, (role, pods, segment)| group.role(role, *pods, *segment));
    groups(client, NAMESPACE).create(&PostParams::default(), &typed(group.object())).await.unwrap();
    let (sets, pods): (Api<StatefulSet>, Api<Pod>) =
        (Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client.clone(), NAMESPACE));
    for role in &group.roles {
        let set = sets.create(&PostParams::default(), &typed(group.set(role, NAMESPACE))).await.unwrap();
        stream::iter(0..role.replicas)
            .for_each_concurrent(AT_ONCE.1, async |ordinal| {
                let pod = held(&group, &role.name, &set, ordinal);
                pods.create(&PostParams::default(), &typed(pod)).await.unwrap();
            })
            .await;
    }
}

/// A pod as its StatefulSet makes it and the webhook holds it.
fn held(group: &Group, role: &str, set: &StatefulSet, ordinal: u32) -> Value {
    let set = &set.metadata;
    let name = format!("{}-{ordinal}", set.name.as_deref().unwrap());
    let mut pod = group.pod(role, &name, NAMESPACE);
    let added = json!({
        "metadata": {
            "labels": { "apps.kubernetes.io/pod-index": ordinal.to_string(), "statefulset.kubernetes.io/pod-name": name },
            "annotations": { "rolegate.dev/held-by": format!("{}/segments", group.name), "rolegate.dev/born-as": format!("{}/{role}", group.name) },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set.name, "uid": set.uid, "controller": true }],
        },
        "spec": { "schedulingGates": [{ "name": GATE }] },
    });
    json_patch::merge(&mut pod, &added);
    pod
}
