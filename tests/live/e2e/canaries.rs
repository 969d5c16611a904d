//! Canaries, and segments that wait for more than their pods.

use crate::common::prelude::*;

/// Three segments of 4 prefill and 2 decode pods, with these fields of `segmentPlacement`.
fn object_of(group: &Group, fields: &Value) -> Value {
    let mut object = group.object();
    json_patch::merge(&mut object["spec"]["coordination"][0]["strategy"]["segmentPlacement"], fields);
    object
}

async fn deploy(stage: &Stage, fields: &Value) -> StatusLog {
    let group = Group::three_segments();
    let coordination = object_of(&group, fields)["spec"]["coordination"].take();
    stage.deploy_with(&group, &coordination).await
}

fn released(view: &View) -> usize {
    view.count("prefill", Pod::is_released) + view.count("decode", Pod::is_released)
}

async fn until_released(stage: &Stage, count: usize) {
    stage.pods.until(&format!("{count} are released"), |now| released(now) == count).await;
}

fn accepted(status: &Status) -> &Value {
    &status.0["coordinationState"][0]["accepted"]
}

/// The pause outlives the leader, and a person ends it.
#[tokio::test]
async fn the_first_segment_goes_alone_until_a_person_accepts_it() {
    let (stage, rolegate) = Stage::new("canary-segments").await.with_room(18).await.serve().await;
    let statuses = deploy(&stage, &json!({ "progression": "Canary" })).await;
    until_released(&stage, 6).await;
    stage.let_ready(Pod::is_released).await;
    let is_paused = |status: &Status| status.condition("RolloutPaused").starts_with("True UntilResumed");
    let status = statuses.until("it pauses", is_paused).await;
    let told = r#""segments" pauses after its canary until it is resumed; `rolegate resume llm -n canary-segments` resumes it"#;
    assert!(status.condition("RolloutPaused").contains(told), "{status}");
    assert_eq!((status.reason(), status.state("prefill")), ("CanaryPaused", "Paused"), "{status}");
    stage.until_event("CanaryPaused", &["segment 2 is held: a pause follows the canary, segment 1"]).await;
    drop(rolegate);
    let rolegate = stage.launch().start().await;
    rolegate.until_metric("rolegate_rollouts_paused", 1).await;
    stays(Duration::from_secs(2), "it pauses", async || stage.pods.now(released), 6).await;
    stage.until_said(&["explain", "group", "llm"], "rolegate resume llm").await;
    let said = stage.said(&["resume", "llm"]).await;
    assert!(said.contains("canary-segments/llm goes on (RolloutPaused)"), "{said}");
    until_released(&stage, 12).await;
    let status = statuses.until("the canary is accepted", |status| *accepted(status) == json!(1)).await;
    assert!(!is_paused(&status), "{status}");
    // The others go by OrderedReady.
    stage.let_ready(Pod::is_released).await;
    until_released(&stage, 18).await;
    stage.let_ready(Pod::is_released).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 18/18 pods ready").await;
    invariants::nobody_was_held_again(&stage.pods);
    invariants::committed_before_released(&stage.pods, &statuses);
}

/// A pod stands for the Job of a segment. The second comes late, and the third never.
#[tokio::test]
async fn each_segment_waits_for_its_own_object() {
    let stage = Stage::new("ready-when").await.with_room(24).await;
    let rolegate = stage.launch().flag("ready-kinds", "Pod=pods.v1").flag("progress-deadline", "3s").start().await;
    let warm = async |number: u32| {
        stage.create(bare_pod(&format!("warm-{number}"), &json!({}), &stage.namespace)).await;
    };
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "name": "warm-$(SEGMENT)" });
    let statuses = deploy(&stage, &json!({ "readyWhen": { "object": object } })).await;
    until_released(&stage, 6).await;
    stage.let_ready(Pod::is_released).await;
    let told = r#"segment 2 is held: segment 1 is not accepted: Pod "warm-0" is not there, for which it waits since "#;
    let waits = |status: &Status| status.0["summary"]["message"].as_str().unwrap_or_default().starts_with(told);
    let status = statuses.until("it waits", waits).await;
    assert_eq!((status.reason(), status.state("prefill")), ("SegmentNotAccepted", "Waiting"), "{status}");
    let stalled = |status: &Status| status.progressing().starts_with("False ProgressDeadlineExceeded: segment 2");
    statuses.until("it says that it comes late", stalled).await;
    // A command looks at the object itself.
    stage.until_said(&["explain", "group", "llm"], "is not there, for which it waits since").await;
    warm(0).await;
    until_released(&stage, 12).await;
    stage.let_ready(Pod::is_released).await;
    let own = |status: &Status| status.0["summary"]["message"].as_str().unwrap_or_default().contains("warm-1");
    statuses.until("it waits for its own", own).await;
    // The object of an accepted segment may go.
    stage.api::<ApiPod>().delete("warm-0", &DeleteParams::default()).await.unwrap();
    drop(rolegate);
    // Without the option it is said, and nothing goes.
    let _rolegate = stage.launch().start().await;
    let unwatched = "rolegate runs without `--ready-kinds` for Pod";
    let says = |status: &Status| status.0["summary"]["message"].as_str().unwrap_or_default().contains(unwatched);
    statuses.until("it says so", says).await;
    warm(1).await;
    stays(Duration::from_secs(2), "it waits", async || stage.pods.now(released), 12).await;
    invariants::committed_before_released(&stage.pods, &statuses);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_canary_that_was_ready_for_its_time_is_accepted() {
        let (stage, _rolegate) = Stage::new("canary-soaks").await.with_room(18).await.serve().await;
        let fields = json!({ "progression": "Canary", "soak": "5s", "readyWhen": { "minReadySeconds": 2 } });
        let statuses = deploy(&stage, &fields).await;
        until_released(&stage, 6).await;
        stage.let_ready(Pod::is_released).await;
        stage.pods.until("the canary is ready", |now| now.count_all(Pod::is_ready) == 6).await;
        // The pods count later than the API server says so.
        let paused = |status: &Status| status.condition("RolloutPaused").starts_with("True ForDur");
        let status = statuses.until("it pauses", paused).await;
        assert!(status.ready().ends_with("6/18 pods ready") && *accepted(&status) == json!(0), "{status}");
        until_released(&stage, 12).await;
        let before = statuses.all().into_iter().filter(|status| status.released("prefill") > 4);
        assert!(before.map(|status| accepted(&status).clone()).all(|accepted| accepted == json!(1)));
    }
}
