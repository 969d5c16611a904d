//! Namespaces that are served by their labels only.

use crate::common::prelude::*;
use crate::common::stage::is_held as has_our_gate;
use crate::modes::{stage, try_group, wrong_group};

/// True when a pod of a group is held, as a dry run.
async fn is_held(stage: &Stage) -> bool {
    has_our_gate(&stage.try_pod(Group::new("g").pod("main", "probe", &stage.namespace)).await.unwrap())
}

async fn until_held(stage: &Stage, held: bool) {
    until_is("pods are held as the label says", async || is_held(stage).await, held).await;
}

#[tokio::test]
async fn only_namespaces_with_the_label_are_served_and_what_was_held_goes_with_it() {
    let stage = stage("modes-select").await.with_room(18).await;
    stage.label("team=llm");
    let rolegate = stage.launch().flag("namespace-selector", "team in (llm, vision)").start().await;
    stage.deploy(&Group::three_segments()).await;
    stage.pods.until("the first segment runs", |now| now.count_all(Pod::is_scheduled) == 6).await;

    stage.label("team=web");
    stage.pods.until("what was held goes", |now| now.count_all(Pod::is_held) == 0).await;
    until_held(&stage, false).await;
    assert_eq!(try_group(&stage, &wrong_group("wrong")).await, (201, Vec::new()));
    let shown = stage.doctor().await;
    assert!(shown.contains("2 groups in namespace modes-select, which is not selected"), "{shown}");
    assert!(!shown.contains("selects other namespaces"), "{shown}");
    assert!(rolegate.metric(r#"rolegate_namespaces{served="not-selected"}"#).await > 1);

    stage.label("team=vision");
    until_held(&stage, true).await;
}

#[tokio::test]
async fn flags_that_select_less_than_the_configurations_are_a_finding_and_harm_nobody() {
    let stage = stage("modes-differ").await;
    // Every namespace has this label.
    let first = stage.launch().flag("namespace-selector", "kubernetes.io/metadata.name").start().await;
    let address = first.webhook.to_string();
    first.terminate().await;
    // Its configurations stay, and select every namespace.
    let launch = stage.launch().flag("namespace-selector", "team=llm").flag("webhooks", "ca-bundle");
    let rolegate = launch.flag("listen", &address).start_unready().await;
    rolegate.until_ready().await;
    rolegate.until_metric("rolegate_leader", 1).await;
    let code = async || try_group(&stage, &wrong_group("wrong")).await.0;
    until_found("it is let in", code, |code| [201, 409].contains(code)).await;
    let shown = stage.doctor().await;
    assert!(shown.contains("selects other namespaces than the replica that leads serves"), "{shown}");
}
