//! What is committed is older than what runs: a status that was put back by hand, and etcd restored from an older copy.

use std::process::Command;

use k8s_openapi::api::core::v1::Event;

use crate::chaos::faults::story::{Story, tell};
use crate::common::prelude::*;

/// Notes of the Events of a reason on the group.
async fn told(stage: &Stage, reason: &str) -> Vec<String> {
    let params = ListParams::default().fields(&format!("involvedObject.name=llm,reason={reason}"));
    let events = stage.api::<Event>().list(&params).await.unwrap().items;
    events.into_iter().filter_map(|event| event.message).collect()
}

#[tokio::test]
async fn a_status_that_is_put_back_releases_nothing_and_is_said_once() {
    let (stage, _rolegate) = Stage::new("faults-put-back").await.with_room(60).await.serve().await;
    let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5).held_back();
    let statuses = stage.deploy_watched(&group).await;
    for released in [15, 30, 45] {
        stage.pods.until("the next released", |now| now.count_all(Pod::is_released) == released).await;
        if released < 45 {
            stage.let_ready(Pod::is_released).await;
        }
    }
    // As it was when one segment ran.
    let mut older = statuses.now().0["coordinationState"].clone();
    older[0]["progress"]["prefill"]["released"] = json!(10);
    older[0]["progress"]["decode"]["released"] = json!(5);
    let put_back = Instant::now();
    let patch = Patch::Merge(json!({ "status": { "coordinationState": older } }));
    stage.groups().patch_status("llm", &PatchParams::default(), &patch).await.unwrap();
    let note = "the status had committed only decode 5 of the 15 that run, prefill 10 of the 30 that run: what runs stays, \
                and counts as released";
    until_is("it is said", async || told(&stage, "StatusBehindPods").await, [note]).await;
    let status = statuses.until("it is committed again", |status| status.released("prefill") == 30).await;
    let time = put_back.elapsed();
    assert_eq!(status.released("decode"), 15);
    let as_many = |now: &View| now.count_all(Pod::is_released) == 45;
    stage.pods.always(Duration::from_secs(1), "nothing is released, nothing taken back", as_many).await;
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("the last segment", |now| now.count_all(Pod::is_released) == 60).await;
    invariants::nobody_was_held_again(&stage.pods);
    invariants::released_in_order(&stage.pods, &group);
    // None is said to be released twice.
    let segments = |number: u32| {
        let range = |size: u32| format!("{}-{}", size * (number - 1), size * number - 1);
        let label = format!("rolegate.dev/segment={}", number - 1);
        format!("segment {number} ({label}) is released: decode {}, prefill {}", range(5), range(10))
    };
    let releases = async || {
        let mut releases = told(&stage, "Released").await;
        releases.sort();
        releases
    };
    until_is("each segment is said to be released, once", releases, [1, 2, 3, 4].map(segments)).await;
    assert_eq!(told(&stage, "StatusBehindPods").await, [note]);
    let how = "running replicas count as released (Event `StatusBehindPods`)";
    tell("status put back to an older one by hand", time, how);
}

fn copy(from: &Path, to: &Path) {
    _ = std::fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// Stops what writes to etcd, does something with its data, and starts all again.
async fn beside_etcd(plane: &Arc<ControlPlane>, act: impl FnOnce()) {
    plane.command("stop", "kube-apiserver").await;
    plane.command("kill", "etcd").await;
    act();
    plane.command("start", "etcd").await;
    plane.command("start", "kube-apiserver").await;
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn etcd_is_restored_from_an_older_copy() {
    let plane = ControlPlane::own_with_groups().await;
    let mut story = Story::begin(Stage::on(plane.clone(), "faults-restored").await).await;
    story.overlook_refusals();
    story.rest().await;
    let (data, older) = (plane.dir.join("etcd"), plane.dir.join("etcd-older"));
    beside_etcd(&plane, || copy(&data, &older)).await;
    story.observe_anew().await;
    let released = story.released_now().await;
    story.go_on();
    story.until_released(released + 24).await;
    story.rest().await;
    story.nothing_went_wrong();
    beside_etcd(&plane, || copy(&older, &data)).await;
    // As whoever restores a cluster does: what keeps a cache of the cluster is of the future.
    for component in ["kube-controller-manager", "kube-scheduler", "kwok"] {
        plane.command("restart", component).await;
    }
    let restored = Instant::now();
    assert_eq!(story.released_now().await, released, "the older state");
    story.observe_anew().await;
    let log = story.restart_ended().await;
    assert!(log.contains("the API server was restored from an older copy"), "{log}");
    story.overlook_refusals();
    let before = story.released_now().await;
    story.go_on();
    let time = story.moves_beyond(before, restored).await;
    story.end().await;
    tell(
        "etcd restored from an older copy, with resource versions that go back",
        time,
        "both replicas notice by their Lease, and end; after a restart they continue from the older state",
    );
}
