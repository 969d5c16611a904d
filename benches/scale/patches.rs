//! Measures the cost of lifting one pod's gate for the API server, by kind of patch.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, TestOperation};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rolegate::cluster::write::writer::{ReleaseEdits, release_patch};
use rolegate::plan::PodRef;
use rolegate::plan::decide::placed::Pin;
use serde_json::{Value, json};

use crate::common::pods::GATE;
use crate::common::stage::typed;
use crate::common::{PATIENT, eventually};
use crate::process::cpu;
use crate::section::Section;

/// Pods per round; each kind of patch has [`ROUNDS`] rounds in turn, after one that is not counted.
const PODS: usize = 200;
const ROUNDS: usize = 4;
/// Concurrent PATCHes in the measured rounds.
const AT_ONCE: [usize; 4] = [1, 8, 64, 256];

struct Kind {
    name: &'static str,
    patch: fn(&Pod) -> Patch<Value>,
}

const KINDS: [Kind; 5] = [
    Kind { name: "strategic merge, the gate by name", patch: strategic },
    Kind { name: "JSON, test and remove by index", patch: json },
    Kind { name: "merge, the whole list", patch: merge },
    Kind { name: "strategic merge under a resourceVersion", patch: versioned },
    Kind { name: "strategic merge, with a domain and a node", patch: pinned },
];

/// Measures all kinds, and prints a table.
pub async fn compare(out: &mut Section, client: &Client, namespace: &str, apiserver: u32) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    writeln!(out, "| PATCH | CPU of the API server, each | time of one, alone | PATCHes a second, 64 at a time |")
        .unwrap();
    writeln!(out, "|---|---|---|---|").unwrap();
    let mut rows: Vec<Vec<(Duration, Duration)>> = KINDS.iter().map(|_| Vec::new()).collect();
    for number in 0..=ROUNDS {
        for turn in 0..KINDS.len() {
            // Each round begins with another kind.
            let which = (turn + number) % KINDS.len();
            for at_once in [1, 64] {
                let measured = round(&pods, &KINDS[which], at_once, apiserver).await;
                if number > 0 {
                    rows[which].push(measured);
                }
            }
        }
    }
    let each = |time: Duration| time / (ROUNDS * PODS) as u32;
    for (kind, rows) in KINDS.iter().zip(rows) {
        let (alone, together): (Vec<_>, Vec<_>) =
            (rows.iter().step_by(2).collect(), rows.iter().skip(1).step_by(2).collect());
        let cpu: Duration = together.iter().map(|(_, cpu)| cpu).sum();
        let time_alone: Duration = alone.iter().map(|(time, _)| time).sum();
        let time_together: Duration = together.iter().map(|(time, _)| time).sum();
        let rate = (ROUNDS * PODS) as f64 / time_together.as_secs_f64();
        writeln!(out, "| {} | {:.2?} | {:.2?} | {rate:.0} |", kind.name, each(cpu), each(time_alone)).unwrap();
    }
    writeln!(out).unwrap();
    writeln!(out, "| PATCHes at a time | a second | time of one, mean |").unwrap();
    writeln!(out, "|---|---|---|").unwrap();
    for at_once in AT_ONCE {
        let (time, _) = round(&pods, &KINDS[0], at_once, apiserver).await;
        let rate = PODS as f64 / time.as_secs_f64();
        writeln!(out, "| {at_once} | {rate:.0} | {:.1?} |", time / PODS as u32 * at_once as u32).unwrap();
    }
    writeln!(out).unwrap();
}

/// Lifts the gates of new held pods; returns the elapsed time, and the CPU time of the API server.
async fn round(pods: &Api<Pod>, kind: &Kind, at_once: usize, apiserver: u32) -> (Duration, Duration) {
    let held: Vec<Pod> = stream::iter(0..PODS)
        .map(async |number| pods.create(&PostParams::default(), &held(number)).await.unwrap())
        .buffer_unordered(16)
        .collect()
        .await;
    let (start, before) = (Instant::now(), cpu(apiserver));
    let released: Vec<Pod> = stream::iter(&held)
        .map(async |pod| {
            let name = pod.metadata.name.as_deref().unwrap();
            pods.patch(name, &PatchParams::default(), &(kind.patch)(pod)).await.unwrap()
        })
        .buffer_unordered(at_once)
        .collect()
        .await;
    let (time, spent) = (start.elapsed(), cpu(apiserver).saturating_sub(before));
    assert!(released.iter().all(|pod| gates(pod).is_empty()), "{}: gates are left", kind.name);
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    _ = pods.delete_collection(&at_once, &ListParams::default()).await.unwrap();
    let gone = async || match pods.list_metadata(&ListParams::default()).await.unwrap().items.len() {
        0 => Ok(()),
        left => Err(format!("{left} are left")),
    };
    eventually(PATIENT, "the pods are gone", gone).await;
    (time, spent)
}

/// Returns a pod that no scheduler handles after the release, so that only the PATCH is measured.
fn held(number: usize) -> Pod {
    typed(json!({
        "metadata": { "name": format!("held-{number}"), "labels": { "app": "held", "rolegate.dev/group": "g", "rolegate.dev/role": "r" } },
        "spec": {
            "schedulerName": "nobody",
            "schedulingGates": [{ "name": GATE }],
            "containers": [{ "name": "main", "image": "none", "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }] }],
        },
    }))
}

fn gates(pod: &Pod) -> Vec<&str> {
    pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten()).map(|gate| gate.name.as_str()).collect()
}

fn strategic(pod: &Pod) -> Patch<Value> {
    Patch::Strategic(released(pod, &Pin::new()))
}

fn pinned(pod: &Pod) -> Patch<Value> {
    let pin = [("example.com/rack", "rack-1"), ("kubernetes.io/hostname", "node-1")];
    let pin = pin.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Patch::Strategic(released(pod, &Pin::from(pin)))
}

fn versioned(pod: &Pod) -> Patch<Value> {
    let mut patch = released(pod, &Pin::new());
    patch["metadata"]["resourceVersion"] = json!(pod.metadata.resource_version);
    Patch::Strategic(patch)
}

/// Returns the patch that rolegate sends.
fn released(pod: &Pod, pin: &Pin) -> Value {
    let of = |text: &Option<String>| text.as_deref().unwrap().into();
    let pod = PodRef { name: of(&pod.metadata.name), uid: of(&pod.metadata.uid) };
    release_patch(&pod, ReleaseEdits { pin: Some(pin), ..ReleaseEdits::default() })
}

/// Returns a merge patch: it writes the full list of other gates, so it must name the resourceVersion of that list.
fn merge(pod: &Pod) -> Patch<Value> {
    let others: Vec<_> = gates(pod).into_iter().filter(|gate| *gate != GATE).collect();
    Patch::Merge(json!({
        "metadata": { "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version },
        "spec": { "schedulingGates": others.into_iter().map(|name| json!({ "name": name })).collect::<Vec<_>>() },
    }))
}

fn json(pod: &Pod) -> Patch<Value> {
    let at = gates(pod).iter().position(|gate| *gate == GATE).unwrap();
    let path = |text: &str| PointerBuf::parse(text).unwrap();
    let gate = format!("/spec/schedulingGates/{at}");
    Patch::Json(json_patch::Patch(vec![
        PatchOperation::Test(TestOperation { path: path("/metadata/uid"), value: json!(pod.metadata.uid) }),
        PatchOperation::Test(TestOperation { path: path(&format!("{gate}/name")), value: json!(GATE) }),
        PatchOperation::Remove(RemoveOperation { path: path(&gate) }),
    ]))
}
