//! What disruption budgets make of held pods, as `examples/README.md` has it.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::common::prelude::*;
use crate::examples::support::stage;

/// A budget over the six prefills, of which two serve, lets so many go. One at a time: a pod is of one budget only.
async fn allows(stage: &Stage, mut spec: Value, allowed: i32) {
    let api = stage.api::<PodDisruptionBudget>();
    let wanted = spec.to_string();
    spec["selector"] = json!({ "matchLabels": { "rolegate.dev/role": "prefill" } });
    stage.create(object("policy/v1", "PodDisruptionBudget", "prefill").spec(spec)).await;
    let found = async || {
        let status = api.get("prefill").await.unwrap().status.unwrap_or_default();
        (status.expected_pods, status.current_healthy, status.disruptions_allowed)
    };
    until_is(&format!("{wanted} lets {allowed} go"), found, (Some(6), Some(2), Some(allowed))).await;
    stage.delete::<PodDisruptionBudget>("prefill").await;
}

#[tokio::test]
async fn a_number_lets_nodes_be_drained_while_pods_are_held_and_a_share_does_not() {
    let stage = stage("example-budgets").await;
    // Room for one segment, and none for pods of the services, which go where they like.
    let taint = json!({ "key": "budgets", "effect": "NoSchedule" });
    stage.add_node_like("all", 3, &json!({ "spec": { "taints": [taint] } })).await;
    let _rolegate = stage.launch().start().await;
    let tolerates = json!({ "spec": { "tolerations": [{ "key": "budgets", "operator": "Exists" }] } });
    let group = Group::new("llm").role("prefill", 6, 2).role("decode", 3, 1).template(&tolerates);
    stage.deploy(&group).await;
    // One segment serves, one waits for nodes, and the last one is held.
    let of_prefill = |now: &View| (now.count("prefill", Pod::is_ready), now.count("prefill", Pod::is_held));
    stage.pods.until("the first segment serves", |now| of_prefill(now) == (2, 2)).await;
    allows(&stage, json!({ "minAvailable": 1 }), 1).await;
    allows(&stage, json!({ "minAvailable": "50%" }), 0).await;
    allows(&stage, json!({ "maxUnavailable": 1 }), 0).await;
}
