//! Rollouts in steps: in their order, with a pause, and back.

use crate::common::prelude::*;
use crate::rollouts::support::{Duo, FROZEN};

/// Four prefill and two decode: half of prefill, decode after a pause, then the rest.
async fn in_steps(namespace: &str) -> Duo {
    let steps =
        json!([{ "prefill": "50%", "decode": 0 }, { "pause": {} }, { "decode": "100%" }, { "prefill": "100%" }]);
    let bounds = json!({ "maxSkew": "1%", "maxUnavailable": 1, "steps": steps });
    Duo::serve(namespace, 4, 2, bounds, &[("settle", "2s")]).await.ready().await
}

/// At every event since it served first: decode is new only after half of prefill was, and more of prefill only after decode.
fn assert_order(duo: &Duo) {
    let new = |pod: &Pod| duo.is_new(pod);
    let done = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
    let (mut view, mut half, mut whole) = (View::default(), false, false);
    for event in duo.stage.pods.events() {
        view.take(&event);
        half |= view.count("prefill", done) >= 2;
        whole |= view.count("decode", done) == 2;
        assert!(half || view.count("decode", new) == 0, "decode is new before half of prefill is: {view}");
        assert!(whole || view.count("prefill", new) <= 2, "more than half of prefill is new before decode is: {view}");
    }
    assert!(half && whole);
}

fn is_paused(status: &Status) -> bool {
    status.condition("RolloutPaused").starts_with("True UntilResumed")
}

/// KEP-30, Summary. The leader changes at the pause, and its successor knows that it lasts.
#[tokio::test]
async fn half_a_frontend_then_a_backend_after_a_pause_then_the_rest() {
    let mut duo = in_steps("steps").await;
    duo.set_images("registry.invalid/x:2");
    let status = duo.statuses.until("it pauses", is_paused).await;
    assert!(status.ready().starts_with("True RolloutPaused"), "{status}");
    let told = r#""roll" pauses after step 1 of 3 until it is resumed; `rolegate resume llm -n "#;
    assert!(status.condition("RolloutPaused").contains(told), "{status}");
    duo.stage.until_event("RolloutStep", &[r#""roll" is in step 1 of 3, which ends with prefill 2/4"#]).await;
    duo.stage.until_event("RolloutPaused", &[r#""roll" pauses after step 1 of 3"#]).await;
    duo.until_new_ordinals("prefill", 2..4).await;
    let next = duo.stage.launch().flag("settle", "2s").start().await;
    std::mem::replace(&mut duo.rolegate, next).kill().await;
    duo.rolegate.until_metric("rolegate_rollouts_paused", 1).await;
    stays(Duration::from_secs(2), "it pauses", async || duo.partitions().await, (2, FROZEN)).await;
    let said = duo.stage.said(&["resume", "llm"]).await;
    assert!(said.contains("/llm goes on (RolloutPaused)"), "{said}");
    duo.until_over().await;
    assert_order(&duo);
    let over = |status: &Status| status.0["coordinationState"][0]["rollout"].is_null() && !is_paused(status);
    duo.statuses.until("no step is left", over).await;
}

mod tier2 {
    use super::*;

    /// The decode of the second step never gets ready: both are taken back, without another pause.
    #[tokio::test]
    async fn a_broken_backend_is_taken_back_step_by_step_and_nobody_is_asked() {
        let duo = in_steps("steps-back").await;
        duo.edit_held_back("decode", "registry.invalid/broken:2");
        duo.set_image("prefill", "registry.invalid/x:2");
        duo.statuses.until("it pauses", is_paused).await;
        duo.stage.said(&["resume", "llm"]).await;
        duo.until_partition("decode", 1).await;
        duo.until_new_ordinals("decode", 1..2).await;
        duo.undo();
        duo.until_back().await;
        let status = duo.statuses.until("it serves again", |status| status.ready().starts_with("True All")).await;
        assert!(!is_paused(&status), "{status}");
    }

    /// A pod stands for the AnalysisRun of a step.
    #[tokio::test]
    async fn a_step_ends_when_its_own_object_is_ready() {
        let object = json!({ "apiVersion": "v1", "kind": "Pod", "name": "check-$(STEP)" });
        let steps = json!([{ "prefill": "50%", "decode": 0 }, { "prefill": "100%", "decode": "100%" }]);
        let bounds = json!({ "maxUnavailable": 1, "steps": steps, "readyWhen": { "object": object } });
        let flags = [("settle", "2s"), ("ready-kinds", "Pod=pods.v1"), ("progress-deadline", "3s")];
        let duo = Duo::serve("steps-object", 4, 2, bounds, &flags).await.ready().await;
        duo.stage.add_node("check", 1).await;
        duo.set_images("registry.invalid/x:2");
        duo.until_new_ordinals("prefill", 2..4).await;
        let told = r#"waits after step 1 of 2: Pod "check-1" is not there"#;
        duo.stage.until_event("RolloutHeld", &[told]).await;
        let stalled = |status: &Status| status.progressing().contains(told);
        duo.statuses.until("it says that it comes late", stalled).await;
        stays(Duration::from_secs(2), "it waits", async || duo.partitions().await, (2, FROZEN)).await;
        duo.stage.create(bare_pod("check-1", &json!({}), &duo.stage.namespace)).await;
        duo.until_over().await;
    }
}
