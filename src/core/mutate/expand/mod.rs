//! The pods that a workload's controllers would create, with the names, labels, annotations, owners and variables of their
//! identity. Hashes that only the controllers compute (revisions) are left out, unless the workload's status has them.

mod birth;
mod clique_set;
mod leader_worker_set;
mod plain;

use std::cmp::Reverse;

use serde_json::Value;

use crate::api::ObjectKind;
use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::workload::{DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET};

/// The expansion of one kind of workload.
struct Row {
    kind: ObjectKind,
    /// Returns the number of pods.
    count: fn(&Value) -> u64,
    /// Paths of the fields that determine the number; `*` stands for every entry of a list.
    fields: &'static [&'static str],
    /// Returns the pods.
    pods: fn(&Value) -> Vec<Value>,
}

const WORKLOADS: &[Row] = &[
    Row { kind: STATEFUL_SET, count: plain::count, fields: plain::COUNTED, pods: plain::stateful_set },
    Row { kind: DEPLOYMENT, count: plain::count, fields: plain::COUNTED, pods: plain::deployment },
    Row {
        kind: LEADER_WORKER_SET,
        count: leader_worker_set::count,
        fields: leader_worker_set::COUNTED,
        pods: leader_worker_set::pods,
    },
    Row {
        kind: POD_CLIQUE_SET,
        count: clique_set::count_of_pod_clique_set,
        fields: clique_set::COUNTED,
        pods: clique_set::of_pod_clique_set,
    },
    Row {
        kind: POD_GANG_SET,
        count: clique_set::count_of_pod_gang_set,
        fields: clique_set::COUNTED,
        pods: clique_set::of_pod_gang_set,
    },
];

/// A workload with more pods than the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: it makes {pods} pods, and there is room for {room}")]
pub struct TooManyPods {
    /// Path of the largest field of the count.
    pub at: String,
    pub pods: u64,
    /// The limit.
    pub room: u64,
}

/// Returns the pods of a workload, by ordinal; `None` for an object of another kind.
///
/// # Errors
///
/// When the workload makes more than `room` pods.
pub fn expand(api_version: &str, kind: &str, object: &Value, room: u64) -> Result<Option<Vec<Value>>, TooManyPods> {
    let row = WORKLOADS.iter().find(|row| row.kind.kind == kind && row.kind.api_version() == api_version);
    let Some(row) = row else { return Ok(None) };
    let pods = (row.count)(object);
    if pods > room {
        let counted = row.fields.iter().flat_map(|field| numbers(object, field));
        let at = counted.min_by_key(|(_, number)| Reverse(*number)).map(|(at, _)| at).unwrap_or_default();
        return Err(TooManyPods { at, pods, room });
    }
    Ok(Some((row.pods)(object)))
}

/// Returns the numbers in a field, with their paths.
fn numbers(object: &Value, field: &str) -> Vec<(String, i64)> {
    let mut found = vec![(String::new(), object)];
    for step in field.split('.') {
        let mut next = Vec::new();
        for (at, value) in found {
            if step == "*" {
                let entries = value.as_array().into_iter().flatten().enumerate();
                next.extend(entries.map(|(index, entry)| (format!("{at}[{index}]"), entry)));
            } else if let Some(value) = value.get(step) {
                next.push((if at.is_empty() { step.to_owned() } else { format!("{at}.{step}") }, value));
            }
        }
        found = next;
    }
    found.into_iter().filter_map(|(at, value)| Some((at, value.as_i64()?))).collect()
}

/// Returns the text at a JSON pointer, `""` when absent.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number at a JSON pointer; `null` counts as absent, a negative number as 0.
fn number(object: &Value, pointer: &str, default: u32) -> u32 {
    let written = object.pointer(pointer).and_then(Value::as_i64);
    written.map_or(default, |written| u32::try_from(written.max(0)).unwrap_or(u32::MAX))
}
