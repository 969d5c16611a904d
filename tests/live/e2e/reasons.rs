//! Why pods are held, as the status of their group says it, where other tests do not come by.

use crate::common::prelude::*;

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_step_waits_until_the_one_before_has_nodes_and_no_longer() {
        let stage = Stage::new("step-waits").await;
        // One pod of the first step finds no room.
        stage.add_node("small", 2).await;
        let _rolegate = stage.launch().start().await;
        let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1).held_back();
        let step = json!({ "rollingDeploy": { "roleDeployStep": { "prefill": 2, "decode": 1 } } });
        let statuses = stage.deploy_with(&group, &json!([{ "name": "pd", "strategy": step }])).await;
        let waits = |status: &Status| status.reason() == "PreviousStepNotScheduled" && status.0["summary"]["held"] == 3;
        statuses.until("it says so", waits).await;
        let went = |now: &View| now.count_all(Pod::is_scheduled) == 2 && now.count_all(Pod::is_released) == 3;
        stage.pods.until("two of three have found room", went).await;
        statuses.until("it still says so", waits).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), 3, "{now}"));
        // None of them is ready, and none has to be.
        stage.add_node("large", 4).await;
        stage.pods.until("all have nodes", |now| now.count_all(Pod::is_scheduled) == 6).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 0, "{now}"));
    }

    #[tokio::test]
    async fn a_coordination_that_waits_blocks_one_that_shares_a_role() {
        let (stage, _rolegate) = Stage::new("blocked").await.with_room(20).await.serve().await;
        let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2).role("router", 4, 2).held_back();
        let segments = |name: &str, other: &str| {
            let sizes = json!({ "prefill": 2, other: 2 });
            json!({ "name": name, "strategy": { "segmentPlacement": { "segmentSize": sizes } } })
        };
        let both = json!([segments("pd", "decode"), segments("pr", "router")]);
        let statuses = stage.deploy_with(&group, &both).await;
        stage.pods.until("the first segments", |now| now.count_all(Pod::is_released) == 6).await;
        stage.pods.until("the others are held", |now| now.count_all(Pod::is_held) == 6).await;
        // Only decode is not ready: its own coordination waits, and the other one, whose pods are all ready, is blocked by it.
        stage.let_ready(|pod| pod.is_released() && pod.role != "decode").await;
        let is_blocked = |status: &Status| {
            let state = |at: usize, role: &str| &status.0["coordinationState"][at]["progress"][role]["state"];
            let states = state(0, "decode") == "Waiting" && state(1, "router") == "Blocked";
            states && status.reason() == "BlockedByCoordination"
        };
        statuses.until("one waits and one is blocked", is_blocked).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), 6, "{now}"));
        stage.let_ready(Pod::is_released).await;
        stage.pods.until("all go", |now| now.count_all(Pod::is_released) == 12).await;
    }
}
