//! Whatever ends the coordination gives workloads back to their users (S7).

use crate::common::prelude::*;
use crate::rollouts::support::{Duo, FROZEN};

/// Prefill is edited and waits for decode, for an hour.
async fn frozen(namespace: &str) -> Duo {
    frozen_for(namespace, "1h").await
}

async fn frozen_for(namespace: &str, settle: &str) -> Duo {
    let bounds = json!({ "maxSkew": "25%" });
    let flags = [("settle", settle), ("vanished-grace", "1s")];
    let duo = Duo::serve(namespace, 4, 2, bounds, &flags).await.ready().await;
    duo.set_image("prefill", "registry.invalid/x:2");
    assert_eq!(duo.partition("prefill").await, FROZEN);
    duo
}

async fn rolls_by_itself(duo: &Duo) {
    duo.until_closed("prefill").await;
    assert_eq!(duo.partition("prefill").await, 0);
    duo.until_new("prefill", 4).await;
}

#[tokio::test]
async fn without_the_coordination_it_is_thawed() {
    let duo = frozen("no-coordination").await;
    duo.stage.recoordinate(&duo.group, &json!([])).await;
    rolls_by_itself(&duo).await;
    duo.stage.until_event("RolloutAdvanced", &["the rollout of prefill is not coordinated any more"]).await;
    let events = duo.events().await;
    assert!(!events.iter().any(|(_, note)| note.contains("is done")), "{events:#?}");
}

/// By hand, without rolegate and without its webhook.
#[tokio::test]
async fn by_hand_it_is_thawed() {
    let duo = frozen("by-hand").await;
    let Duo { stage, rolegate, .. } = &duo;
    duo.kubectl(&["delete", "mutatingwebhookconfiguration", "--ignore-not-found", "by-hand"], "");
    rolegate.ask_to_end().await;
    let arguments = ["release", "--all", "--yes", "-n", &stage.namespace];
    let output = rolegate_command(&stage.plane.kubeconfig, &arguments).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("thawed by-hand/StatefulSet/llm-prefill"), "{said} {output:?}");
    rolls_by_itself(&duo).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn without_the_group_it_is_thawed() {
        let duo = frozen("no-group").await;
        duo.kubectl(&["delete", "rolebasedgroups.workloads.x-k8s.io", "llm"], "");
        rolls_by_itself(&duo).await;
    }

    #[tokio::test]
    async fn without_its_claim_it_is_thawed() {
        let duo = frozen_for("no-claim", "2s").await;
        duo.kubectl(&["label", &duo.target("prefill"), "rolegate.dev/group-"], "");
        rolls_by_itself(&duo).await;
    }

    #[tokio::test]
    async fn in_a_namespace_that_opts_out_it_is_thawed() {
        let duo = frozen("no-namespace").await;
        duo.stage.label("rolegate.dev/ignore=");
        rolls_by_itself(&duo).await;
    }
}
