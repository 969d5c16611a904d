//! LeaderWorkerSet: groups of a leader and its workers, as they are after LWS's own webhook.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::{Value, json};

use super::birth::{Birth, Name, Owner};
use super::{number, text};
use crate::model::names;

/// Prefix of the label and annotation keys of LWS.
const PREFIX: &str = "leaderworkerset.sigs.k8s.io";

/// Paths of the fields that determine the number of pods.
pub(super) const COUNTED: &[&str] = &["spec.replicas", "spec.leaderWorkerTemplate.size"];

pub(super) fn count(set: &Value) -> u64 {
    u64::from(number(set, "/spec/replicas", 1)) * u64::from(size(set))
}

fn size(set: &Value) -> u32 {
    number(set, "/spec/leaderWorkerTemplate/size", 1).max(1)
}

/// Returns leader `<set>-<group>` and workers `<set>-<group>-<index>`, group by group.
pub(super) fn pods(set: &Value) -> Vec<Value> {
    let size = size(set);
    let groups = 0..number(set, "/spec/replicas", 1);
    groups.flat_map(|group| (0..size).map(move |worker| pod(set, group, worker, size))).collect()
}

fn pod(set: &Value, group: u32, worker: u32, size: u32) -> Value {
    let (name, namespace) = (text(set, "/metadata/name"), text(set, "/metadata/namespace"));
    let leader = format!("{name}-{group}");
    let shared = text(set, "/spec/networkConfig/subdomainPolicy") != "UniquePerReplica";
    let subdomain = if shared { name } else { &leader };
    let template = |pointer| set.pointer(pointer).filter(|template| !template.is_null());
    let worker_template = template("/spec/leaderWorkerTemplate/workerTemplate").unwrap_or(&Value::Null);
    let leader_template = template("/spec/leaderWorkerTemplate/leaderTemplate").unwrap_or(worker_template);
    let (pod, index, owner, template) = if worker == 0 {
        (leader.clone(), group, name.to_owned(), leader_template)
    } else {
        (format!("{leader}-{worker}"), worker, leader.clone(), worker_template)
    };
    let labels = [
        (names::LWS_NAME.to_owned(), name.to_owned()),
        (names::LWS_GROUP_INDEX.to_owned(), group.to_string()),
        (format!("{PREFIX}/group-key"), sha1(&format!("{namespace}/{leader}"))),
        (names::LWS_WORKER_INDEX.to_owned(), worker.to_string()),
        (names::POD_INDEX.to_owned(), index.to_string()),
        (names::STATEFUL_SET_POD.to_owned(), pod.clone()),
    ];
    let mut annotations = vec![(names::LWS_SIZE.to_owned(), size.to_string())];
    if worker > 0 {
        annotations.push((format!("{PREFIX}/leader-name"), leader.clone()));
    }
    let birth = Birth {
        name: Name::Given(pod.clone()),
        labels: labels.into(),
        annotations,
        owner: Owner { api_version: "apps/v1", kind: "StatefulSet", name: owner, uid: None },
        env: vec![
            json!({ "name": "LWS_LEADER_ADDRESS", "value": format!("{leader}.{subdomain}.{namespace}") }),
            json!({ "name": "LWS_GROUP_SIZE", "value": size.to_string() }),
            json!({ "name": "LWS_WORKER_INDEX", "value": worker.to_string() }),
        ],
        hostname: Some(pod),
        subdomain: Some(subdomain.to_owned()),
        gate: None,
    };
    birth.of(template, set)
}

/// LWS keys its groups by this hash.
fn sha1(text: &str) -> String {
    use std::fmt::Write as _;
    digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
