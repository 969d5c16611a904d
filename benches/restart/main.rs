//! `make bench-restart`: measures the start of rolegate in a large cluster on a real API server, 1,000 groups of 100
//! held pods: the time until all is seen, and the cost. Then nothing changes for a while, which should cost as little
//! as in an empty cluster.
//!
//! `ROLEGATE_GROUPS` is the number of groups, `ROLEGATE_PODS` the number of pods in each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark stops where it fails"
)]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../held.rs"]
mod held;
mod lists;
#[path = "../process.rs"]
mod process;
#[path = "../section.rs"]
mod section;
#[path = "../still.rs"]
mod still;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};

use common::rolegate::{Launch, Rolegate};
use common::stage::{groups, typed};
use common::{Group, eventually};
use section::Section;

const NAMESPACE: &str = "restart";
/// Concurrent creations of groups, and of pods in each.
const AT_ONCE: (usize, usize) = (4, 8);
/// Time without writes that counts as calm: longer than any answer of a busy API server.
const CALM: Duration = Duration::from_secs(10);
/// Duration of the measurement without changes.
const IDLE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() {
    let size = Size { groups: number("ROLEGATE_GROUPS", 1_000), pods: number("ROLEGATE_PODS", 100) };
    let (plane, client, server) = still::start([NAMESPACE.to_owned()]).await;
    let launch = Launch::new(plane.clone(), client.clone(), NAMESPACE).flag("webhooks", "off");
    // The default; tests renew the Lease more often.
    let launch = launch.flag("lease-duration", "15s");
    let mut out = Section::new("bench-restart");
    let head = "| groups | pods | | ready after | CPU | of the API server | resident | at most | CPU in";
    writeln!(out, "{head} {} s of nothing |", IDLE.as_secs()).unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|---|").unwrap();
    let none = measure(&mut out, &launch, server, Size { groups: 0, ..size }, "before any").await;
    let started = Instant::now();
    for first in (0..size.groups).step_by(50) {
        let end = (first + 50).min(size.groups);
        stream::iter(first..end).for_each_concurrent(AT_ONCE.0, |number| make(&client, number, size.pods)).await;
        eprint!("\r{end} of {} groups are there after {:.0?}", size.groups, started.elapsed());
    }
    eprintln!();
    for what in ["first start", "restart"] {
        let some = measure(&mut out, &launch, server, size, what).await;
        out.figure(
            "restart to ready with 100,000 pods",
            format!("{:.1?} with {}", some.ready, size.groups * size.pods),
        );
        let more = some.idle.saturating_sub(none.idle);
        out.figure("CPU in 20 s of idle groups, more than without", format!("{more:.2?} with {} groups", size.groups));
    }
    lists::compare(&mut out, &client, server).await;
    out.finish();
}

/// The size of the cluster.
#[derive(Clone, Copy)]
struct Size {
    groups: u32,
    /// Pods per group.
    pods: u32,
}

/// Reads a number from the environment.
fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |number| number.parse().expect(name))
}

/// The measurements of a start.
struct Start {
    ready: Duration,
    /// CPU time while nothing changes.
    idle: Duration,
}

/// Measures a start, and its cost for the API server with this pid.
async fn measure(out: &mut Section, launch: &Launch, server: u32, size: Size, what: &str) -> Start {
    let (started, before) = (Instant::now(), process::cpu(server));
    let rolegate = launch.start().await;
    let ready = started.elapsed();
    let peak = process::peak(rolegate.pid()) / 1024;
    let (cpu, of_server) = (process::cpu(rolegate.pid()), process::cpu(server).saturating_sub(before));
    // The writes of the first pass over each group must be over before idle time is measured.
    let calm = async || {
        let before = written(&rolegate).await;
        tokio::time::sleep(CALM).await;
        let more = written(&rolegate).await - before;
        if more == 0 { Ok(()) } else { Err(format!("{more} writes in {CALM:?}")) }
    };
    eventually(Duration::from_secs(600), "rolegate has nothing to do", calm).await;
    let idle = spent_in(IDLE, rolegate.pid()).await;
    let resident = process::resident(rolegate.pid()) / 1024;
    let (groups, pods) = (size.groups, size.groups * size.pods);
    writeln!(
        out,
        "| {groups} | {pods} | {what} | {ready:.1?} | {cpu:.1?} | {of_server:.1?} | {resident} MiB | {peak} MiB | {idle:.2?} |"
    )
    .unwrap();
    rolegate.terminate().await;
    Start { ready, idle }
}

/// Returns the number of writes so far, except PUTs of the Lease.
async fn written(rolegate: &Rolegate) -> u64 {
    let metrics = rolegate.metrics().await;
    let writes = metrics.lines().filter(|line| {
        let rest = line.strip_prefix("rolegate_api_requests_total{method=\"");
        rest.is_some_and(|rest| rest.starts_with("PATCH") || rest.starts_with("POST"))
    });
    writes.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// Waits, and returns the CPU time of a process meanwhile.
async fn spent_in(time: Duration, pid: u32) -> Duration {
    let before = process::cpu(pid);
    tokio::time::sleep(time).await;
    process::cpu(pid).saturating_sub(before)
}

/// Creates a group, its StatefulSets and its pods, all held.
async fn make(client: &Client, number: u32, pods: u32) {
    let decode = pods * 2 / 5;
    let prefill = pods - decode;
    let group = Group::new(&format!("g{number}")).role("prefill", prefill, 10.min(prefill));
    let group = group.role("decode", decode, 5.min(decode));
    groups(client, NAMESPACE).create(&PostParams::default(), &typed(group.object())).await.unwrap();
    let (sets, pods): (Api<StatefulSet>, Api<Pod>) =
        (Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client.clone(), NAMESPACE));
    for role in &group.roles {
        let set = sets.create(&PostParams::default(), &typed(group.set(role, NAMESPACE))).await.unwrap();
        stream::iter(0..role.replicas)
            .for_each_concurrent(AT_ONCE.1, async |ordinal| {
                let pod = held::pod(&group, &role.name, &set, ordinal, NAMESPACE);
                pods.create(&PostParams::default(), &typed(pod)).await.unwrap();
            })
            .await;
    }
}
