//! Wrong groups: refused in plain words, and where they are stored already, brought to light.

use crate::common::prelude::*;

const SIZES: &str =
    r#"segment size conflict for role "prefill": coordination has segment size 10, but another coordination has 5"#;
const PROGRESSIONS: &str = r#"progression strategy conflict for role "prefill": coordination has strategy "Ordered", but another coordination has "OrderedReady""#;

fn segments(name: &str, progression: &str, sizes: &Value) -> Value {
    json!({ "name": name, "strategy": { "segmentPlacement": { "segmentSize": sizes, "progression": progression } } })
}

/// Two coordinations that disagree on both size and progression of prefill.
fn conflicting() -> Value {
    json!([
        segments("first", "OrderedReady", &json!({ "prefill": 5 })),
        segments("second", "Ordered", &json!({ "prefill": 10, "decode": 5 })),
    ])
}

fn group() -> Group {
    Group::new("llm").role("prefill", 20, 5).role("decode", 10, 5)
}

#[tokio::test]
async fn a_conflict_is_refused_with_every_cause() {
    let (stage, _rolegate) = Stage::new("conflict").await.serve().await;
    let mut object = group().coordinated(&conflicting());
    let refused = stage.post(GROUPS, "rolebasedgroups", &object).await;
    let body = &refused.body;
    assert!(refused.code == 422 && body["reason"] == "Invalid" && body["status"] == "Failure", "{body:#}");
    let second = "spec.coordination[1].strategy.segmentPlacement";
    let cause = |field: &str, message: &str| {
        let message = format!("Invalid value: {message}");
        json!({ "reason": "FieldValueInvalid", "field": format!("{second}.{field}"), "message": message })
    };
    let progression = cause("progression", &format!(r#""Ordered": {PROGRESSIONS}"#));
    let causes = json!([progression, cause("segmentSize[prefill]", &format!("10: {SIZES}"))]);
    assert_eq!(body["details"]["causes"], causes, "{body:#}");
    assert_eq!((&body["details"]["name"], &body["details"]["kind"]), (&json!("llm"), &json!("RoleBasedGroup")));
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with(r#"admission webhook "objects.rolegate.dev" denied the request: RoleBasedGroup.workloads.x-k8s.io "llm" is invalid: ["#), "{message}");
    for text in [SIZES, PROGRESSIONS] {
        assert!(message.contains(text), "{message}");
    }
    // The same under the name of KEP-32's examples, and in its spelling of the field.
    object["apiVersion"] = json!("workloads.instai.io/v1alpha1");
    let coordination = object["spec"].as_object_mut().unwrap().remove("coordination").unwrap();
    object["spec"]["coordinationRequirements"] = coordination;
    let refused = stage.post("/apis/workloads.instai.io/v1alpha1", "rolebasedgroups", &object).await;
    assert_eq!(refused.code, 422, "{refused:?}");
    let field = "spec.coordinationRequirements[1].strategy.segmentPlacement.segmentSize[prefill]";
    assert_eq!(refused.body["details"]["causes"][1]["field"], field);
}

#[tokio::test]
async fn a_stored_fault_holds_what_is_held_and_does_not_stop_other_edits() {
    let stage = Stage::new("old-fault").await.with_room(30).await;
    // It was stored when nobody looked.
    let group = group();
    let statuses = stage.statuses(&group);
    stage.create(group.coordinated(&conflicting())).await;
    let _rolegate = stage.launch().start().await;
    stage.create_sets(&group).await;
    let invalid = |reason: &Value| reason == "InvalidCoordination";
    let status =
        statuses.until("it says so", |s| invalid(&s.0["summary"]["reason"]) && s.0["summary"]["held"] == 30).await;
    let progressing = status.progressing();
    assert!(progressing.starts_with("False InvalidCoordination: ") && progressing.contains(PROGRESSIONS), "{status}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 30, "{now}"));

    // Who changes something else is warned; who adds a fault is refused.
    let disabled = json!({ "metadata": { "annotations": { "rolegate.dev/discovery": "disabled" } } });
    let other = stage.try_patch_group(&group, &disabled).await;
    assert_eq!(other.code, 200, "{other:?}");
    let warned = |text: &str| other.warnings.iter().any(|warning| warning.contains(text));
    assert!(warned(SIZES) && warned(PROGRESSIONS), "{:?}", other.warnings);
    let mut worse = conflicting();
    worse[1]["strategy"]["segmentPlacement"]["segmentSize"]["decode"] = json!(0);
    let worse = stage.try_patch_group(&group, &json!({ "spec": { "coordination": worse } })).await;
    assert_eq!(worse.code, 422, "{worse:?}");
    let fields: Vec<_> =
        worse.body["details"]["causes"].as_array().unwrap().iter().map(|cause| &cause["field"]).collect();
    assert_eq!(fields, ["spec.coordination[1].strategy.segmentPlacement.segmentSize[decode]"]);

    // Repaired, it runs.
    let repaired = json!([segments("first", "OrderedReady", &json!({ "prefill": 5, "decode": 5 }))]);
    stage.recoordinate(&group, &repaired).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 30/30 pods ready").await;
    invariants::released_in_order(&stage.pods, &group);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn kubectl_shows_why() {
        let (stage, _rolegate) = Stage::new("kubectl").await.with_room(30).await.serve().await;
        let group = group();
        let apply = ["apply", "--namespace", "kubectl", "-f", "-"];
        let refused = stage.plane.kubectl(&apply, &group.coordinated(&conflicting()).to_string());
        let errors = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && errors.contains(SIZES) && errors.contains(PROGRESSIONS), "{errors}");

        stage.plane.must(&apply, &group.object().to_string());
        let statuses = stage.statuses(&group);
        stage.create_sets(&group).await;
        statuses.until("all ready", |status| status.ready().starts_with("True")).await;
        let table = stage.kubectl(&["get", "rolebasedgroups.workloads.x-k8s.io", "llm"]);
        let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["NAME", "SEGMENTS", "READY", "HELD", "REASON", "AGE"], "{table}");
        assert_eq!(rows[1][..4], ["llm", "4/4", "30/30", "0"], "{table}");
    }

    #[tokio::test]
    async fn nothing_moves_for_too_long_and_the_group_says_what_it_waits_for() {
        let (stage, rolegate) =
            Stage::new("stalled").await.with_room(30).await.serve_with("progress-deadline", "2s").await;
        let group = group().held_back();
        let statuses = stage.deploy_watched(&group).await;
        let status = statuses.until("stalled", |status| status.progressing().starts_with("False")).await;
        let why = "segment 2 is held: segment 1 has 0/5 prefill and 0/5 decode ready";
        assert_eq!(status.progressing(), format!("False ProgressDeadlineExceeded: {why}"));
        rolegate.until_metric("rolegate_stalled_groups", 1).await;
        // It is only said: nothing goes early, and it ends when things move again.
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), 10, "{now}"));
        stage.let_ready(|pod| pod.index < 5).await;
        statuses.until("moving", |status| status.progressing() == "True Progressing").await;
        rolegate.until_metric("rolegate_stalled_groups", 0).await;
        invariants::released_in_order(&stage.pods, &group);
    }
}
