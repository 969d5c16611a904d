//! StatefulSet and Deployment: one pod per replica.

use serde_json::Value;

use super::birth::{Birth, Name, Owner};
use super::{number, text};
use crate::model::names;

/// Paths of the fields that determine the number of pods.
pub(super) const COUNTED: &[&str] = &["spec.replicas"];

pub(super) fn count(workload: &Value) -> u64 {
    number(workload, "/spec/replicas", 1).into()
}

/// Returns the pods `<set>-<ordinal>`, counted from `spec.ordinals.start`.
pub(super) fn stateful_set(set: &Value) -> Vec<Value> {
    let (name, service) = (text(set, "/metadata/name"), text(set, "/spec/serviceName"));
    let revision = text(set, "/status/updateRevision");
    let start = number(set, "/spec/ordinals/start", 0);
    let template = set.pointer("/spec/template").unwrap_or(&Value::Null);
    let ordinals = (0..number(set, "/spec/replicas", 1)).map(|ordinal| ordinal.saturating_add(start));
    let pod = |index: u32| {
        let pod = format!("{name}-{index}");
        let mut labels =
            vec![(names::POD_INDEX.to_owned(), index.to_string()), (names::STATEFUL_SET_POD.to_owned(), pod.clone())];
        if !revision.is_empty() {
            labels.push((names::CONTROLLER_REVISION.to_owned(), revision.to_owned()));
        }
        let birth = Birth {
            name: Name::Given(pod.clone()),
            labels,
            owner: Owner::workload("apps/v1", "StatefulSet", set),
            hostname: Some(pod),
            subdomain: Some(service.to_owned()),
            ..Birth::default()
        };
        birth.of(template, set)
    };
    ordinals.map(pod).collect()
}

/// Returns pods without name and ordinal, of a ReplicaSet whose hash only the API server knows.
pub(super) fn deployment(deployment: &Value) -> Vec<Value> {
    let name = text(deployment, "/metadata/name");
    let template = deployment.pointer("/spec/template").unwrap_or(&Value::Null);
    let pod = |_| {
        let birth = Birth {
            name: Name::Generated(format!("{name}-")),
            owner: Owner { api_version: "apps/v1", kind: "ReplicaSet", name: name.to_owned(), uid: None },
            ..Birth::default()
        };
        birth.of(template, deployment)
    };
    (0..number(deployment, "/spec/replicas", 1)).map(pod).collect()
}
