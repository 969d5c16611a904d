//! Modes and the selection of namespaces, with what the API server's own audit log notes of them.

mod audit;
mod selection;
mod switches;

use crate::common::prelude::*;
use crate::worlds::stage;

/// Labels the stage's namespace, `key=value`, or `key-` to take a label away.
fn label(stage: &Stage, label: &str) {
    stage.plane.must(&["label", "--overwrite", "namespace", &stage.namespace, label], "");
}

/// A group whose coordinations disagree: segment-size-conflict.
fn wrong_group(name: &str) -> Value {
    let mut object = Group::new(name).role("main", 4, 2).object();
    let mut other = object["spec"]["coordination"][0].clone();
    other["name"] = json!("other");
    other["strategy"]["segmentPlacement"]["segmentSize"]["main"] = json!(1);
    object["spec"]["coordination"].as_array_mut().unwrap().push(other);
    object
}

/// Creates a group; code of the answer and its warnings.
async fn try_group(stage: &Stage, object: &Value) -> (u16, Vec<String>) {
    let path = format!("{GROUPS}/namespaces/{}/rolebasedgroups", stage.namespace);
    let answer = stage.send("POST", &path, object).await;
    (answer.code, answer.warnings)
}
