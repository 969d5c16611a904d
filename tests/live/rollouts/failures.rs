//! Images that never get ready, and the ways back.

use crate::common::invariants::rolled_in_step;
use crate::common::pods::Event;
use crate::common::prelude::*;
use crate::rollouts::support::{Duo, revision};

/// KEP-30, story 1: decode never gets ready; prefill stops as well, and both roll back.
#[tokio::test]
async fn a_broken_decode_stops_prefill_and_both_roll_back() {
    let bounds = json!({ "maxSkew": "10%", "maxUnavailable": 2 });
    let duo = Duo::serve("story-one", 20, 10, bounds, &[("progress-deadline", "2s")]).await.ready().await;
    let revisions = |now: &View| now.all().map(|pod| (pod.name.clone(), revision(pod))).collect::<BTreeMap<_, _>>();
    let all = || duo.stage.pods.now(revisions);
    let before = all();
    duo.edit_held_back("decode", "registry.invalid/broken:2");
    duo.set_image("prefill", "registry.invalid/x:2");
    // 10 % of 20 are two prefills; a StatefulSet replaces one decode at a time.
    duo.stage.until_event("RolloutStalled", &["decode-9"]).await;
    let stopped = || (duo.new_ordinals("prefill").len(), duo.new_ordinals("decode").len());
    assert_eq!(stopped(), (2, 1));
    let status = duo.statuses.until("it says so", |status| status.progressing().contains("decode")).await;
    assert!(status.progressing().starts_with("False ProgressDeadlineExceeded"), "{status}");
    assert_eq!(status.0["summary"]["reason"], "RolloutStalled", "the REASON column: {status}");
    stays(Duration::from_secs(1), "prefill has stopped", async || stopped(), (2, 1)).await;
    duo.undo();
    duo.until_back().await;
    assert_eq!(all(), before);
    duo.assert_bounds(10, &|_| 2);
}

/// Segments of two prefills and a decode, and a rollout with this skew.
fn with_segments(skew: &str) -> Value {
    let segments = json!({ "segmentSize": { "prefill": 2, "decode": 1 } });
    let strategy = json!({ "rollingUpdate": { "maxSkew": skew }, "segmentPlacement": segments });
    json!([{ "name": "both", "roles": ["prefill", "decode"], "strategy": strategy }])
}

mod tier2 {
    use super::*;

    /// Half-way, the pods at the revision to go to are the low ordinals.
    #[tokio::test]
    async fn half_way_back_starts_at_the_top() {
        let bounds = json!({ "maxSkew": "10%", "maxUnavailable": 1 });
        let duo = Duo::serve("half-way", 8, 4, bounds, &[]).await.ready().await;
        duo.edit_both_held_back("registry.invalid/x:2");
        let half = |pod: &Pod| pod.index >= if pod.role == "prefill" { 4 } else { 2 };
        let ready = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
        duo.let_ready_until(half, |now| now.count("prefill", ready) == 4 && now.count("decode", ready) == 2).await;
        duo.undo();
        // One that was made in the meantime becomes ready as well: a broken pod below is another story.
        duo.let_ready_until(|_| true, |now| now.count_all(|pod| duo.is_new(pod)) == 0).await;
        duo.until_back().await;
        duo.statuses.until("it serves again", |status| status.ready().starts_with("True")).await;
    }

    /// Another edit in the middle of a rollout is an update like any other.
    #[tokio::test]
    async fn a_second_edit_in_the_middle_freezes_again_and_ends() {
        let bounds = json!({ "maxSkew": "25%", "maxUnavailable": 1 });
        let duo = Duo::serve("second-edit", 8, 4, bounds, &[]).await.ready().await;
        duo.edit_both_held_back("registry.invalid/broken:2");
        duo.stage.pods.until("it has begun", |now| now.count("prefill", |pod| duo.is_new(pod)) == 1).await;
        for role in ["prefill", "decode"] {
            duo.edit_good(role, "registry.invalid/x:3");
        }
        duo.until_over().await;
        duo.assert_bounds(25, &|_| 1);
    }

    /// A first version that never gets ready can be replaced: nothing is frozen before a pod was ready once. What the StatefulSets
    /// wait for on top does not keep the broken pods below.
    #[tokio::test]
    async fn a_first_version_that_is_broken_can_be_replaced() {
        let stage = Stage::new("broken-first").await.with_room(6).await;
        let group = Group::new("llm").role("prefill", 4, 1).role("decode", 2, 1).held_back();
        let duo = Duo::serve_on(stage, group, &with_segments("10%"), &[("allow", "recovery")]).await;
        duo.stage.pods.until("the first segment runs", |now| now.count_all(Pod::is_scheduled) == 3).await;
        for role in ["prefill", "decode"] {
            duo.edit_good(role, "registry.invalid/x:2");
            assert_eq!(duo.user_partition(role).await, None);
        }
        duo.statuses.until("all ready", |status| status.ready().starts_with("True")).await;
    }

    /// One segment lacks room from the first day, and one is held behind it. What serves is updated in step all the same.
    #[tokio::test]
    async fn a_group_that_never_was_whole_is_updated_in_step() {
        let stage = Stage::new("never-whole").await.with_room(6).await;
        let group = Group::new("llm").role("prefill", 8, 2).role("decode", 4, 1);
        // Pods of a later segment that wait for a node would take that of a pod that is replaced.
        let mut whole = with_segments("50%");
        whole[0]["strategy"]["segmentPlacement"]["whole"] = json!(true);
        let duo = Duo::serve_on(stage, group, &whole, &[("allow", "recovery")]).await;
        duo.stage.pods.until("two segments serve", |now| now.count_all(Pod::is_ready) == 6).await;
        let old = duo.stage.pods.now(|now| now.all().map(revision).collect::<BTreeSet<_>>());
        duo.set_images("registry.invalid/x:2");
        let is_new = |pod: &Pod| pod.is_ready() && !old.contains(&revision(pod));
        duo.stage.pods.until("all that serves is new", |now| now.count_all(is_new) == 6).await;
        let serving = [("prefill", 4), ("decode", 2)];
        assert!(rolled_in_step(&duo.stage.pods, serving, is_new, 50, &|_| 1) > 0);
    }

    /// Twice as many replicas of a new version, in one apply for each role: none of the new segments begins with an old pod.
    #[tokio::test]
    async fn segments_that_grow_with_a_new_version_begin_with_new_pods() {
        let stage = Stage::new("grown-new").await.with_room(24).await;
        let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
        let larger = group.clone().role("prefill", 8, 2).role("decode", 4, 1);
        let duo = Duo::serve_on(stage, group, &with_segments("50%"), &[("allow", "recovery")]).await.ready().await;
        duo.stage.patch_group(&larger, json!({ "spec": { "roles": larger.object()["spec"]["roles"] } })).await;
        for (role, replicas) in [("prefill", 8), ("decode", 4)] {
            let spec = json!({ "containers": [{ "name": "main", "image": "registry.invalid/x:2" }] });
            let patch = json!({ "spec": { "replicas": replicas, "template": { "spec": spec } } }).to_string();
            let told = duo.kubectl(&["patch", &duo.target(role), "--type=strategic", "-p", &patch], "");
            assert!(told.contains("patched"), "{told}");
        }
        duo.until_over().await;
        duo.stage.pods.until("all are new", |now| now.count_all(|pod| pod.is_ready() && duo.is_new(pod)) == 12).await;
        let grown = |pod: &Pod| pod.index >= if pod.role == "prefill" { 4 } else { 2 };
        let begins_old = |event: &Event| grown(&event.pod) && !event.pod.is_held() && !duo.is_new(&event.pod);
        let old: Vec<_> = duo.stage.pods.events().into_iter().filter(begins_old).map(|event| event.pod.name).collect();
        assert!(old.is_empty(), "{old:?}");
    }

    /// Held replicas on top keep a StatefulSet from rolling those below: that is said, and scaling to what runs is the way out.
    #[tokio::test]
    async fn a_rollout_behind_a_held_batch_is_named_and_has_a_way_out() {
        let stage = Stage::new("behind-held").await.with_room(6).await;
        let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
        let duo = Duo::serve_on(stage, group.clone(), &with_segments("50%"), &[]).await.ready().await;
        // Two more segments come; there is no room for the first of them, so that the second stays held.
        let larger = group.clone().role("prefill", 8, 2).role("decode", 4, 1);
        duo.stage.scale(&larger).await;
        duo.stage.pods.until("a segment is held", |now| now.count_all(Pod::is_held) == 3).await;
        duo.set_images("registry.invalid/x:2");
        duo.stage.until_event("RolloutBehindHeldBatch", &["prefill", "scale it to 6 replicas"]).await;
        // A held pod that is made anew is away for a moment.
        let says_so = |status: &Status| {
            let summary = &status.0["summary"];
            summary["reason"] == "RolloutBehindHeldBatch" && summary["held"] == 3
        };
        duo.statuses.until("it says so", says_so).await;
        duo.stage.scale(&group).await;
        duo.until_over().await;
    }
}
