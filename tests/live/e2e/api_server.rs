//! The API server restarts in mid-run.

use crate::common::pods::Pod;
use crate::common::{ControlPlane, Group, PATIENT, Stage, invariants};

#[tokio::test]
async fn a_run_goes_on_after_the_api_server_has_restarted() {
    let plane = ControlPlane::own_with_groups().await;
    let stage = Stage::on(plane.clone(), "api-server").await;
    stage.add_node("all", 60).await;
    let mut rolegate = stage.launch().start().await;
    rolegate.overlooks_refusals = true;
    let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5).held_back();
    let statuses = stage.statuses(&group);
    stage.deploy(&group).await;
    for segments in 1..=4 {
        let released = |now: &crate::common::pods::View| now.count_all(Pod::is_released) == 15 * segments;
        stage.pods.until_within(2 * PATIENT, "the next released", released).await;
        match segments {
            1 => plane.command("restart", "kube-apiserver").await,
            2 => {
                // Silent instead of gone: nobody closes a connection.
                plane.command("pause", "kube-apiserver").await;
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                plane.command("resume", "kube-apiserver").await;
            }
            3 => {
                plane.command("kill", "kube-apiserver").await;
                plane.command("start", "kube-apiserver").await;
            }
            _ => {}
        }
        stage.let_ready(Pod::is_released).await;
    }
    let ready = "True AllReplicasReady: 60/60 pods ready";
    statuses.until_within(2 * PATIENT, "all ready", |status| status.ready() == ready).await;
    rolegate.until_ready().await;
    invariants::all_born_held(&stage.pods);
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
}
