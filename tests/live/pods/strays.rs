//! Pods of a Deployment stay in the racks of their batches when a rollout makes more of them, and when the Deployment is scaled in:
//! no pod has a number of its own, and the Deployment chooses the pods that go.

use k8s_openapi::api::apps::v1::Deployment;

use crate::common::prelude::*;
use crate::pods::support::{RACK, add_rack, rack_of, stage};

/// The label with the number of a pod's segment.
const SEGMENT: &str = "rolegate.dev/segment";

/// Serves segments of two routers, each in one of these racks, with room for so many pods.
async fn deployed(namespace: &str, (racks, room): (&[&str], u32)) -> (Stage, Rolegate, StatusLog) {
    let stage = stage(namespace).await;
    for rack in racks {
        add_rack(&stage, rack, &["a"], room).await;
    }
    // The account is made with the right to delete pods, which this process does not use.
    stage.launch().flag("allow", "recovery").kubeconfig().await;
    let rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("router", u32::try_from(racks.len()).unwrap() * 2, 2);
    let affinity = json!({ "topologyKey": RACK, "strategy": "RequireSegmentAffinity" });
    let statuses = stage.coordination_statuses("llm");
    stage.create(group.coordination_of("Deployment", &json!({ "topologyAffinity": affinity }))).await;
    let surge = json!({ "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } } });
    stage.create(group.deployment("router", &stage.namespace, &surge)).await;
    statuses.until("all run", |status| status.ready().starts_with("True AllReplicasReady")).await;
    (stage, rolegate, statuses)
}

async fn change(stage: &Stage, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    stage.api::<Deployment>().patch("llm-router", &PatchParams::default(), &patch).await.unwrap();
}

/// Returns the racks in which the pods of each segment run.
fn racks_by_segment(stage: &Stage, now: &View) -> BTreeMap<String, BTreeSet<Option<String>>> {
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for pod in now.all() {
        found.entry(pod.labels.get(SEGMENT).cloned().unwrap_or_default()).or_default().insert(rack_of(stage, pod));
    }
    found
}

/// Waits until so many pods are ready, and each segment runs in the domain that the status names; returns the domains.
async fn until_together(stage: &Stage, statuses: &StatusLog, pods: usize) -> BTreeMap<String, String> {
    eventually(2 * PATIENT, "each segment is in its domain", async || {
        let status = statuses.now();
        let domains = status.0["coordinationState"][0]["domains"].clone();
        let domains: BTreeMap<String, String> = serde_json::from_value(domains).unwrap();
        stage.pods.now(|now| {
            let racks = racks_by_segment(stage, now);
            let is_told =
                |(segment, domain): (&String, &String)| racks.get(segment) == Some(&[Some(domain.clone())].into());
            let are_there = now.count_all(Pod::is_ready) == pods && now.count_all(|_| true) == pods;
            let together = are_there && status.reason().is_empty() && domains.iter().all(is_told);
            if together { Ok(domains.clone()) } else { Err(format!("{racks:?}, and told are {status}")) }
        })
    })
    .await
}

/// Has the Deployment delete these pods first.
async fn cheap(stage: &Stage, pods: &[String]) {
    let cheap = json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": "-100" } } });
    for pod in pods {
        stage.api::<ApiPod>().patch(pod, &PatchParams::default(), &Patch::Merge(&cheap)).await.unwrap();
    }
}

/// Returns the names of so many pods in a rack.
fn some_in(stage: &Stage, rack: &str, count: usize) -> Vec<String> {
    stage.pods.now(|now| {
        let here = now.all().filter(|pod| rack_of(stage, pod).as_deref() == Some(rack));
        here.map(|pod| pod.name.clone()).take(count).collect()
    })
}

#[tokio::test]
async fn a_rollout_with_a_surge_leaves_no_pod_outside_of_the_racks_of_its_group() {
    let (stage, _rolegate, statuses) = deployed("strays-surge", (&["r1", "r2"], 3)).await;
    // The scheduler prefers the empty rack.
    add_rack(&stage, "tempting", &["a", "b"], 100).await;
    let old: BTreeSet<_> = stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    change(&stage, json!({ "template": { "metadata": { "annotations": { "version": "2" } } } })).await;
    let new = |pod: &Pod| pod.ready && !old.contains(&pod.uid);
    stage.pods.until_within(2 * PATIENT, "all are new", |now| now.count_all(new) == 4).await;
    let racks = until_together(&stage, &statuses, 4).await;
    assert_eq!(racks.values().collect::<BTreeSet<_>>(), [&"r1".to_owned(), &"r2".to_owned()].into());
}

#[tokio::test]
async fn after_a_scale_in_the_domains_are_those_in_which_the_pods_run() {
    let (stage, _rolegate, statuses) = deployed("strays-scale-in", (&["r1", "r2", "r3"], 2)).await;
    let first = stage.pods.now(|now| racks_by_segment(&stage, now))["0"].first().cloned().flatten().unwrap();
    cheap(&stage, &some_in(&stage, &first, 2)).await;
    change(&stage, json!({ "replicas": 4 })).await;
    let racks = until_together(&stage, &statuses, 4).await;
    assert!(!racks.values().any(|rack| *rack == first), "{racks:?}");
}

#[tokio::test]
async fn a_segment_in_two_racks_says_so_and_its_strays_are_recreated_one_at_a_time() {
    let (stage, rolegate, statuses) = deployed("strays-split", (&["r1", "r2", "r3"], 2)).await;
    let racks = stage.pods.now(|now| racks_by_segment(&stage, now));
    let of = |segment: &str| racks[segment].first().cloned().flatten().unwrap();
    let cheapest = [some_in(&stage, &of("0"), 1), some_in(&stage, &of("1"), 1)].concat();
    cheap(&stage, &cheapest).await;
    change(&stage, json!({ "replicas": 4 })).await;
    let told = format!("is in {}, and 1 of its pods in {}; `kubectl delete pod", of("0"), of("2"));
    statuses.until("it is told", |status| status.reason() == "BatchSplit" && status.to_string().contains(&told)).await;
    rolegate.until_metric(r#"rolegate_held_groups{reason="BatchSplit"}"#, 1).await;
    stage.until_said(&["status", "llm"], "BatchSplit").await;

    stage.pods.until("the others are gone", |now| now.count_all(|_| true) == 4).await;
    rolegate.terminate().await;

    let before = stage.pods.events().len();
    let _rolegate = stage.launch().flag("allow", "recovery").start().await;
    until_together(&stage, &statuses, 4).await;
    let gone = stage.pods.events()[before..].iter().filter(|event| event.step == Step::Gone).count();
    assert_eq!(gone, 2, "no pod but the two strays is deleted");
}
