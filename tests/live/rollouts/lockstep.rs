//! Rollouts that go well.

use crate::common::prelude::*;
use crate::rollouts::support::{Duo, FROZEN, rolling};

/// The KEP's example: with 10 of 40 and 3 of 20 updated prefill waits and decode goes on, and both get to the end.
#[tokio::test]
async fn prefill_waits_until_decode_has_caught_up() {
    let bounds = json!({ "maxSkew": "10%", "maxUnavailable": "10%" });
    let duo = Duo::serve("forty-twenty", 40, 20, bounds, &[]).await.ready().await;
    duo.edit_both_held_back("registry.invalid/x:2");
    let may_be = |pod: &Pod| pod.role == "prefill" || pod.index >= 17;
    let ready = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
    duo.let_ready_until(may_be, |now| now.count("prefill", ready) == 10 && now.count("decode", ready) == 3).await;
    // 3/20 + 10 % = 25 % is 10 of 40; of decode two may be unavailable.
    duo.until_partition("prefill", 30).await;
    duo.until_partition("decode", 15).await;
    let status = duo.statuses.until("it waits", |status| status.state("prefill") == "Waiting").await;
    assert_eq!(status.state("decode"), "Progressing");
    assert!(status.ready().starts_with("False RolloutInProgress"), "{status}");
    duo.stage.until_event("RolloutHeld", &["prefill waits for decode", "updated and ready, next is decode-"]).await;
    duo.until_metric("updated_ratio", "prefill", 0.25).await;
    duo.until_metric("updated_ratio", "decode", 0.2).await;
    duo.until_metric("skew", "", 0.05).await;
    assert_eq!(duo.new_ordinals("prefill"), (30..40).collect());

    duo.let_ready_until(|_| true, |now| now.count_all(ready) == 60).await;
    duo.until_over().await;
    duo.stage.until_event("RolloutAdvanced", &["decode is done"]).await;
    let complete = |status: &Status| ["prefill", "decode"].iter().all(|role| status.state(role) == "Complete");
    duo.statuses.until("complete", complete).await;
    assert!(duo.assert_bounds(10, &|desired| desired / 10) > 120);
    assert_eq!(duo.partitions().await, (0, 0));
}

/// One role alone goes after a while, and at once when all carry the same rollout id.
#[tokio::test]
async fn a_restart_of_one_role_goes_alone() {
    let bounds = json!({ "maxSkew": "25%" });
    let duo = Duo::serve("one-alone", 4, 4, bounds, &[("settle", "2s")]).await.ready().await;
    duo.kubectl(&["rollout", "restart", &duo.target("prefill")], "");
    duo.until_new("prefill", 4).await;
    duo.until_closed("prefill").await;
    assert_eq!(duo.new_ordinals("decode"), [].into());
}

#[tokio::test]
async fn one_rollout_id_on_all_roles_needs_no_pause() {
    let bounds = json!({ "maxSkew": "25%" });
    let duo = Duo::serve("one-id", 4, 4, bounds, &[("settle", "1h")]).await.ready().await;
    for role in ["prefill", "decode"] {
        duo.kubectl(&["annotate", &duo.target(role), "rolegate.dev/rollout=v2"], "");
    }
    duo.set_image("prefill", "registry.invalid/x:2");
    duo.until_new("prefill", 4).await;
    duo.until_closed("prefill").await;
}

mod tier2 {
    use super::*;

    /// Watched from outside at every event of 150 pods.
    #[tokio::test]
    async fn a_hundred_and_fifty_roll_within_their_bounds() {
        let bounds = json!({ "maxSkew": "5%", "maxUnavailableRatio": "4%" });
        let duo = Duo::serve("hundred-fifty", 100, 50, bounds, &[]).await.ready().await;
        for role in ["decode", "prefill"] {
            duo.set_image(role, "registry.invalid/x:2");
        }
        duo.until_over().await;
        assert!(duo.assert_bounds(5, &|desired| desired / 25) > 300);
    }

    /// Somebody edits decode some seconds after prefill: nothing moves before, and both go together.
    #[tokio::test]
    async fn roles_that_are_edited_one_after_another_go_together() {
        let bounds = json!({ "maxSkew": "25%", "maxUnavailable": 1 });
        let duo = Duo::serve("one-after-another", 8, 4, bounds, &[("settle", "40s")]).await.ready().await;
        duo.set_image("prefill", "registry.invalid/x:2");
        let status = duo.statuses.until("it waits", |status| status.state("prefill") == "Waiting").await;
        assert_eq!(status.state("decode"), "Complete");
        let look = async || duo.partition("prefill").await;
        stays(std::time::Duration::from_secs(2), "prefill is frozen", look, FROZEN).await;
        duo.set_image("decode", "registry.invalid/x:2");
        duo.until_over().await;
        duo.assert_bounds(25, &|_| 1);
    }

    /// The labels claim a workload, whatever its name.
    #[tokio::test]
    async fn workloads_of_any_name_go_together() {
        let group = Group::new("llm").role("prefill", 8, 1).role("decode", 4, 1).bare_names();
        let bounds = json!({ "maxSkew": "25%", "maxUnavailable": "25%" });
        let duo = Duo::serve_group("any-name", group, &rolling(bounds), &[]).await.ready().await;
        duo.edit_both_held_back("registry.invalid/x:2");
        for (role, partition) in [("prefill", 6), ("decode", 3)] {
            duo.until_partition(role, partition).await;
        }
        duo.let_ready_until(|_| true, |now| now.count_all(|pod| duo.is_new(pod) && pod.is_ready()) == 12).await;
        duo.until_over().await;
        duo.assert_bounds(25, &|desired| desired / 4);
    }

    /// KEP-30's canary: the upper fifth is updated, the rollout pauses, and goes on when the user lowers the share kept old.
    #[tokio::test]
    async fn a_partition_is_a_pause() {
        let bounds = json!({ "maxSkew": "10%", "maxUnavailable": "20%", "partition": "80%" });
        let duo = Duo::serve("canary", 20, 10, bounds, &[]).await.ready().await;
        duo.set_images("registry.invalid/x:2");
        duo.until_partition("prefill", 16).await;
        duo.until_partition("decode", 8).await;
        let paused = |status: &Status| ["prefill", "decode"].iter().all(|role| status.state(role) == "Paused");
        duo.statuses.until("both pause", paused).await;
        duo.until_new_ordinals("prefill", 16..20).await;
        duo.until_new_ordinals("decode", 8..10).await;
        let full = json!({ "maxSkew": "10%", "maxUnavailable": "20%" });
        duo.stage.recoordinate(&duo.group, &rolling(full)).await;
        duo.until_over().await;
        duo.assert_bounds(10, &|desired| desired / 5);
    }

    /// The labels in the pod template hold the pods; those on the workload itself are what claims it.
    #[tokio::test]
    async fn a_role_is_not_coordinated_until_its_workload_is_claimed() {
        let stage = Stage::new("unclaimed").await.with_room(6).await;
        let group = Group::new("llm").role("prefill", 4, 1).role("decode", 2, 1);
        let _rolegate = stage.launch().start().await;
        let statuses = stage.deploy_with(&group, &rolling(json!({ "maxSkew": "25%" }))).await;
        let status = statuses.until("it serves", |status| status.ready().starts_with("True")).await;
        assert_eq!((status.state("prefill"), status.state("decode")), ("NotCoordinated", "NotCoordinated"));
        let unclaimed = r#"role "decode" is not rolled in lockstep: no workload claims it"#;
        assert!(status.progressing().contains(unclaimed), "{status}");
        stage.kubectl(&["label", "statefulset/llm-decode", "rolegate.dev/group=llm", "rolegate.dev/role=decode"]);
        let status = statuses.until("it is claimed", |status| status.state("decode") == "Complete").await;
        assert_eq!(status.state("prefill"), "NotCoordinated");
    }
}
