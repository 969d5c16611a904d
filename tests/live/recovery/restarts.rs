//! The leader is killed at each step of a recovery, and the next one finishes it.

use super::scene::{behind_a_proxy, launch, phase, recreate, two_segments};
use crate::common::prelude::*;
use crate::common::request_proxy::Kind;

#[tokio::test]
async fn what_is_committed_is_deleted_by_the_next_leader() {
    let (proxy, rolegate, scene) = behind_a_proxy("recovery-killed-1").await;
    proxy.lose(Kind { method: "DELETE", path: "/pods/llm-" });
    scene.delete("llm-decode-0").await;
    scene.statuses.until("committed", phase("Recreating")).await;
    rolegate.kill().await;
    scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 5, "{now}"));
    let _rolegate = launch(&scene.stage).start().await;
    scene.comes_back(&[0]).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn what_is_deleted_is_awaited_and_let_go_by_the_next_leader() {
        let (rolegate, scene) = two_segments("recovery-killed-2", &recreate()).await;
        // One of its pods is long in going.
        scene.finalizers("llm-prefill-0", &["example.com/wait"]).await;
        scene.delete("llm-decode-0").await;
        let waits = |now: &View| {
            let is_new = |name: &str| now.all().any(|p| p.name == name && scene.first[name] != p.uid && p.is_held());
            is_new("llm-decode-0") && is_new("llm-prefill-1")
        };
        scene.stage.pods.until("the others are there and wait", waits).await;
        rolegate.kill().await;
        let rolegate = launch(&scene.stage).start().await;
        rolegate.until_metric(r#"rolegate_held_pods{reason="Recovering"}"#, 2).await;
        scene.finalizers("llm-prefill-0", &[]).await;
        scene.comes_back(&[0]).await;
    }

    #[tokio::test]
    async fn what_is_committed_to_go_is_let_go_by_the_next_leader() {
        let (proxy, rolegate, scene) = behind_a_proxy("recovery-killed-3").await;
        proxy.lose(Kind { method: "PATCH", path: "/pods/llm-" });
        scene.delete("llm-decode-0").await;
        scene.statuses.until("committed", phase("Releasing")).await;
        rolegate.kill().await;
        scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 3, "{now}"));
        let _rolegate = launch(&scene.stage).start().await;
        scene.comes_back(&[0]).await;
    }

    #[tokio::test]
    async fn a_replica_that_is_lost_while_nobody_leads_is_found_by_the_next_leader() {
        let (first, scene) = two_segments("recovery-killed-4", &recreate()).await;
        first.kill().await;
        // The webhook of a killed one answers nobody: what it fails is tried again.
        scene.delete("llm-decode-0").await;
        scene.stage.pods.until("it is gone", |now| now.named("llm-decode-0").is_none()).await;
        let _rolegate = launch(&scene.stage).start().await;
        scene.comes_back(&[0]).await;
        assert_eq!(scene.stage.pods.uids().len(), 6);
    }
}
