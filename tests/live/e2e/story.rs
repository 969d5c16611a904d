//! Deployments that do not fit serve with what fits: KEP-32, Story 1, and KEP-75, Story 3.

use crate::common::prelude::*;

#[tokio::test]
async fn story_1_serves_with_nine_segments_and_completes_when_room_comes() {
    let stage = Stage::new("story-1").await;
    stage.add_node("small", 140).await;
    let _rolegate = stage.launch().start().await;
    let group = Group::story_1("llm");
    let statuses = stage.deploy_watched(&group).await;

    // Room for 140: nine segments are complete, of the tenth 5 of 15 pods have a node.
    let full = statuses.until("140 pods ready", |status| status.ready().ends_with("140/150 pods ready")).await;
    assert_eq!(full.ready(), "False PartialDeployment: 140/150 pods ready");
    assert_eq!(full.minimum(), "True MinimumSegmentReady: 9/10 segments ready (135/150 pods)");
    assert_eq!(full.progressing(), "True Progressing");
    stage.pods.now(|now| {
        assert!(now.all_in("prefill", 0..90, Pod::is_ready) && now.all_in("decode", 0..45, Pod::is_ready), "{now}");
        assert_eq!(now.count_all(Pod::is_scheduled), 140);
        let segment = |pod: &Pod| pod.index / if pod.role == "prefill" { 10 } else { 5 };
        assert!(now.all().all(|pod| pod.is_scheduled() || segment(pod) == 9), "{now}");
    });

    stage.add_node("more", 10).await;
    let done = statuses.until("all ready", |status| status.ready().starts_with("True")).await;
    assert_eq!(done.ready(), "True AllReplicasReady: 150/150 pods ready");
    assert_eq!(done.minimum(), "True AllSegmentsReady: 10/10 segments ready (150/150 pods)");
    assert_eq!(done.progressing(), "True Complete");
    assert!(done.0["firstReadyTime"].is_string(), "{done}");
    let summary = json!({ "segments": "10/10", "ready": "150/150", "held": 0, "reason": "" });
    assert_eq!(done.0["summary"], summary);

    assert_eq!(invariants::all_born_held(&stage.pods), 150);
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
    invariants::committed_before_released(&stage.pods, &statuses);
    invariants::nobody_was_held_again(&stage.pods);
    statuses.all().iter().for_each(says_how_far_deployment_is);
}

/// In every status on the way the conditions agree with KEP-32's example.
fn says_how_far_deployment_is(status: &Status) {
    let (ready, minimum) = (status.ready(), status.minimum());
    let counted = |(_, message): (&str, &str)| message.split('/').next()?.parse::<u32>().ok();
    let Some(segments) = minimum.split_once(": ").and_then(counted) else {
        assert_eq!(ready, "", "{status}");
        return;
    };
    let (says_ready, says_minimum) = match segments {
        0 => ("False DeploymentInProgress", "False NoSegmentsReady"),
        10 => ("True AllReplicasReady", "True AllSegmentsReady"),
        _ => ("False PartialDeployment", "True MinimumSegmentReady"),
    };
    assert_eq!(minimum, format!("{says_minimum}: {segments}/10 segments ready ({}/150 pods)", segments * 15));
    let pods = ready.strip_prefix(says_ready).and_then(|rest| rest.strip_prefix(": ")?.strip_suffix("/150 pods ready"));
    let pods: u32 = pods.and_then(|pods| pods.parse().ok()).unwrap_or_else(|| panic!("{status}"));
    assert!((segments * 15..=150).contains(&pods), "{status}");
}

mod tier2 {
    use super::*;

    /// 4P4D in steps of 2P:2D with room for five: whole steps have nodes, and never prefill or decode alone.
    #[tokio::test]
    async fn story_3_of_kep_75_deploys_in_whole_steps_where_room_is_short() {
        let stage = Stage::new("kep75-story-3").await;
        stage.add_node("small", 5).await;
        let _rolegate = stage.launch().start().await;
        let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2);
        let step = json!({ "rollingDeploy": { "roleDeployStep": { "prefill": 2, "decode": 2 } } });
        let statuses = stage.deploy_with(&group, &json!([{ "name": "pd", "strategy": step }])).await;
        stage.pods.until("as many as there is room for", |now| now.count_all(Pod::is_scheduled) == 5).await;
        statuses.until("the first step serves", |status| status.ready().ends_with("5/8 pods ready")).await;

        stage.add_node("more", 3).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 8/8 pods ready").await;
        let (mut view, mut looks) = (View::default(), 0);
        for batch in stage.pods.events().chunk_by(|a, b| a.batch == b.batch) {
            batch.iter().for_each(|event| view.take(event));
            let has_node = |role: &str| view.count(role, Pod::is_scheduled);
            let step = |role: &str, other: &str| has_node(role) <= 2 || has_node(other) >= 2;
            assert!(step("prefill", "decode") && step("decode", "prefill"), "{view}");
            looks += 1;
        }
        assert!(looks > 8, "{looks}");
    }
}
