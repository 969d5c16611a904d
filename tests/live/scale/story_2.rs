//! KEP-32, Story 2: three roles, two coordinations that share one of them, over plain StatefulSets.

use crate::common::prelude::*;

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn prefill_decode_and_router_scale_in_lockstep_to_the_end() {
        let stage = crate::scale::stage("story-2").await;
        for node in 0..3 {
            stage.add_node(&node.to_string(), 150).await;
        }
        let _rolegate = stage.launch().flag("lease-duration", "15s").start().await;
        let statuses = stage.coordination_statuses("llm");
        let first = Group::new("llm").role("prefill", 300, 5).role("decode", 100, 3);
        let second = Group::new("llm").role("decode", 100, 3).role("router", 50, 2);
        let all = first.clone().role("router", 50, 2);
        let mut coordination = all.coordination();
        let segments = |group: &Group, name: &str| {
            let mut segments = group.coordination()["spec"]["coordination"][0].take();
            segments["name"] = json!(name);
            segments
        };
        let both = [segments(&first, "prefill-decode"), segments(&second, "decode-router")];
        coordination["spec"]["coordination"] = json!(both);
        stage.create(coordination).await;
        stage.create_sets(&all).await;
        let ready = "True AllReplicasReady: 450/450 pods ready";
        let done = statuses.until_within(4 * PATIENT, "all ready", |status| status.ready() == ready).await;
        assert_eq!(done.minimum(), "True AllSegmentsReady: 60/60 segments ready (450/450 pods)");
        for group in [&first, &second] {
            invariants::released_in_order(&stage.pods, group);
        }
        assert_eq!(invariants::all_born_held(&stage.pods), 450);
        invariants::nobody_was_held_again(&stage.pods);
        invariants::released_counts_never_fell(&statuses, &first);
    }
}
