//! A group whose own operator keeps a `Ready`: two that write one condition would never come to rest.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{Group, PATIENT, Stage, eventually};

async fn write_ready(stage: &Stage, group: &Group, status: &str, message: &str) {
    let ready = json!({
        "type": "Ready",
        "status": status,
        "reason": "RolesReady",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    // As operators do it: they read what is there, write all conditions with theirs changed, and try again when they were
    // too late.
    eventually(PATIENT, "their Ready is written", async || {
        let found = stage.groups().get(&group.name).await?;
        let others = found.data["status"]["conditions"].as_array().into_iter().flatten();
        let mut conditions: Vec<Value> = others.filter(|condition| condition["type"] != "Ready").cloned().collect();
        conditions.push(ready.clone());
        let version = found.metadata.resource_version;
        let patch = json!({ "metadata": { "resourceVersion": version }, "status": { "conditions": conditions } });
        stage.groups().patch_status(&group.name, &PatchParams::default(), &Patch::Merge(patch)).await
    })
    .await;
}

#[tokio::test]
async fn a_ready_that_another_writes_is_left_to_it_and_all_else_goes_on() {
    let stage = Stage::new("their-ready").await;
    stage.add_node("all", 12).await;
    let _rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2);
    let statuses = stage.statuses(&group);
    stage.create_group(&group).await;
    write_ready(&stage, &group, "False", "0 of 2 roles").await;
    stage.create_sets(&group).await;
    let end = statuses.until("all segments", |status| status.minimum().starts_with("True AllSegmentsReady")).await;
    assert_eq!(end.ready(), "False RolesReady: 0 of 2 roles");
    // What we remember ourselves of being ready does not hang on theirs.
    let end = statuses.until("ready once", |status| status.0["firstReadyTime"].is_string()).await;
    assert_eq!((end.ready(), end.progressing()), ("False RolesReady: 0 of 2 roles".into(), "True Complete".into()));
}
