//! KEP-32, Story 3: the size of a LeaderWorkerSet changes, with its real controllers.

use crate::common::prelude::*;

/// Number of the instance that a pod belongs to.
const INSTANCE: &str = "leaderworkerset.sigs.k8s.io/group-index";

/// Creates the coordination and a LeaderWorkerSet, each of whose instances is a segment.
async fn deploy(stage: &Stage, group: &Group, size: usize, rollout: &Value) {
    stage.create(group.coordination_of("LeaderWorkerSet", &json!({}))).await;
    let rollout = json!({ "type": "RollingUpdate", "rollingUpdateConfiguration": rollout });
    let more = json!({ "spec": { "rolloutStrategy": rollout } });
    stage.create(group.leader_worker_set("main", size, &stage.namespace, &more)).await;
}

async fn change(stage: &Stage, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    let sets = stage.objects("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
    sets.patch("llm-main", &PatchParams::default(), &patch).await.unwrap();
}

/// How many pods each instance has, as its pods say.
fn sized(pod: &Pod, size: usize) -> bool {
    pod.annotations.get("leaderworkerset.sigs.k8s.io/size") == Some(&size.to_string())
}

#[tokio::test]
async fn an_instance_beyond_the_desired_ones_runs_while_an_update_needs_it() {
    let (stage, _rolegate) = crate::scale::stage("lws-surge").await.with_room(12).await.serve().await;
    let statuses = stage.coordination_statuses("llm");
    let group = Group::new("llm").role("main", 3, 1);
    deploy(&stage, &group, 2, &json!({ "maxUnavailable": 0, "maxSurge": 1 })).await;
    statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;

    let before = stage.pods.events().len();
    let old = stage.pods.uids();
    let relabel = json!({ "metadata": { "annotations": { "version": "2" } } });
    change(&stage, json!({ "leaderWorkerTemplate": { "workerTemplate": relabel } })).await;
    let new = |pod: &Pod| old.get(&pod.name) != Some(&pod.uid) && pod.ready;
    let done = |now: &View| now.count_all(|_| true) == 6 && now.count_all(new) == 6;
    stage.pods.until_within(2 * PATIENT, "six new pods and no more", done).await;
    let events = stage.pods.events();
    let is_surge = |pod: &Pod| pod.labels.get(INSTANCE).is_some_and(|index| index == "3");
    let surge = events[before..].iter().filter(|event| is_surge(&event.pod));
    assert_eq!(surge.clone().filter(|event| event.step == Step::Born && event.pod.is_held()).count(), 2);
    assert_eq!(surge.filter(|event| event.step == Step::Released).count(), 2);
    invariants::all_born_held(&stage.pods);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn instances_of_ten_become_instances_of_twelve_one_by_one() {
        let (stage, _rolegate) = crate::scale::stage("size-change").await.with_room(120).await.serve().await;
        let statuses = stage.coordination_statuses("llm");
        let group = Group::new("llm").role("main", 10, 1);
        deploy(&stage, &group, 10, &json!({ "maxUnavailable": 1, "maxSurge": 0 })).await;
        statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 100/100 pods ready").await;

        let before = stage.pods.events().len();
        change(&stage, json!({ "leaderWorkerTemplate": { "size": 12 } })).await;
        let whole = |pod: &Pod| pod.ready && sized(pod, 12);
        stage.pods.until_within(2 * PATIENT, "instances of twelve", |now| now.count_all(whole) == 120).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 120/120 pods ready").await;
        invariants::at_most_one_instance_down(&stage.pods, before, INSTANCE, 10, &[10, 12]);
        invariants::all_born_held(&stage.pods);
        invariants::nobody_was_held_again(&stage.pods);
    }

    #[tokio::test]
    async fn a_size_that_changes_while_segments_are_held_stalls_nothing() {
        let (stage, _rolegate) = crate::scale::stage("size-change-held").await.with_room(20).await.serve().await;
        let statuses = stage.coordination_statuses("llm");
        let group = Group::new("llm").role("main", 4, 1).held_back();
        deploy(&stage, &group, 3, &json!({ "maxUnavailable": 1, "maxSurge": 0 })).await;
        stage
            .pods
            .until("all pods, one segment released", |now| {
                now.count_all(|_| true) == 12 && now.count_all(Pod::is_released) == 3
            })
            .await;
        let first: Vec<_> =
            stage.pods.now(|now| now.all().filter(|pod| pod.is_released()).map(|pod| pod.uid.clone()).collect());
        change(&stage, json!({ "leaderWorkerTemplate": { "size": 4 } })).await;
        // The last, held, is made anew; the first runs on.
        let of_last = |pod: &Pod| pod.labels[INSTANCE] == "3" && sized(pod, 4);
        stage.pods.until("the last has four", |now| now.count_all(|pod| of_last(pod) && pod.is_held()) == 4).await;
        stage
            .pods
            .now(|now| assert_eq!(now.count_all(|pod| first.contains(&pod.uid) && pod.is_released()), 3, "{now}"));
        // From now on whatever is released becomes ready.
        let ready = "True AllReplicasReady: 16/16 pods ready";
        let all_ready = statuses.until_within(2 * PATIENT, "sixteen ready", |status| status.ready() == ready);
        let serving = async {
            loop {
                let waiting =
                    |pod: &Pod| pod.is_released() && pod.annotations.contains_key("kwok.rolegate.dev/not-ready");
                stage.pods.until_within(2 * PATIENT, "one that may run", |now| now.count_all(waiting) > 0).await;
                stage.try_let_ready(waiting).await;
            }
        };
        tokio::select! {
            _ = all_ready => {}
            () = serving => {}
        }
        invariants::all_born_held(&stage.pods);
        invariants::nobody_was_held_again(&stage.pods);
        invariants::released_counts_never_fell(&statuses, &group);
    }
}
