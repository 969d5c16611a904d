//! What goes wrong while a pair is scaled.

use k8s_openapi::api::core::v1::ResourceQuota;

use crate::common::prelude::*;
use crate::common::request_proxy::{Kind, RequestProxy};
use crate::elastic::support::{Pair, SIZES, launch, served};

#[tokio::test]
async fn without_the_word_segments_have_no_effect_and_say_so() {
    let (stage, _rolegate) = Stage::new("elastic-not-allowed").await.with_room(60).await.serve().await;
    let pair = Pair::create(stage, "StatefulSet", &json!({ "segments": 2 }), &json!({})).await;
    pair.until_told("False NotAllowed: `segments` has no effect: rolegate runs without `--allow scale`").await;
    until_found("an Event", async || pair.scales("SegmentsIgnored").await, |count| *count > 0).await;
    stays(Duration::from_secs(1), "nothing is scaled", async || pair.replicas("prefill").await, 0).await;
}

/// Scaled from so many segments towards so many, of which one workload knows and the other never learns by this leader; with
/// the pods that there were.
async fn half_scaled(namespace: &str, [from, to]: [u32; 2], prefills: u64) -> (RequestProxy, Rolegate, Pair, Vec<Pod>) {
    let stage = Stage::new(namespace).await.with_room(60).await;
    let proxy = RequestProxy::before(&stage.plane).await;
    let leader = launch(&stage).through_requests(&proxy).start().await;
    let pair = Pair::create(stage, "StatefulSet", &json!({ "segments": from }), &json!({})).await;
    pair.until_scaled(from).await;
    let all = pair.stage.pods.now(|now| now.all().cloned().collect());
    proxy.lose(Kind { method: "PATCH", path: "/statefulsets/decode/scale" });
    pair.want(to).await;
    until_is("one of the two is scaled", async || pair.replicas("prefill").await, prefills).await;
    (proxy, leader, pair, all)
}

#[tokio::test]
async fn a_leader_that_dies_between_two_scales_leaves_the_other_to_its_successor() {
    let (_proxy, leader, pair, _) = half_scaled("elastic-leader", [2, 5], 6).await;
    assert_eq!(pair.replicas("decode").await, 2);
    leader.kill().await;
    let _successor = launch(&pair.stage).start().await;
    pair.until_scaled(5).await;
    pair.ratio_was_kept();
    pair.nobody_waited_for_a_turn();
}

#[tokio::test]
async fn while_no_webhook_answers_both_wait() {
    let stage = Stage::new("elastic-webhook").await.with_room(60).await;
    let service = Proxy::before("127.0.0.1:1".parse().unwrap()).await;
    let rolegate = launch(&stage).behind(service.address).start_unready().await;
    service.lead_to(&[rolegate.webhook]);
    rolegate.until_ready().await;
    let pair = Pair::scaled(stage, 2).await;
    service.lead_to(&["127.0.0.1:1".parse().unwrap()]);
    service.cut();
    pair.want(4).await;
    until_is("both are scaled, and no pod is made", async || pair.both().await, (6, 3)).await;
    let look = async || (pair.both().await, pair.stage.pods.now(|now| now.count_all(|_| true)));
    stays(Duration::from_secs(1), "no pod without the webhook, and no further scale", look, ((6, 3), 6)).await;
    service.lead_to(&[rolegate.webhook]);
    pair.until_scaled(4).await;
    pair.ratio_was_kept();
    pair.nobody_waited_for_a_turn();
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_workload_that_is_not_claimed_is_nobodys_to_scale() {
        let (stage, _rolegate) = served("elastic-unclaimed", 60).await;
        let pair = Pair::scaled(stage, 2).await;
        pair.kubectl(&["label", "statefulset/decode", "rolegate.dev/group-"]).await;
        pair.until_told("False WorkloadNotClaimed").await;
        pair.want(4).await;
        stays(Duration::from_secs(1), "nothing is scaled", async || pair.replicas("prefill").await, 4).await;
        pair.kubectl(&["label", "statefulset/decode", "rolegate.dev/group=pd"]).await;
        pair.until_scaled(4).await;
    }

    #[tokio::test]
    async fn a_quota_that_stops_one_role_stops_the_other_and_is_told() {
        let (stage, _rolegate) = served("elastic-quota", 60).await;
        // Two whole segments, and of the third all but one pod.
        stage.quota(8).await;
        let pair = Pair::create(stage, "StatefulSet", &json!({ "segments": 6 }), &json!({})).await;
        pair.stage.pods.until("eight pods", |now| now.count_all(Pod::is_ready) == 8).await;
        pair.statuses.until("what stops it is told", |status| status.progressing().contains("quota")).await;
        stays(Duration::from_secs(1), "the other waits", async || pair.both().await, (6, 3)).await;
        pair.stage.delete::<ResourceQuota>("small").await;
        pair.until_scaled(6).await;
        pair.ratio_was_kept();
    }

    #[tokio::test]
    async fn a_leader_that_dies_between_two_scales_on_the_way_down_leaves_the_other_to_its_successor() {
        let (_proxy, leader, pair, all) = half_scaled("elastic-leader-down", [5, 2], 8).await;
        stays(Duration::from_secs(1), "and no further before the other is", async || pair.both().await, (8, 5)).await;
        leader.kill().await;
        let _successor = launch(&pair.stage).start().await;
        pair.until_scaled(2).await;
        pair.ratio_was_kept();
        let size = |pod: &Pod| SIZES.iter().find(|(role, _)| *role == pod.role).unwrap().1;
        let stays = all.iter().filter(|pod| pod.index < 2 * size(pod)).map(|pod| &pod.uid);
        pair.stage.pods.now(|now| {
            for uid in stays {
                assert!(now.all().any(|pod| pod.uid == *uid), "E2: {uid} {now}");
            }
        });
    }
}
