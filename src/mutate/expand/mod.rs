//! The pods that a workload's controllers would create, with the names, labels, annotations, owners and variables that tell
//! who they are. Hashes that only the controllers compute (revisions) are left out, unless the workload's status has them.

mod birth;
mod clique_set;
mod leader_worker_set;
mod plain;

use serde_json::Value;

use crate::api::ObjectKind;
use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::workload::{DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET};

/// Makes the pods of one kind of workload.
type Expand = fn(&Value) -> Vec<Value>;

/// Workloads whose pods are known.
const WORKLOADS: &[(ObjectKind, Expand)] = &[
    (STATEFUL_SET, plain::stateful_set),
    (DEPLOYMENT, plain::deployment),
    (LEADER_WORKER_SET, leader_worker_set::pods),
    (POD_CLIQUE_SET, clique_set::of_pod_clique_set),
    (POD_GANG_SET, clique_set::of_pod_gang_set),
];

/// The pods of a workload, by ordinal; `None` for an object that makes none, or none that are known.
pub fn expand(api_version: &str, kind: &str, object: &Value) -> Option<Vec<Value>> {
    let row = WORKLOADS.iter().find(|(known, _)| known.kind == kind && known.api_version() == api_version);
    row.map(|(_, expand)| expand(object))
}

/// Text at a JSON pointer, `""` when absent.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Number at a JSON pointer; `null` is absent, and what is below 0 reads as 0.
fn number(object: &Value, pointer: &str, default: u32) -> u32 {
    let written = object.pointer(pointer).and_then(Value::as_i64);
    written.map_or(default, |written| u32::try_from(written.max(0)).unwrap_or(u32::MAX))
}
