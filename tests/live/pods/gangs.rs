//! KAI PodGroups that ask to be placed, on the stock scheduler: the four examples and the stories of the hierarchical
//! PodGroup, and what becomes of their pods when something goes wrong.

use crate::common::prelude::*;
use crate::common::request_proxy::{Kind, RequestProxy};
use crate::pods::support::explain;
use crate::rules::definitions;
use crate::rules::kai::examples;

const LEAF: &str = "kai.scheduler/subgroup-name";

/// A control plane with the PodGroups of the design.
static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok", &[]);
    definitions::install(&plane, &[definitions::proposal_pod_groups()]);
    plane
});

pub async fn stage(namespace: &str) -> Stage {
    Stage::on(PLANE.get(), namespace).await
}

/// Adds a node of a block and a rack with room for so many pods. Labels are the test's own: nobody else places by them.
async fn add(stage: &Stage, block: &str, rack: &str, host: &str, room: u32) {
    let own = |name: &str| format!("{}-{name}", stage.namespace);
    let labels = json!({ "block": own(block), "rack": own(rack) });
    stage.add_node_with(&format!("{rack}-{host}"), room, labels).await;
}

async fn create_group(stage: &Stage, spec: &Value) {
    let placed = json!({ "metadata": { "annotations": { "rolegate.dev/place": "enabled" } }, "spec": spec });
    stage.create(object("scheduling.run.ai/v2alpha2", "PodGroup", "job").with(&placed)).await;
}

fn pod(stage: &Stage, name: &str, leaf: &str) -> Value {
    let mut pod = bare_pod(name, &json!({ LEAF: leaf }), &stage.namespace);
    pod["metadata"]["annotations"] = json!({ "pod-group-name": "job" });
    pod
}

async fn create(stage: &Stage, leaf: &str, from: u32, to: u32) {
    for at in from..to {
        let made = stage.post(CORE, "pods", &pod(stage, &format!("{leaf}-{at}"), leaf)).await;
        assert_eq!(made.code, 201, "{made:?}");
        assert_eq!(made.body["spec"]["schedulingGates"], json!([{ "name": "rolegate.dev/hold" }]), "{made:?}");
    }
}

/// Pods of a namespace that have a node, by leaf, and the racks that they are in; held ones under `held`.
async fn seen(stage: &Stage) -> BTreeMap<String, (usize, BTreeSet<String>)> {
    let mut seen: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for pod in stage.list::<ApiPod>().await {
        let spec = pod.spec.unwrap();
        let leaf = pod.metadata.labels.unwrap().get(LEAF).cloned().unwrap_or_default();
        let held = spec.scheduling_gates.is_some_and(|gates| !gates.is_empty());
        let state = match (&spec.node_name, held) {
            (Some(_), _) => leaf,
            (None, true) => "held".to_owned(),
            (None, false) => "pending".to_owned(),
        };
        let of = seen.entry(state).or_default();
        of.0 += 1;
        let rack = spec.node_name.and_then(|node| {
            let rest = node.strip_prefix(&format!("{}-", stage.namespace))?.to_owned();
            Some(rest.split('-').next()?.to_owned())
        });
        of.1.extend(rack);
    }
    seen
}

fn count(seen: &BTreeMap<String, (usize, BTreeSet<String>)>, leaf: &str) -> usize {
    seen.get(leaf).map_or(0, |(count, _)| *count)
}

/// Waits until so many pods of each leaf have a node, and so many are held; returns what is seen then.
async fn until(stage: &Stage, wanted: &[(&str, usize)]) -> BTreeMap<String, (usize, BTreeSet<String>)> {
    eventually(PATIENT, "what is to run", async || {
        let now = seen(stage).await;
        let all: usize = wanted.iter().map(|(_, count)| count).sum();
        let is_so = wanted.iter().all(|(leaf, wanted)| count(&now, leaf) == *wanted);
        if is_so && now.values().map(|(count, _)| count).sum::<usize>() == all {
            Ok(now)
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await
}

fn racks<'a>(seen: &'a BTreeMap<String, (usize, BTreeSet<String>)>, leaf: &str) -> Vec<&'a str> {
    seen.get(leaf).map(|(_, racks)| racks.iter().map(String::as_str).collect()).unwrap_or_default()
}

async fn says(stage: &Stage, words: &str) {
    until_says(words, async || stage.kubectl(&["get", "events", "-o", "json"])).await;
}

/// The spec of one of the design's examples, counted from 1.
fn example(number: usize) -> Value {
    examples()[number - 1]["spec"].clone()
}

#[tokio::test]
async fn example_1_each_gang_goes_into_one_rack_when_both_are_there() {
    let stage = stage("gang-example-1").await;
    add(&stage, "b1", "r1", "a", 3).await;
    add(&stage, "b1", "r2", "a", 2).await;
    add(&stage, "b1", "r2", "b", 2).await;
    let _rolegate = stage.launch().start().await;
    create_group(&stage, &example(1)).await;
    create(&stage, "decode", 0, 4).await;
    says(&stage, "IncompleteBatch").await;
    let explained = explain(&stage, "decode-0").await;
    let reason = "IncompleteBatch: it has 1 of 2 gangs: gang prefill has 0 of 1 pods";
    assert!(explained.contains(reason), "{explained}");
    let described = |pod: &str| stage.kubectl(&["describe", "pod", pod]);
    until_says("it has 1 of 2 gangs", async || described("decode-0")).await;
    assert!(!described("decode-1").contains("it has 1 of 2 gangs"));
    until(&stage, &[("held", 4)]).await;
    create(&stage, "prefill", 0, 1).await;
    let seen = until(&stage, &[("decode", 4), ("prefill", 1)]).await;
    assert_eq!((racks(&seen, "decode"), racks(&seen, "prefill")), (vec!["r2"], vec!["r1"]));
    let group = stage.kubectl(&["get", "podgroups.scheduling.run.ai", "job", "-o", "json"]);
    assert!(group.contains(r#"{\"decode\":{\"pods\":4,\"within\":{\"rack\":\"gang-example-1-r2\"}}"#), "{group}");
    says(&stage, "released: gang decode: 4 pods in rack=gang-example-1-r2; gang prefill: 1 pods").await;
}

#[tokio::test]
async fn nothing_of_a_pod_group_goes_before_all_of_its_minimum_fits() {
    let stage = stage("gang-no-room").await;
    add(&stage, "b1", "r1", "a", 3).await;
    add(&stage, "b1", "r2", "a", 3).await;
    let _rolegate = stage.launch().start().await;
    create_group(&stage, &example(1)).await;
    create(&stage, "decode", 0, 4).await;
    create(&stage, "prefill", 0, 1).await;
    says(&stage, "no rack fits gang decode: best gang-no-room-r1 fits 3 of 4 pods").await;
    holds(Duration::from_secs(1), "all are held", async || seen(&stage).await, |now| count(now, "held") == 5).await;
    let explained = explain(&stage, "prefill-0").await;
    let place = "group gang-no-room/job (PodGroup job), role prefill";
    let reason = "NoRoom: no rack fits gang decode: best gang-no-room-r1 fits 3 of 4 pods";
    assert!(explained.contains(place) && explained.contains(reason), "{explained}");
    let status = format!(
        "gang-no-room/job  PodGroup  0/5 pods have a node  5 pods held\n  decode: 0 of 4 pods on nodes\n  prefill: 0 of 1 pod \
         on nodes\n  {reason}, its nodes have no more room for pods or their host ports (5 pods)\n"
    );
    for asked in [["status"].as_slice(), &["status", "job"], &["explain", "group", "job"]] {
        assert_eq!(stage.said(asked).await, status, "{asked:?}");
    }
    let json: Value = serde_json::from_str(&stage.said(&["status", "-o", "json"]).await).unwrap();
    assert_eq!(json["podGroups"][0]["holds"][0]["pods"], 5, "{json:#}");
    // Whoever makes room need tell nobody.
    add(&stage, "b2", "r3", "a", 4).await;
    let seen = until(&stage, &[("decode", 4), ("prefill", 1)]).await;
    assert_eq!(racks(&seen, "decode"), ["r3"]);
    says(&stage, "no longer so").await;
}

#[tokio::test]
async fn pods_go_when_nobody_asks_for_a_place_any_more() {
    let stage = stage("gang-let-go").await;
    add(&stage, "b1", "r1", "a", 2).await;
    let rolegate = stage.launch().flag("vanished-grace", "1s").start().await;
    create_group(&stage, &example(1)).await;
    create(&stage, "decode", 0, 2).await;
    says(&stage, "IncompleteBatch").await;
    let job = ["podgroups.scheduling.run.ai", "job"];
    stage.kubectl(&["annotate", job[0], job[1], "rolegate.dev/place-"]);
    until(&stage, &[("decode", 2)]).await;
    stage.api::<ApiPod>().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    until(&stage, &[]).await;
    // Deleted, with pods that wait for it.
    stage.kubectl(&["annotate", job[0], job[1], "rolegate.dev/place=enabled"]);
    let dry = async || stage.post(CORE, "pods?dryRun=All", &pod(&stage, "dry", "decode")).await;
    until_found("rolegate knows", dry, |dry| dry.body["spec"]["schedulingGates"].is_array()).await;
    create(&stage, "decode", 0, 2).await;
    until(&stage, &[("held", 2)]).await;
    stage.kubectl(&["delete", job[0], job[1]]);
    until(&stage, &[("decode", 2)]).await;
    drop(rolegate);
}

#[tokio::test]
async fn a_pod_that_says_so_itself_waits_for_its_pod_group() {
    let stage = stage("gang-early").await;
    add(&stage, "b1", "r1", "a", 9).await;
    let _rolegate = stage.launch().start().await;
    for at in 0..3 {
        let mut early = pod(&stage, &format!("worker-{at}"), "worker");
        early["metadata"]["annotations"]["rolegate.dev/place"] = json!("enabled");
        assert_eq!(stage.post(CORE, "pods", &early).await.code, 201);
    }
    until(&stage, &[("held", 3)]).await;
    create_group(&stage, &json!({ "minMember": 1, "subGroups": [{ "name": "worker", "minMember": 3 }] })).await;
    until(&stage, &[("worker", 3)]).await;
}

/// Committed, and then the leader is gone: the next one ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_killed_between_commit_and_release_leaves_no_half() {
    let stage = stage("gang-killed").await;
    add(&stage, "b1", "r1", "a", 4).await;
    add(&stage, "b1", "r2", "a", 1).await;
    let proxy = RequestProxy::before(&stage.plane).await;
    let first = stage.launch().through_requests(&proxy).start().await;
    proxy.lose(Kind { method: "PATCH", path: "/pods/decode-3" });
    create_group(&stage, &example(1)).await;
    create(&stage, "decode", 0, 4).await;
    create(&stage, "prefill", 0, 1).await;
    until_found("three of four", async || seen(&stage).await, |now| count(now, "decode") == 3).await;
    first.kill().await;
    let _second = stage.launch().start().await;
    let seen = until(&stage, &[("decode", 4), ("prefill", 1)]).await;
    assert_eq!(racks(&seen, "decode"), ["r1"]);
}

mod tier2 {
    use super::*;

    /// Leaders and workers in racks, those of each role within one block.
    #[tokio::test]
    async fn example_2_racks_lie_within_one_block() {
        let stage = stage("gang-example-2").await;
        for (block, rack, room) in [("b1", "r1", 4), ("b1", "r2", 1), ("b2", "r3", 4), ("b2", "r4", 2)] {
            add(&stage, block, rack, "a", room).await;
        }
        let _rolegate = stage.launch().start().await;
        create_group(&stage, &example(2)).await;
        for of in ["decode", "prefill"] {
            create(&stage, &format!("{of}-leaders"), 0, 1).await;
            create(&stage, &format!("{of}-workers"), 0, 4).await;
        }
        let leaves = ["decode-workers", "decode-leaders", "prefill-workers", "prefill-leaders"];
        let seen = until(&stage, &[(leaves[0], 4), (leaves[1], 1), (leaves[2], 4), (leaves[3], 1)]).await;
        let block = |leaf: &str| {
            racks(&seen, leaf).iter().map(|rack| u8::from(["r1", "r2"].contains(rack))).collect::<Vec<_>>()
        };
        for of in ["decode", "prefill"] {
            assert_eq!(block(&format!("{of}-workers")), block(&format!("{of}-leaders")), "{seen:?}");
        }
        assert!(leaves.iter().all(|leaf| racks(&seen, leaf).len() == 1), "{seen:?}");
    }

    /// Story 4: two of three replicas are enough to begin, the third comes when there is room.
    #[tokio::test]
    async fn example_3_begins_with_the_least_and_grows_as_it_fits() {
        let stage = stage("gang-example-3").await;
        add(&stage, "b1", "r1", "a", 8).await;
        let _rolegate = stage.launch().start().await;
        create_group(&stage, &example(3)).await;
        create(&stage, "replica-1", 0, 3).await;
        create(&stage, "replica-2", 0, 2).await;
        until(&stage, &[("held", 5)]).await;
        create(&stage, "replica-2", 2, 3).await;
        until(&stage, &[("replica-1", 3), ("replica-2", 3)]).await;
        create(&stage, "replica-3", 0, 3).await;
        says(&stage, "the PodGroup does not fit: there is room for 2 of 3 pods").await;
        until(&stage, &[("replica-1", 3), ("replica-2", 3), ("held", 3)]).await;
        add(&stage, "b1", "r1", "b", 1).await;
        until(&stage, &[("replica-1", 3), ("replica-2", 3), ("replica-3", 3)]).await;
    }

    /// Story 5: a replica of leaders and workers comes as a whole or not at all.
    #[tokio::test]
    async fn example_4_scales_out_by_whole_replicas() {
        let stage = stage("gang-example-4").await;
        add(&stage, "b1", "r1", "a", 20).await;
        let _rolegate = stage.launch().start().await;
        create_group(&stage, &example(4)).await;
        create(&stage, "workers-1", 0, 3).await;
        until(&stage, &[("held", 3)]).await;
        create(&stage, "leaders-1", 0, 1).await;
        let first = [("workers-1", 3), ("leaders-1", 1)];
        until(&stage, &first).await;
        create(&stage, "leaders-2", 0, 1).await;
        create(&stage, "workers-2", 0, 2).await;
        until(&stage, &[first.as_slice(), &[("held", 3)]].concat()).await;
        create(&stage, "workers-2", 2, 3).await;
        until(&stage, &[first.as_slice(), &[("workers-2", 3), ("leaders-2", 1)]].concat()).await;
    }

    #[tokio::test]
    async fn a_pod_that_is_made_again_goes_to_its_own_rack() {
        let stage = stage("gang-again").await;
        for rack in ["r1", "r2"] {
            add(&stage, "b1", rack, "a", 6).await;
        }
        let _rolegate = stage.launch().start().await;
        create_group(&stage, &example(1)).await;
        create(&stage, "decode", 0, 4).await;
        create(&stage, "prefill", 0, 1).await;
        let before = until(&stage, &[("decode", 4), ("prefill", 1)]).await;
        stage.api::<ApiPod>().delete("decode-2", &DeleteParams::default()).await.unwrap();
        until_found("it is gone", async || seen(&stage).await, |now| count(now, "decode") == 3).await;
        create(&stage, "decode", 2, 3).await;
        let after = until(&stage, &[("decode", 4), ("prefill", 1)]).await;
        assert_eq!(racks(&after, "decode"), racks(&before, "decode"));
    }
}
