//! Modes and the selection of namespaces, with what the API server's own audit log notes of them.

mod audit;
mod selection;
mod switches;

use crate::common::prelude::*;
use crate::worlds::stage;

/// A group whose coordinations disagree: segment-size-conflict.
fn wrong_group(name: &str) -> Value {
    let segments = |name: &str, size: u32| json!({ "name": name, "strategy": { "segmentPlacement": { "segmentSize": { "main": size } } } });
    Group::new(name).role("main", 4, 2).coordinated(&json!([segments("segments", 2), segments("other", 1)]))
}

/// Creates a group; code of the answer and its warnings.
async fn try_group(stage: &Stage, object: &Value) -> (u16, Vec<String>) {
    let answer = stage.post(GROUPS, "rolebasedgroups", object).await;
    (answer.code, answer.warnings)
}
