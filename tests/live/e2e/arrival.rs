//! Objects arrive in any order: pods before their group, or just after it.

use crate::common::prelude::*;

const HELD_BY: &str = "rolegate.dev/held-by";
const SIZE: &str = "rolebasedgroup.workloads.x-k8s.io/role-subgroup-size";
pub const INDEX: &str = "rolebasedgroup.workloads.x-k8s.io/role-instance-index";

#[tokio::test]
async fn a_workload_that_comes_before_its_group_waits_and_then_runs_by_segments() {
    let (stage, rolegate) = Stage::new("before-group").await.with_room(60).await.serve().await;
    let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5);
    stage.create_sets(&group).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 60).await;
    stage.pods.now(|now| {
        for pod in now.all() {
            assert!(pod.is_held() && pod.annotations[HELD_BY] == "llm" && !pod.labels.contains_key(INDEX), "{pod:?}");
        }
    });
    rolegate.until_metric(r#"rolegate_held_pods{reason="GroupMissing"}"#, 60).await;

    let statuses = stage.create_watched(&group).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 60/60 pods ready").await;
    assert_eq!(invariants::all_born_held(&stage.pods), 60);
    invariants::released_in_order(&stage.pods, &group);
    assert_eq!(statuses.released_counts("decode"), [0, 5, 10, 15, 20]);
    invariants::committed_before_released(&stage.pods, &statuses);
    // The labels of its batch came with the release, in one and the same write.
    for event in stage.pods.events().into_iter().filter(|event| event.step == Step::Released) {
        let size = group.find(&event.pod.role).segment.to_string();
        assert_eq!(event.pod.labels.get(SIZE), Some(&size), "{:?}", event.pod);
        assert_eq!(event.pod.labels.get(INDEX), Some(&event.pod.index.to_string()), "{:?}", event.pod);
    }
}

#[tokio::test]
async fn a_group_that_is_not_in_the_cache_yet_is_read_live() {
    let stage = Stage::new("together").await;
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let launch = stage.launch().through(&proxy);
    let _rolegate = launch.start().await;
    launch.stop_judging().await;
    // Slow enough that the pod is faster than the watch, fast enough for a read within the webhook's time.
    proxy.delay(Duration::from_millis(250));
    for name in ["one", "two", "three"] {
        let group = Group::new(name).role("prefill", 2, 1);
        stage.create_group(&group).await;
        let mut pod = group.pod("prefill", &format!("{name}-1"), &stage.namespace);
        pod["metadata"]["ownerReferences"] = json!([owner("apps/v1", "StatefulSet", name, "0")]);
        let made = stage.post(CORE, "pods", &pod).await;
        assert_eq!(made.code, 201, "{made:?}");
        let made = &made.body["metadata"];
        assert_eq!(made["annotations"][HELD_BY], format!("{name}/segments"));
        assert_eq!((&made["labels"][SIZE], &made["labels"][INDEX]), (&json!("1"), &json!("1")));
    }
}

#[tokio::test]
async fn pods_of_a_group_that_never_comes_are_held_for_ever_if_told_so() {
    let stage = Stage::new("hold").await.with_room(10).await;
    let launch = stage.launch().flag("missing-group", "hold").flag("vanished-grace", "1s");
    let rolegate = launch.start().await;
    let group = Group::new("never").role("main", 6, 2);
    stage.create_sets(&group).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 6).await;
    stage.pods.always(Duration::from_secs(3), "all are held", |now| now.count_all(Pod::is_held) == 6).await;
    assert_eq!(rolegate.metric(r#"rolegate_held_pods{reason="GroupMissing"}"#).await, 6);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn one_file_with_group_and_workloads_runs_by_segments() {
        let (stage, _rolegate) = Stage::new("one-file").await.with_room(30).await.serve().await;
        let group = Group::new("llm").role("prefill", 20, 5).role("decode", 8, 2);
        let statuses = stage.statuses(&group);
        // The workloads first: kubectl applies them in this order.
        let sets = group.roles.iter().map(|role| group.set(role, &stage.namespace));
        let items: Vec<_> = sets.chain([group.object()]).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
        stage.plane.must(&["apply", "--namespace", &stage.namespace, "-f", "-"], &list);
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 28/28 pods ready").await;
        assert_eq!(invariants::all_born_held(&stage.pods), 28);
        invariants::released_in_order(&stage.pods, &group);
    }

    #[tokio::test]
    async fn pods_of_a_group_that_never_comes_are_released_after_their_time() {
        let stage = Stage::new("release-after").await.with_room(10).await;
        let _rolegate = stage.launch().flag("missing-group", "release-after=2s").start().await;
        let group = Group::new("never").role("main", 6, 2);
        stage.create_sets(&group).await;
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 6).await;
        assert_eq!(invariants::all_born_held(&stage.pods), 6);
        let events = stage.pods.events();
        let first = |step| events.iter().find(|event| event.step == step).unwrap().at;
        let held = first(Step::Released) - first(Step::Born);
        assert!(held >= Duration::from_millis(1900), "held for {held:?} only");
    }
}
