//! What holds pods goes away: the group, its kind, or rolegate's claim on the namespace. No pod is orphaned (S7), and none
//! is let go because somebody looked at the wrong moment.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::common::prelude::*;

async fn released(stage: &Stage, count: usize) {
    let are = |now: &View| now.count_all(|_| true) == 18 && now.count_all(Pod::is_released) == count;
    stage.pods.until("some released", are).await;
}

#[tokio::test]
async fn held_pods_of_a_deleted_group_are_released_after_the_grace() {
    let stage = Stage::new("group-deleted").await.with_room(18).await;
    let _rolegate = stage.launch().flag("vanished-grace", "2s").start().await;
    let group = Group::three_segments();
    stage.deploy(&group).await;
    released(&stage, 6).await;
    let deleted = Instant::now();
    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    released(&stage, 18).await;
    let events = stage.pods.events();
    let later = events.iter().filter(|event| event.step == Step::Released && event.at > deleted);
    let first = later.map(|event| event.at).min().unwrap() - deleted;
    assert!(first >= Duration::from_millis(1900), "the first was released after {first:?}");
}

#[tokio::test]
async fn pods_that_are_made_after_the_grace_of_their_group_go_at_once() {
    let stage = Stage::new("group-deleted-before").await.with_room(18).await;
    let grace = Duration::from_secs(30);
    let _rolegate = stage.launch().flag("vanished-grace", "30s").start().await;
    let group = Group::three_segments();
    stage.deploy(&group).await;
    released(&stage, 6).await;
    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    released(&stage, 18).await;
    for pod in ["llm-prefill-0", "llm-decode-5"] {
        let uid = stage.pods.now(|now| now.named(pod).unwrap().uid.clone());
        stage.api::<k8s_openapi::api::core::v1::Pod>().delete(pod, &DeleteParams::default()).await.unwrap();
        let again = |pod: &Pod| pod.uid != uid && pod.is_released();
        stage.pods.until_within(grace / 2, "it goes", |now| now.named(pod).is_some_and(again)).await;
    }
}

#[tokio::test]
async fn a_group_that_is_replaced_within_the_grace_goes_on_where_it_was() {
    let stage = Stage::new("group-replaced").await.with_room(18).await;
    let rolegate = stage.launch().flag("vanished-grace", "10s").start().await;
    let group = Group::three_segments();
    stage.deploy(&group).await;
    released(&stage, 6).await;
    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    rolegate.until_metric(r#"rolegate_held_pods{reason="GroupMissing"}"#, 12).await;
    stage.pods.always(Duration::from_secs(1), "they are held", |now| now.count_all(Pod::is_held) == 12).await;
    stage.create_group(&group).await;
    // The status is lost with the old one, and built again from the pods.
    let statuses = stage.statuses(&group);
    statuses.until("taken over", |status| status.released("prefill") == 4).await;
    stage.let_ready(Pod::is_released).await;
    released(&stage, 12).await;
    stage.pods.now(|now| assert!(now.all_in("prefill", 8..12, Pod::is_held), "{now}"));
    invariants::released_in_order(&stage.pods, &group);
}

#[tokio::test]
async fn a_namespace_that_opts_out_gets_its_held_pods_back() {
    let (stage, _rolegate) = Stage::new("opted-out").await.with_room(20).await.serve().await;
    let group = Group::three_segments();
    stage.deploy(&group).await;
    released(&stage, 6).await;
    stage.label("rolegate.dev/ignore=");
    released(&stage, 18).await;
    // The API server no longer asks us about pods there: it learns of the label a moment later than we do.
    let pods = stage.api::<k8s_openapi::api::core::v1::Pod>();
    eventually(PATIENT, "a pod that is not held", async || {
        pods.delete("llm-prefill-11", &DeleteParams::default()).await.map_err(|error| error.to_string())?;
        stage.pods.until("a new one", |now| now.named("llm-prefill-11").is_some_and(Pod::is_released)).await;
        let births = stage.pods.births();
        let last = births.iter().rfind(|pod| pod.name == "llm-prefill-11").unwrap();
        if last.is_held() { Err("it was born held".to_owned()) } else { Ok(()) }
    })
    .await;
}

/// Deleting a `CustomResourceDefinition` deletes all groups with it. That is no word of any of their owners.
#[tokio::test]
async fn definitions_that_come_late_go_and_come_back_open_no_hold() {
    let plane = ControlPlane::own(ControlPlane::start).await;
    the_definition_comes_late_goes_and_comes_back(plane.clone()).await;
    the_pods_say_which_definition_must_be_there_before_their_group_counts_as_gone(plane).await;
}

async fn the_definition_comes_late_goes_and_comes_back(plane: Arc<ControlPlane>) {
    const GRACE: Duration = Duration::from_secs(4);
    let stage = Stage::on(plane.clone(), "definition").await.with_room(18).await;
    let launch = stage.launch().flag("vanished-grace", "4s").flag("missing-group", "release-after=4s");
    let rolegate = launch.start().await;
    let group = Group::three_segments();
    let held = async |time, count| {
        stage.pods.always(time, "no pod is released", |now| now.count_all(Pod::is_released) == count).await;
    };

    // Before there is such a kind nobody can say that the group is not there.
    let status = ran(&plane.kubeconfig, &["status"]).await;
    let why = "rolegate: this cluster has neither RoleBasedGroups nor RoleCoordinations: `rolegate manifests --part crds` prints their definitions\n";
    assert_eq!((status.code, status.err.as_str()), (1, why));
    stage.create_sets(&group).await;
    released(&stage, 0).await;
    // It comes just before somebody looks for the second time, and then the group takes its time.
    held(GRACE * 3 / 2, 0).await;
    define(&plane).await;
    held(GRACE / 2, 0).await;
    stage.create_group(&group).await;
    released(&stage, 6).await;

    undefine(&stage, "rolebasedgroups.workloads.x-k8s.io").await;
    held(GRACE + GRACE / 4, 6).await;
    assert_eq!(rolegate.metric(r#"rolegate_held_pods{reason="GroupMissing"}"#).await, 12);

    // Also not for one that starts now and has never seen the group, when no definition is left that could have made it.
    undefine(&stage, "rolebasedgroups.workloads.instai.io").await;
    undefine(&stage, "rolecoordinations.rolegate.dev").await;
    rolegate.kill().await;
    let _rolegate = launch.start().await;
    held(GRACE * 3 / 2, 6).await;

    define(&plane).await;
    held(GRACE / 2, 6).await;
    stage.create_group(&group).await;
    let statuses = stage.statuses(&group);
    statuses.until("taken over", |status| status.released("decode") == 2).await;
    for segments in 1..=3 {
        released(&stage, segments * 6).await;
        stage.let_ready(Pod::is_released).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 18/18 pods ready").await;
    invariants::released_in_order(&stage.pods, &group);
    assert_eq!(invariants::all_born_held(&stage.pods), 18);
}

/// One that starts now has never seen the group. Its pods say what carried it: that other kinds are there proves nothing.
async fn the_pods_say_which_definition_must_be_there_before_their_group_counts_as_gone(plane: Arc<ControlPlane>) {
    let stage = Stage::on(plane.clone(), "carrier").await.with_room(18).await;
    let launch = stage.launch().flag("vanished-grace", "4s").flag("missing-group", "release-after=1s");
    let rolegate = launch.start().await;
    let group = Group::three_segments();
    stage.deploy(&group).await;
    released(&stage, 6).await;
    for pod in stage.pods.births() {
        assert_eq!(pod.annotations["rolegate.dev/carrier"], "RoleBasedGroup.v1alpha1.workloads.x-k8s.io", "{pod:?}");
    }
    rolegate.kill().await;
    undefine(&stage, "rolebasedgroups.workloads.x-k8s.io").await;
    let rolegate = launch.start().await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="GroupMissing"}"#, 12).await;
    stage.pods.always(Duration::from_secs(6), "no pod is released", |now| now.count_all(Pod::is_released) == 6).await;

    define(&plane).await;
    // The webhook asks for groups to be judged, which takes a moment after their kind is back.
    eventually(PATIENT, "the group is back", async || {
        let made = stage.groups().create(&PostParams::default(), &typed(group.object())).await;
        made.map(drop).map_err(|error| error.to_string())
    })
    .await;
    for segments in 1..=3 {
        released(&stage, segments * 6).await;
        stage.let_ready(Pod::is_released).await;
    }
    invariants::released_in_order(&stage.pods, &group);
    assert_eq!(invariants::all_born_held(&stage.pods), 18);
}

async fn define(plane: &Arc<ControlPlane>) {
    let plane = plane.clone();
    tokio::task::spawn_blocking(move || plane.define_groups()).await.unwrap();
}

async fn undefine(stage: &Stage, name: &str) {
    let definitions: Api<CustomResourceDefinition> = Api::all(stage.client.clone());
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
    until_found("the definition is gone", async || definitions.get_opt(name).await.unwrap(), Option::is_none).await;
}
