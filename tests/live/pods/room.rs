//! Batches that must share a domain go where there is room for all of their pods, on the real scheduler.

use crate::common::prelude::*;
use crate::pods::support::{
    RACK, add_rack, coordinated, deploy, explain, in_racks, rack_of, rolling_deploy, stage, stored, with_rack,
    without_a_right,
};

/// A batch of four prefills and two decodes; the scheduler prefers the rack in which only five of them fit.
async fn a_tempting_rack(stage: &Stage) -> Group {
    add(stage, "tempting", "a", 5, &json!({ "cpu": "1000" })).await;
    for host in ["a", "b"] {
        add(stage, "roomy", host, 3, &json!({ "cpu": "8" })).await;
    }
    until_nodes_take_pods(stage).await;
    group("llm", 4, 2).template(&asks(&json!({ "cpu": "1" })))
}

/// Waits until no node is tainted: each is born with the taint of one that is not ready.
async fn until_nodes_take_pods(stage: &Stage) {
    let look = async || stage.nodes().list(&ListParams::default()).await.unwrap().items;
    let is_ours = |node: &Node| node.metadata.name.as_ref().is_some_and(|name| name.starts_with(&stage.namespace));
    let is_tainted = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
    until_found("nodes take pods", look, |all| !all.iter().any(|node| is_ours(node) && is_tainted(node))).await;
}

/// Adds a node of a rack with room for so many pods, and these resources beside.
pub async fn add(stage: &Stage, rack: &str, host: &str, pods: u32, resources: &Value) {
    let status = json!({ "allocatable": resources, "capacity": resources });
    let more = json!({ "metadata": { "labels": { (RACK): rack } }, "status": status });
    stage.add_node_like(&format!("{rack}-{host}"), pods, &more).await;
}

pub fn asks(resources: &Value) -> Value {
    asking(&json!({ "requests": resources, "limits": resources }))
}

/// One step of so many prefills and decodes.
pub fn group(name: &str, prefill: u32, decode: u32) -> Group {
    Group::new(name).role("prefill", prefill, prefill).role("decode", decode, decode)
}

pub fn one_step(group: &Group) -> Value {
    let step: serde_json::Map<_, _> = group.roles.iter().map(|role| (role.name.clone(), json!(role.segment))).collect();
    rolling_deploy("rack", "hard", &Value::Object(step))
}

/// The racks in which pods of a group run.
pub fn racks(stage: &Stage, now: &View, group: &str) -> BTreeSet<Option<String>> {
    now.all().filter(|pod| pod.name.starts_with(group)).map(|pod| rack_of(stage, pod)).collect()
}

pub fn only(rack: &str) -> BTreeSet<Option<String>> {
    [Some(rack.to_owned())].into()
}

/// A pod that nobody coordinates, on a node with these labels.
async fn another(stage: &Stage, name: &str, at: &Value) {
    let mut pod = group("none", 1, 1).pod("none", name, &stage.namespace);
    pod["metadata"]["labels"] = json!({});
    json_patch::merge(&mut pod["spec"]["nodeSelector"], at);
    stage.create(pod).await;
}

#[tokio::test]
async fn without_placement_a_step_is_stuck_for_ever_in_a_rack_that_is_too_small() {
    let (stage, _rolegate) = stage("room-off").await.serve_with("placement", "off").await;
    let group = a_tempting_rack(&stage).await;
    deploy(&stage, &group, &one_step(&group)).await;
    let all_that_fit = |now: &View| now.count_all(Pod::is_scheduled) == 5 && now.count_all(Pod::is_released) == 6;
    stage.pods.until("all are released, and those that fit have a node", all_that_fit).await;
    stage.pods.always(Duration::from_secs(2), "one has no node", |now| now.count_all(Pod::is_scheduled) == 5).await;
}

#[tokio::test]
async fn a_step_goes_to_the_rack_with_room_for_all_of_it() {
    let (stage, _rolegate) = stage("room-on").await.serve().await;
    let group = a_tempting_rack(&stage).await;
    let statuses = deploy(&stage, &group, &one_step(&group)).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 6).await;
    stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("roomy"), "{now}"));
    let domains = json!({ "0": "roomy" });
    statuses.until("it is committed", |status| status.0["coordinationState"][0]["domains"] == domains).await;
    for pod in stored(&stage).await {
        let selector = pod.spec.as_ref().unwrap().node_selector.clone().unwrap();
        assert_eq!(selector[RACK], "roomy");
        assert_eq!(selector.get("kubernetes.io/hostname"), None, "its pods are all alike");
    }
}

/// Pods that are alike name no node, so the scheduler takes one that is to go last. Those that wait for a node keep others away.
#[tokio::test]
async fn equal_pods_are_bound_to_their_rack_alone_and_no_rack_is_given_twice() {
    let (stage, _rolegate) = stage("room-loose").await.serve().await;
    let cpu = json!({ "cpu": "4" });
    // A rack is a label: unbound pods of other tests in one of the same name would count.
    for (rack, host) in [("loose1", "goes"), ("loose1", "stays"), ("loose2", "goes"), ("loose2", "stays")] {
        let taints: &[Value] =
            if host == "goes" { &[json!({ "key": "goes", "effect": "PreferNoSchedule" })] } else { &[] };
        let status = json!({ "allocatable": cpu, "capacity": cpu });
        let more =
            json!({ "metadata": { "labels": { (RACK): rack } }, "spec": { "taints": taints }, "status": status });
        stage.add_node_like(&format!("{rack}-{host}"), 9, &more).await;
    }
    let of = |name: &str, cpu: &str| group(name, 1, 1).template(&asks(&json!({ "cpu": cpu })));
    let (small, large) = (of("small", "1"), of("large", "4"));
    let (of_small, of_large) = (one_step(&small), one_step(&large));
    tokio::join!(deploy(&stage, &small, &of_small), deploy(&stage, &large, &of_large));
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
    stage.pods.now(|now| {
        let (of_small, of_large) = (racks(&stage, now, "small"), racks(&stage, now, "large"));
        assert!(of_small.len() == 1 && of_large.len() == 1 && of_small != of_large, "{now}");
        let small = now.all().filter(|pod| pod.name.starts_with("small"));
        assert!(small.into_iter().all(|pod| pod.node.as_ref().is_some_and(|node| node.ends_with("stays"))), "{now}");
    });
    for pod in stored(&stage).await {
        let selector = pod.spec.unwrap().node_selector.unwrap();
        assert!(selector.contains_key(RACK) && !selector.contains_key("kubernetes.io/hostname"), "{selector:?}");
    }
}

/// KEP-75, story 3: 4P4D in steps of 2P:2D on too small a cluster.
#[tokio::test]
async fn kep_75_story_3_on_too_small_a_cluster_there_are_whole_steps_only() {
    let (stage, _rolegate) = with_rack("room-story-3", "r1", &["a", "b"], 3).await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2);
    let step = rolling_deploy("rack", "hard", &json!({ "prefill": 2, "decode": 2 }));
    let statuses = deploy(&stage, &group, &step).await;
    let status = statuses.until("the second step waits", |status| status.reason() == "NoRoom").await;
    stage.pods.until("the first step runs", |now| now.count_all(Pod::is_ready) == 4).await;
    stage.pods.now(|now| {
        let running = |role| now.of(role).filter(|pod| pod.is_released()).map(|pod| pod.index).collect::<BTreeSet<_>>();
        assert_eq!((running("prefill"), running("decode")), ([0, 1].into(), [0, 1].into()), "{now}\n{status}");
    });
    let told = |role: &str| status.0["coordinationState"][0]["progress"][role].clone();
    let one_step = json!({ "strategy": "rollingDeploy", "state": "Progressing", "released": 2 });
    assert_eq!(["prefill", "decode"].map(told), [one_step.clone(), one_step], "the step without room is not released");
    let why = "no rack fits step 2: best r1 fits 2 of 4 pods";
    stage.until_event("NoRoom", &[why]).await;
    let explained = explain(&stage, "llm-prefill-2").await;
    assert!(explained.contains(&format!("NoRoom: {why}")), "{explained}");
    for asked in [["status", "llm"].as_slice(), &["explain", "group", "llm"]] {
        let fit = format!("pd: 1 of 2 run, 0 of 1 steps fit\n    step 2 (2 prefill and 2 decode): {why}");
        let shown = stage.said(asked).await;
        assert!(shown.contains(&fit), "{shown}");
    }
    // Whoever makes room need tell nobody.
    add_rack(&stage, "r2", &["a"], 4).await;
    stage.pods.until("both steps run", |now| now.count_all(Pod::is_ready) == 8).await;
    stage.pods.now(|now| {
        assert!(now.all().filter(|pod| pod.index > 1).all(|pod| rack_of(&stage, pod).as_deref() == Some("r2")));
    });
}

/// Takes the gate of somebody else off all pods.
async fn open_other_gates(stage: &Stage) {
    let api = stage.api::<ApiPod>();
    let gate = json!({ "spec": { "schedulingGates": [{ "$patch": "delete", "name": OTHER_GATE }] } });
    for pod in stored(stage).await {
        // It may be gone by now.
        _ = api.patch(&pod.metadata.name.unwrap(), &PatchParams::default(), &Patch::Strategic(&gate)).await;
    }
}

/// Waits until the scheduler has seen that a node takes no pod.
async fn until_scheduler_refuses(stage: &Stage, node: &str) {
    another(stage, "probe", &json!({ "kubernetes.io/hostname": node })).await;
    let api = stage.api::<ApiPod>();
    let conditions = async || api.get("probe").await.unwrap().status.and_then(|status| status.conditions);
    until_found("the scheduler refuses the node", conditions, |found| {
        found.iter().flatten().any(|is| is.reason.as_deref() == Some("Unschedulable"))
    })
    .await;
    api.delete("probe", &DeleteParams::default().grace_period(0)).await.unwrap();
    stage.pods.until("the probe is gone", |now| now.named("probe").is_none()).await;
}

/// A gate of Kueue, of which the pods say that it waits for rolegate: they go, and are bound once it is lifted.
const OTHER_GATE: &str = "kueue.x-k8s.io/admission";

fn gated() -> Value {
    json!({
        "metadata": { "annotations": { "kueue.x-k8s.io/admission-gated-by": "rolegate.dev/hold" } },
        "spec": { "schedulingGates": [{ "name": OTHER_GATE }] },
    })
}

/// The same, where rolegate may delete pods: nobody has to do anything.
#[tokio::test]
async fn a_batch_whose_rack_takes_it_no_more_is_made_again_and_goes_elsewhere() {
    let stage = in_racks("room-made-again", &[("r1", &["a"], 3), ("r2", &["a"], 6)]).await;
    // Longer than the scheduler of a busy machine takes for three pods.
    let _rolegate = stage.launch().flag("bind-timeout", "8s").flag("allow", "recovery").start().await;
    let group = group("llm", 2, 1).template(&gated());
    deploy(&stage, &group, &one_step(&group)).await;
    stage.pods.until("it goes", |now| now.count_all(Pod::is_released) == 3).await;
    let first = stored(&stage).await;
    let pinned = &first[0].metadata.annotations.as_ref().unwrap()["rolegate.dev/pinned"];
    assert!(pinned.starts_with(&format!("{RACK}=r1")), "{pinned}");
    let old = stage.pods.uids();
    let placed = async |rack: &str| {
        let waits = "and 3 of its pods have no node there; scheduling gates of others hold 3";
        stage.until_said(&["status", "llm"], &format!("was placed in {rack}, {waits}")).await;
    };
    placed("r1").await;
    stage.patch_node("room-made-again-r1-a", &json!({ "spec": { "unschedulable": true } })).await;
    until_scheduler_refuses(&stage, "room-made-again-r1-a").await;
    assert_eq!(stage.pods.uids(), old, "others hold them");
    open_other_gates(&stage).await;
    let is_new = |pod: &Pod| old.get(&pod.name) != Some(&pod.uid) && pod.is_released();
    stage.pods.until("new ones go", |now| now.count_all(is_new) == 3).await;
    // The scheduler has its whole time from the moment in which others let them go, however long they held them.
    placed("r2").await;
    let held_by_others = stage.pods.uids();
    open_other_gates(&stage).await;
    stage.pods.until("they run", |now| now.count_all(Pod::is_ready) == 3).await;
    assert_eq!(stage.pods.uids(), held_by_others, "none is made once more");
    stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("r2"), "{now}"));
    stage.until_event("DomainLost", &["goes to r2", "r1"]).await;
}

/// Pods of a Deployment have no ordinals, and cannot name their batch: they are bound to its domain with their release.
#[tokio::test]
async fn pods_of_a_deployment_share_a_rack() {
    let stage = stage("room-deployment").await;
    add(&stage, "small", "a", 2, &json!({ "cpu": "1000" })).await;
    add(&stage, "large", "a", 3, &json!({ "cpu": "8" })).await;
    let _rolegate = stage.launch().start().await;
    let main = Group::new("llm").role("main", 3, 3).template(&asks(&json!({ "cpu": "1" })));
    let mut coordination = main.coordination_of("Deployment", &json!({}));
    coordination["spec"]["coordination"] = json!([one_step(&main)]);
    stage.create(coordination).await;
    stage.create(main.deployment("main", &stage.namespace, &json!({}))).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 3).await;
    let nodes: BTreeSet<_> = stage.pods.now(|now| now.all().filter_map(|pod| rack_of(&stage, pod)).collect());
    assert_eq!(nodes, ["large".to_owned()].into());
}

/// Nodes and pods are not watched for it: it is counted on empty nodes.
#[tokio::test]
async fn a_segment_that_goes_in_part_is_told_of_when_it_is_applied_without_a_topology() {
    let (stage, _rolegate) = with_rack("room-in-part", "r1", &["a"], 3).await;
    let group = group("llm", 4, 4);
    stage.create_sets(&group).await;
    let apply = |whole: bool| {
        let sizes = json!({ "prefill": 4, "decode": 4 });
        let placement = json!({ "segmentSize": sizes, "whole": whole });
        let coordination = json!({ "name": "pd", "strategy": { "segmentPlacement": placement } });
        let object = coordinated(&group, &coordination);
        let output = stage.plane.kubectl(&["-n", &stage.namespace, "apply", "-f", "-"], &object.to_string());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let why = "0 of 1 segments fit onto the nodes, if nothing else ran there: ";
    let told = apply(false);
    assert!(told.contains(why) && told.contains("what fits of it goes, unless `whole: true` keeps it back"), "{told}");
    let told = apply(true);
    assert!(!told.contains("unless `whole: true`"), "{told}");
}

/// Whoever applies a group is told when there is too little room for it, as far as its pods are known.
#[tokio::test]
async fn a_group_that_does_not_fit_is_told_of_when_it_is_applied() {
    let (stage, _rolegate) = with_rack("room-warning", "r1", &["a"], 3).await;
    let group = group("llm", 2, 2);
    stage.create_sets(&group).await;
    let apply = |round: u32| {
        let mut object = coordinated(&group, &one_step(&group));
        let annotations = json!({ "example.com/round": round.to_string() });
        object["spec"]["roles"][0]["template"] = json!({ "metadata": { "annotations": annotations }, "spec": {} });
        let output = stage.plane.kubectl(&["-n", &stage.namespace, "apply", "-f", "-"], &object.to_string());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let why = "0 of 1 steps fit into the room that nodes have now: no rack fits step 1: best r1 fits 3 of 4 pods";
    let round = std::cell::Cell::new(0);
    // The first time it may not be known soon enough, on a busy machine.
    eventually(PATIENT, "it is told", async || {
        round.set(round.get() + 1);
        let told = apply(round.get());
        if told.contains(why) { Ok(()) } else { Err(told) }
    })
    .await;
    // Nothing of what is asked for has changed.
    assert_eq!(apply(round.get()), "");
    stage.statuses(&group).until("it waits", |status| status.reason() == "NoRoom").await;
    add_rack(&stage, "r2", &["a"], 4).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
}

#[tokio::test]
async fn where_nodes_may_not_be_read_batches_go_by_their_turn_and_it_is_told() {
    let stage = in_racks("room-rights", &[("r1", &["a", "b"], 3)]).await;
    let _rolegate = without_a_right(&stage, "nodes", |rule| rule["resources"] == json!(["nodes"])).await;
    let group = group("llm", 4, 2);
    let statuses = deploy(&stage, &group, &one_step(&group)).await;
    let told = "True NotJudged: what is to go as a whole goes without a place: nodes may not be read";
    let lasts = |status: &Status| status.ready().ends_with("6/6 pods ready") && status.condition("RoomUnknown") == told;
    statuses.until("all run, and it is told", lasts).await;
    stage.until_event("RoomUnknown", &["step 1 goes without a place: nodes may not be read"]).await;
}

/// Two segments of two prefills and a decode: the second one would fit in part into the small rack.
#[tokio::test]
async fn a_segment_whose_roles_are_scaled_one_after_the_other_goes_whole_into_one_rack() {
    const GPU: &str = "example.com/gpu";
    let stage = stage("room-growth").await;
    for (rack, gpus) in [("first", 12), ("small", 8), ("large", 16)] {
        add(&stage, rack, "a", 9, &json!({ "cpu": "64", GPU: gpus.to_string() })).await;
    }
    until_nodes_take_pods(&stage).await;
    // Time does not decide.
    let rolegate = stage.launch().flag("settle", "30m").start().await;
    let group = Group::new("llm").role("prefill", 2, 2).role("decode", 1, 1).template(&asks(&json!({ GPU: "4" })));
    let statuses = stage.coordination_statuses("llm");
    stage.create(group.coordination_of("StatefulSet", &near(RACK, "RequireSegmentAffinity"))).await;
    stage.create_sets(&group).await;
    stage.pods.until("the first segment runs", |now| now.count_all(Pod::is_ready) == 3).await;
    stage.scale_set(&group, "prefill", 4).await;
    statuses.until("the second one waits for its decode", |status| status.reason() == "SegmentGrowing").await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="SegmentGrowing"}"#, 2).await;
    let explained = explain(&stage, "llm-prefill-2").await;
    assert!(explained.contains("SegmentGrowing") && explained.contains("0/1 decode and 2/2 prefill"), "{explained}");
    stage.scale_set(&group, "decode", 2).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 6).await;
    stage.pods.now(|now| {
        let second = ["llm-prefill-2", "llm-prefill-3", "llm-decode-1"];
        let racks: BTreeSet<_> = second.iter().map(|name| rack_of(&stage, now.named(name).unwrap())).collect();
        assert_eq!(racks, only("large"), "{now}");
    });
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn what_others_take_and_give_back_counts() {
        let stage = in_racks("room-others", &[("r1", &["a", "b"], 2)]).await;
        for pod in ["x", "y"] {
            another(&stage, pod, &json!({})).await;
        }
        stage.pods.until("the others run", |now| now.count_all(Pod::is_scheduled) == 2).await;
        let _rolegate = stage.launch().start().await;
        let group = group("llm", 2, 1);
        let statuses = deploy(&stage, &group, &one_step(&group)).await;
        statuses.until("there is no room", |status| status.reason() == "NoRoom").await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 3, "{now}"));
        stage.api::<ApiPod>().delete("x", &DeleteParams::default().grace_period(0)).await.unwrap();
        stage.pods.until("all run", |now| now.count_all(|pod| pod.is_ready() && pod.name != "y") == 3).await;
    }

    /// A pod of others keeps decodes away from the only node of the rack, by namespaces with a label, which only the scheduler reads.
    #[tokio::test]
    async fn a_batch_of_which_the_scheduler_refuses_a_pod_leaves_its_rack_as_a_whole() {
        let stage = in_racks("room-refused", &[("r1", &["a"], 4)]).await;
        let mut other = group("none", 1, 1).pod("none", "x", &stage.namespace);
        other["metadata"]["labels"] = json!({});
        let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": stage.namespace } });
        let decodes = json!({ "matchLabels": { "rolegate.dev/role": "decode" } });
        let term = json!({ "topologyKey": RACK, "namespaceSelector": here, "labelSelector": decodes });
        let terms = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
        other["spec"]["affinity"] = json!({ "podAntiAffinity": terms });
        stage.create(other).await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_scheduled) == 1).await;
        add_rack(&stage, "r2", &["a"], 6).await;
        let _rolegate = stage.launch().flag("bind-timeout", "4s").flag("allow", "recovery").start().await;
        let group = group("llm", 2, 1);
        deploy(&stage, &group, &one_step(&group)).await;
        stage
            .until_event("NodeRefusesPods", &["room-refused-r1-a", "llm-decode-0", "nodes are available: 1 node(s)"])
            .await;
        stage.pods.until("it runs in the other rack", |now| racks(&stage, now, "llm") == only("r2")).await;
        stage.pods.until("all of it", |now| now.count_all(|pod| pod.is_ready() && pod.name != "x") == 3).await;
    }

    #[tokio::test]
    async fn a_rack_that_is_cordoned_takes_nobody() {
        let stage = in_racks("room-cordon", &[("r1", &["a"], 3)]).await;
        let cordon =
            async |on: bool| stage.patch_node("room-cordon-r1-a", &json!({ "spec": { "unschedulable": on } })).await;
        cordon(true).await;
        let _rolegate = stage.launch().start().await;
        let group = group("llm", 2, 1);
        let statuses = deploy(&stage, &group, &one_step(&group)).await;
        statuses.until("there is no room", |status| status.reason() == "NoRoom").await;
        cordon(false).await;
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 3).await;
        // What is made again goes where the others are, or waits for it.
        cordon(true).await;
        add_rack(&stage, "r2", &["a"], 3).await;
        stage.api::<ApiPod>().delete("llm-prefill-0", &DeleteParams::default().grace_period(0)).await.unwrap();
        let again = |now: &View| now.named("llm-prefill-0").is_some_and(|pod| pod.is_released() && !pod.is_scheduled());
        stage.pods.until("it waits for its rack", again).await;
        cordon(false).await;
        stage.pods.until("all run again", |now| now.count_all(Pod::is_ready) == 3).await;
        stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("r1"), "{now}"));
    }

    #[tokio::test]
    async fn room_that_is_not_used_in_time_is_given_to_others() {
        let (stage, _rolegate) =
            in_racks("room-not-bound", &[("r1", &["a"], 3)]).await.serve_with("bind-timeout", "2s").await;
        let nobody = group("nobody", 2, 1).template(&json!({ "spec": { "schedulerName": "nobody" } }));
        let statuses = deploy(&stage, &nobody, &one_step(&nobody)).await;
        stage.pods.until("it goes", |now| now.count_all(Pod::is_released) == 3).await;
        let other = group("other", 2, 1);
        deploy(&stage, &other, &one_step(&other)).await;
        let status = statuses.until("it is told", |status| status.reason() == "PlacedNotBound").await;
        stage.pods.until("the others run", |now| now.count_all(Pod::is_ready) == 3).await;
        assert_eq!(status.reason(), "PlacedNotBound");
    }

    /// The pods are bound to a node that is no more: that is told, and whoever makes them again has them placed anew.
    #[tokio::test]
    async fn a_node_that_dies_between_decision_and_binding() {
        let stage = in_racks("room-node-dies", &[("r1", &["a"], 3), ("r2", &["a"], 6)]).await;
        let (stage, _rolegate) = stage.serve_with("bind-timeout", "2s").await;
        let group = group("llm", 2, 1).template(&gated());
        let statuses = deploy(&stage, &group, &one_step(&group)).await;
        stage.pods.until("it goes", |now| now.count_all(Pod::is_released) == 3).await;
        for pod in stored(&stage).await {
            assert_eq!(pod.spec.unwrap().node_selector.unwrap()[RACK], "r1");
        }
        stage.nodes().delete("room-node-dies-r1-a", &DeleteParams::default()).await.unwrap();
        open_other_gates(&stage).await;
        statuses.until("it is told", |status| status.reason() == "PlacedNotBound").await;
        let first = stored(&stage).await.swap_remove(0).metadata.name.unwrap();
        let explain = ["explain", "pod", &first];
        stage.until_said(&explain, "PlacedNotBound").await;
        stage.until_said(&explain, &format!("{RACK}=r1")).await;
        stage.until_said(&["status", "llm"], "PlacedNotBound").await;
        let old = stage.pods.uids();
        stage.api::<ApiPod>().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        let is_new = |pod: &Pod| old.get(&pod.name) != Some(&pod.uid) && pod.is_released();
        stage.pods.until("it goes again", |now| now.count_all(is_new) == 3).await;
        open_other_gates(&stage).await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 3).await;
        stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("r2"), "{now}"));
    }

    /// A kubelet refuses a pod that the scheduler thinks fits: it is not sent there for ever.
    #[tokio::test]
    async fn a_node_that_refuses_a_pod_twice_is_left_out_for_a_while() {
        let (stage, _rolegate) = with_rack("room-kubelet", "k1", &["a", "b"], 3).await;
        let group = group("llm", 1, 1).held_back();
        deploy(&stage, &group, &one_step(&group)).await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_scheduled) == 2).await;
        let api = stage.api::<ApiPod>();
        let found = || stage.pods.now(|now| now.named("llm-prefill-0").unwrap().clone());
        let first = found().node.unwrap();
        for _ in 0..2 {
            let Pod { uid: before, node, .. } = found();
            assert_eq!(node.as_ref(), Some(&first), "once may be chance");
            let refused = json!({
                "metadata": { "uid": before },
                "status": { "phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no devices" },
            });
            let again =
                |now: &View| now.named("llm-prefill-0").is_some_and(|pod| pod.uid != before && pod.is_scheduled());
            // The fake kubelet may write the phase of a new pod afterwards. No other pod is patched: the uid is a precondition.
            eventually(PATIENT, "it is made again", async || {
                _ = api.patch_status("llm-prefill-0", &PatchParams::default(), &Patch::Merge(&refused)).await;
                if stage.pods.now(again) { Ok(()) } else { Err("it is not") }
            })
            .await;
        }
        assert_ne!(found().node.as_ref(), Some(&first), "it goes to the other node of its rack");
        let words = [&*first, "2 times (UnexpectedAdmissionError)", "is not placed there for 1m"];
        stage.until_event("NodeRefusesPods", &words).await;
    }

    /// A pod of a backup is where it was, as far as it says itself.
    #[tokio::test]
    async fn a_copy_of_a_pod_is_not_bound_to_the_place_of_yesterday() {
        let (stage, _rolegate) = with_rack("room-restored", "r1", &["a"], 3).await;
        let group =
            group("llm", 2, 1).template(&json!({ "spec": { "nodeSelector": { "kubernetes.io/os": "linux" } } }));
        deploy(&stage, &group, &one_step(&group)).await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 3).await;
        let mut copy = stored(&stage).await.swap_remove(0);
        let selector = copy.spec.as_ref().unwrap().node_selector.clone().unwrap();
        assert_eq!(selector[RACK], "r1");
        let annotations = copy.metadata.annotations.clone().unwrap();
        let labels = copy.metadata.labels;
        copy.metadata = typed(json!({ "name": "restored", "labels": labels, "annotations": annotations }));
        copy.spec.as_mut().unwrap().node_name = None;
        copy.status = None;
        let made = stage.api::<ApiPod>().create(&PostParams::default(), &copy).await.unwrap();
        let selector = made.spec.unwrap().node_selector.unwrap();
        assert!(selector.contains_key("kubernetes.io/os"), "what its author wrote stays: {selector:?}");
        assert!(!selector.contains_key(RACK) && !selector.contains_key("kubernetes.io/hostname"), "{selector:?}");
        assert!(!made.metadata.annotations.unwrap().contains_key("rolegate.dev/pinned"));
    }

    /// A rack is given another name while a batch runs in it: a pod that is made again goes to its peers.
    #[tokio::test]
    async fn a_rack_of_another_name_is_still_that_of_the_pods_that_run_there() {
        let (stage, _rolegate) = with_rack("room-renamed", "before", &["a"], 6).await;
        let group = group("llm", 2, 1);
        deploy(&stage, &group, &one_step(&group)).await;
        stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 3).await;
        let renamed = json!({ "metadata": { "labels": { (RACK): "after" } } });
        stage.patch_node("room-renamed-before-a", &renamed).await;
        stage.replace_pod("llm-prefill-0", Pod::is_ready).await;
        stage.until_event("DomainLost", &["goes to after: no node is in before any more"]).await;
    }

    #[tokio::test]
    async fn when_nothing_fits_a_batch_goes_all_the_same_where_it_is_asked_for() {
        let (stage, _rolegate) = in_racks("room-release", &[("r1", &["a"], 1), ("r2", &["a"], 2)]).await.serve().await;
        let group = group("llm", 2, 1);
        let mut coordination = one_step(&group);
        coordination["whenNoFit"] = json!("release");
        deploy(&stage, &group, &coordination).await;
        stage.pods.until("two run", |now| now.count_all(Pod::is_ready) == 2).await;
        stage.pods.now(|now| {
            assert_eq!(now.count_all(Pod::is_held), 0, "{now}");
            let used: BTreeSet<_> = now.all().filter_map(|pod| rack_of(&stage, pod)).collect();
            assert_eq!(used, ["r2".to_owned()].into());
        });
    }
}
