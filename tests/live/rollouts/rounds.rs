//! Edits in the middle of a rollout, claims that come and go, workloads that are made again: both roles still move together.

use crate::common::prelude::*;
use crate::rollouts::support::{Duo, FROZEN};

/// For so long it is looked at that nothing moves.
const A_WHILE: Duration = Duration::from_secs(3);

/// Two of eight and one of four may be new; one of each is, and does not get ready.
async fn half_way(namespace: &str) -> Duo {
    let bounds = json!({ "maxSkew": "25%", "maxUnavailable": "25%" });
    let duo = Duo::serve(namespace, 8, 4, bounds, &[("settle", "10m")]).await.ready().await;
    duo.edit_both_held_back("registry.invalid/x:2");
    duo.until_partition("prefill", 6).await;
    duo.until_partition("decode", 3).await;
    duo.stage.pods.until("one of each is new", |now| now.count_all(|pod| duo.is_new(pod)) == 2).await;
    duo
}

/// Partitions stay, though all that is new gets ready.
async fn stand_still(duo: &Duo, prefill: i64, decode: i64) {
    let look = async || {
        duo.stage.try_let_ready(|_| true).await;
        duo.partitions().await
    };
    stays(A_WHILE, "they stand still", look, (prefill, decode)).await;
}

fn image(duo: &Duo, role: &str) -> String {
    duo.kubectl(&["get", &duo.target(role), "-o=jsonpath={.spec.template.spec.containers[0].image}"], "")
}

#[tokio::test]
async fn a_third_image_for_one_role_waits_for_that_of_the_other() {
    let duo = half_way("third-image").await;
    duo.edit_good("prefill", "registry.invalid/x:3");
    assert_eq!(duo.partition("prefill").await, FROZEN);
    stand_still(&duo, FROZEN, 3).await;
    duo.stage.until_event("RolloutHeld", &["may be edited as well"]).await;
    duo.edit_good("decode", "registry.invalid/x:3");
    duo.until_over().await;
    for role in ["prefill", "decode"] {
        assert_eq!(image(&duo, role), "registry.invalid/x:3");
    }
}

#[tokio::test]
async fn a_claim_that_is_taken_away_and_given_back_changes_nothing() {
    let duo = half_way("claim-back").await;
    let label =
        |value: &str| duo.kubectl(&["label", &duo.target("prefill"), &format!("rolegate.dev/group{value}")], "");
    label("-");
    assert_eq!(duo.partition("prefill").await, 6);
    stays(A_WHILE, "it is as frozen as it was", async || duo.partition("prefill").await, 6).await;
    // Nor is it a way around for a manifest without the claim.
    let patch = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } }).to_string();
    duo.kubectl(&["patch", &duo.target("prefill"), "--type=merge", "-p", &patch], "");
    assert_eq!((duo.partition("prefill").await, duo.user_partition("prefill").await), (6, Some("0".to_owned())));
    label("=llm");
    duo.let_ready_until(|_| true, |now| now.count_all(|pod| duo.is_new(pod) && pod.is_ready()) == 12).await;
    duo.until_over().await;
    duo.assert_bounds(25, &|desired| desired / 4);
    let marks = duo.set("prefill").await.metadata.annotations.unwrap_or_default();
    assert!(!marks.contains_key("rolegate.dev/unclaimed"), "{marks:?}");
}

#[tokio::test]
async fn a_workload_that_is_made_again_as_it_was_is_let_go() {
    let bounds = json!({ "maxSkew": "25%" });
    let duo = Duo::serve("orphans-again", 4, 2, bounds, &[("settle", "1s")]).await.ready().await;
    duo.kubectl(&["delete", &duo.target("prefill"), "--cascade=orphan"], "");
    duo.stage.create(duo.group.claimed("prefill", &duo.stage.namespace)).await;
    duo.until_closed("prefill").await;
    assert_eq!(duo.partition("prefill").await, 0);
    duo.stage.pods.now(|now| assert_eq!(now.count_all(|pod| duo.is_new(pod)), 0, "{now}"));
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_rollback_of_one_role_waits_for_that_of_the_other() {
        let duo = half_way("rollback-in-two").await;
        duo.kubectl(&["rollout", "undo", &duo.target("prefill")], "");
        stand_still(&duo, FROZEN, 3).await;
        duo.kubectl(&["rollout", "undo", &duo.target("decode")], "");
        for role in ["prefill", "decode"] {
            duo.until_closed(role).await;
        }
        let first = |now: &View| now.count_all(|pod| !duo.is_new(pod) && pod.is_ready()) == 12;
        duo.stage.pods.until("all are what they were", first).await;
    }

    #[tokio::test]
    async fn a_workload_that_is_made_again_around_its_pods_replaces_none_by_itself() {
        let bounds = json!({ "maxSkew": "25%", "maxUnavailable": "25%" });
        let duo = Duo::serve("orphans", 8, 4, bounds, &[("settle", "10m")]).await.ready().await;
        duo.kubectl(&["delete", &duo.target("prefill"), "--cascade=orphan"], "");
        let mut set = duo.group.claimed("prefill", &duo.stage.namespace);
        set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.invalid/x:2");
        set["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 1 } });
        duo.stage.create(set).await;
        assert_eq!(duo.partition("prefill").await, FROZEN);
        assert_eq!(duo.user_partition("prefill").await, Some("1".to_owned()));
        duo.stage.pods.always(A_WHILE, "no pod is replaced", |now| now.count_all(|pod| duo.is_new(pod)) == 0).await;
        duo.set_image("decode", "registry.invalid/x:2");
        let done = |now: &View| {
            let new = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
            now.count("decode", new) == 4 && now.count("prefill", new) == 7
        };
        duo.stage.pods.until("all but one are new", done).await;
        duo.assert_bounds(25, &|desired| desired / 4);
    }
}
