//! `make bench-create`: measures the creation of pods through the API server at several concurrencies: without a
//! webhook, of no group beside rolegate, of a group, and with a constant webhook in place of rolegate.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops where it fails, and shows rounded times"
)]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../constant.rs"]
mod constant;
#[path = "../held.rs"]
mod held;
#[path = "../process.rs"]
mod process;
#[path = "../section.rs"]
mod section;
#[path = "../still.rs"]
mod still;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::Value;

use common::group::Progression;
use common::rolegate::{Launch, Rolegate};
use common::stage::{groups, typed};
use common::{Group, PATIENT, eventually};
use constant::ConstantWebhook;
use section::Section;

const NAMESPACE: &str = "create";
/// Pods per run.
const PODS: usize = 750;
/// Concurrent creations.
const AT_ONCE: [usize; 4] = [1, 50, 200, 400];
/// Rounds; every second one runs in reverse order, since the machine varies from minute to minute, and an API server
/// is faster after a rest.
const ROUNDS: usize = 4;
/// API servers of a highly available control plane.
const SERVERS: usize = 3;

/// The webhook that reviews a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    /// No webhook.
    Nobody,
    /// rolegate, which does not review the pod, because it is of no group.
    NotRolegate,
    /// rolegate without the webhooks for KAI; the pod is of no group.
    NotRolegateWithoutKai,
    Constant,
    /// rolegate, which holds the pod.
    RolegateHolds,
    /// rolegate, for a group that never holds the pod.
    RolegateFrees,
    /// rolegate, which holds the pod; each of three API servers has this concurrency.
    RolegateHoldsOfThree,
}

impl Asked {
    fn words(self) -> &'static str {
        match self {
            Self::Nobody => "no webhook",
            Self::NotRolegate => "of no group, beside rolegate",
            Self::NotRolegateWithoutKai => "of no group, beside rolegate without KAI's webhooks",
            Self::Constant => "a webhook that answers a constant",
            Self::RolegateHolds => "of a group, held by rolegate",
            Self::RolegateFrees => "of a Parallel group, by rolegate",
            Self::RolegateHoldsOfThree => "of a group, held by rolegate, by each of three API servers",
        }
    }

    fn labels(self) -> bool {
        matches!(self, Self::Constant) || self.is_answered_by_rolegate()
    }

    fn is_answered_by_rolegate(self) -> bool {
        matches!(self, Self::RolegateHolds | Self::RolegateFrees | Self::RolegateHoldsOfThree)
    }
}

/// The measurements of a row, over all rounds.
#[derive(Default)]
struct Row {
    times: Vec<Duration>,
    all: Duration,
    server: Duration,
    /// CPU time of rolegate.
    webhook: Duration,
    handshakes: i64,
}

impl Row {
    fn at(&self, percent: usize) -> Duration {
        self.times[(self.times.len() - 1) * percent / 100]
    }
}

/// Rows by concurrency and webhook.
type Rows = BTreeMap<(usize, Asked), Row>;

#[tokio::main]
async fn main() {
    let (plane, client, server) = still::start([NAMESPACE.to_owned()]).await;
    let group = |name: &str, progression| {
        let group = Group::new(name).role("prefill", 4_000, 10).role("decode", 4_000, 5);
        group.progression(progression)
    };
    // A pod that is never held gets labels and no gate, so a constant patch can be the same.
    let (free, held) = (group("free", Progression::Parallel), group("held", Progression::OrderedReady));
    // The constant webhook answers the patch of this group.
    let same = group("same", Progression::Parallel);
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), NAMESPACE);
    let mut bench = Bench { rows: Rows::new(), servers: vec![(client.clone(), server)] };
    let launch = Launch::new(plane.clone(), client.clone(), NAMESPACE);
    let without_kai = launch.clone().flag("kai-pods", "off");
    let groups = groups(&client, NAMESPACE);
    for group in [&free, &held, &same] {
        groups.create(&PostParams::default(), &typed(group.object())).await.unwrap();
    }
    let set = async |group: &Group| {
        sets.create(&PostParams::default(), &typed(group.set(&group.roles[0], NAMESPACE))).await.unwrap()
    };
    let (of_free, of_held) = (set(&free).await, set(&held).await);
    let freed = |ordinal: usize| held::made(&free, "prefill", &of_free, ordinal, NAMESPACE);
    let kept = |ordinal: usize| held::made(&held, "prefill", &of_held, ordinal, NAMESPACE);
    let others = |ordinal: usize| held::of_no_group(&freed(ordinal));
    for round in 0..ROUNDS {
        let mut parts = [Asked::Nobody, Asked::NotRolegate, Asked::RolegateHolds, Asked::Constant];
        if round % 2 == 1 {
            parts.reverse();
        }
        for part in parts {
            match part {
                Asked::Nobody => bench.each(part, others, None).await,
                Asked::NotRolegate => {
                    let rolegate = launch.start().await;
                    bench.each(part, others, None).await;
                    rolegate.terminate().await;
                }
                Asked::Constant => {
                    let rolegate = without_kai.start().await;
                    let _constant = ConstantWebhook::replace(&client, NAMESPACE, rolegate, &same).await;
                    bench.each(part, freed, None).await;
                }
                _ => {
                    let rolegate = without_kai.start().await;
                    bench.each(Asked::NotRolegateWithoutKai, others, None).await;
                    bench.each(Asked::RolegateHolds, kept, Some(&rolegate)).await;
                    bench.each(Asked::RolegateFrees, freed, Some(&rolegate)).await;
                    rolegate.terminate().await;
                }
            }
            bench.remove_webhooks().await;
        }
    }
    let rolegate = without_kai.start().await;
    let mut more = Vec::new();
    for _ in 1..SERVERS {
        let (client, process) = still::another_api_server(&plane, server).await;
        bench.servers.push((client, process.id().unwrap()));
        more.push(process);
    }
    bench.each(Asked::RolegateHoldsOfThree, kept, Some(&rolegate)).await;
    drop(more);
    rolegate.terminate().await;
    write(bench.rows);
}

fn write(mut rows: Rows) {
    rows.values_mut().for_each(|row| row.times.sort_unstable());
    let mut out = Section::new("bench-create");
    writeln!(out, "| pods | p50 | p99 | a second | CPU of the API server, each | of rolegate | handshakes of 1,000 |")
        .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|").unwrap();
    let asked: BTreeSet<_> = rows.keys().map(|(_, asked)| *asked).collect();
    for asked in asked {
        let rows: Vec<_> = AT_ONCE.iter().map(|at_once| &rows[&(*at_once, asked)]).collect();
        let pods = |row: &Row| u32::try_from(row.times.len()).unwrap();
        let cell = |of: &dyn Fn(&Row) -> String| rows.iter().map(|row| of(row)).collect::<Vec<_>>().join(", ");
        let of_rolegate =
            |of: &dyn Fn(&Row) -> String| if asked.is_answered_by_rolegate() { cell(of) } else { String::new() };
        let cells = [
            cell(&|row| format!("{:.2?}", row.at(50))),
            cell(&|row| format!("{:.2?}", row.at(99))),
            cell(&|row| format!("{:.0}", f64::from(pods(row)) / row.all.as_secs_f64())),
            cell(&|row| format!("{:.2?}", row.server / pods(row))),
            of_rolegate(&|row| format!("{:.2?}", row.webhook / pods(row))),
            of_rolegate(&|row| (row.handshakes * 1_000 / i64::from(pods(row))).to_string()),
        ];
        writeln!(out, "| {} | {} |", asked.words(), cells.join(" | ")).unwrap();
    }
    let ratio = |percent: usize, asked: Asked, to: Asked| {
        let of = |at_once: usize| {
            rows[&(at_once, asked)].at(percent).as_secs_f64() / rows[&(at_once, to)].at(percent).as_secs_f64()
        };
        let all: Vec<_> = AT_ONCE.iter().map(|at_once| format!("{:.2} × at {at_once}", of(*at_once))).collect();
        all.join(", ")
    };
    out.figure(
        "p99 of a creation, against a webhook that answers a constant",
        ratio(99, Asked::RolegateHolds, Asked::Constant),
    );
    out.figure(
        "p50 of a creation of no group, against no webhook",
        ratio(50, Asked::NotRolegateWithoutKai, Asked::Nobody),
    );
    out.finish();
}

struct Bench {
    rows: Rows,
    /// API servers, each with its pid.
    servers: Vec<(Client, u32)>,
}

impl Bench {
    /// Creates pods at each concurrency.
    async fn each(&mut self, asked: Asked, made: impl Fn(usize) -> Value, rolegate: Option<&Rolegate>) {
        for at_once in AT_ONCE {
            self.run(at_once, asked, &made, rolegate).await;
        }
    }

    async fn run(&mut self, at_once: usize, asked: Asked, made: &impl Fn(usize) -> Value, rolegate: Option<&Rolegate>) {
        let of = |(client, _): &(Client, u32)| Api::<Pod>::namespaced(client.clone(), NAMESPACE);
        let servers: Vec<_> = self.servers.iter().map(of).collect();
        let all: Vec<_> =
            (0..PODS).map(|ordinal| (&servers[ordinal % servers.len()], typed::<Pod>(made(ordinal)))).collect();
        let spent = || {
            let of_servers: Duration = self.servers.iter().map(|(_, pid)| process::cpu(*pid)).sum();
            (of_servers, rolegate.map_or(Duration::ZERO, |rolegate| process::cpu(rolegate.pid())))
        };
        let handshakes = async || match rolegate {
            Some(rolegate) => rolegate.metric("rolegate_server_handshakes_total").await,
            None => 0,
        };
        let (before, shaken, begun) = (spent(), handshakes().await, Instant::now());
        let create = async |(pods, pod): (&Api<Pod>, Pod)| {
            let started = Instant::now();
            let made = pods.create(&PostParams::default(), &pod).await.unwrap();
            let labels = made.metadata.labels.unwrap_or_default();
            assert_eq!(labels.contains_key("rolegate.dev/segment"), asked.labels(), "{labels:?}");
            started.elapsed()
        };
        let times: Vec<_> = stream::iter(all).map(create).buffer_unordered(at_once * servers.len()).collect().await;
        let (taken, after) = (begun.elapsed(), spent());
        let row = self.rows.entry((at_once, asked)).or_default();
        row.times.extend(times);
        row.all += taken;
        row.server += after.0.saturating_sub(before.0);
        row.webhook += after.1.saturating_sub(before.1);
        row.handshakes += handshakes().await - shaken;
        eprintln!("{at_once} at a time, {}: {taken:.1?}", asked.words());
        let (pods, at_once) = (&servers[0], DeleteParams::default().grace_period(0));
        pods.delete_collection(&at_once, &ListParams::default()).await.unwrap();
        eventually(PATIENT, "all are gone", async || {
            let left = pods.list_metadata(&ListParams::default().limit(1)).await.map_err(|error| error.to_string())?;
            if left.items.is_empty() { Ok(()) } else { Err("some are there".to_owned()) }
        })
        .await;
    }

    async fn remove_webhooks(&self) {
        let (all, gone, client) = (ListParams::default(), DeleteParams::default(), &self.servers[0].0);
        Api::<MutatingWebhookConfiguration>::all(client.clone()).delete_collection(&gone, &all).await.unwrap();
        Api::<ValidatingWebhookConfiguration>::all(client.clone()).delete_collection(&gone, &all).await.unwrap();
    }
}
