//! Mutates objects.

use serde_json::Value;

use super::known::Known;
use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::pod::POD;
use crate::api::status::GroupStatus;
use crate::api::{ClusterTopology, Meta, Pod};
use crate::cli::documents::{Document, Unreadable, in_namespace};
use crate::model::{WorkloadKind, rollout_claim};
use crate::mutate::expand::{TooManyPods, expand};
use crate::mutate::rollout::{MANAGER, hold_rollout};
use crate::mutate::{Patch, PodSettings, Subject, mutate_pod, protect_topology};
use crate::rules::decode::decode;
use crate::rules::{Operation, judge_json};

#[derive(Debug)]
pub struct Mutated {
    pub kind: String,
    /// Namespace as written; `""` when absent.
    pub namespace: String,
    /// Name, or `generateName`.
    pub name: String,
    pub before: Value,
    pub after: Value,
    pub patch: Patch,
    /// Warnings for the client that creates the object.
    pub warnings: Vec<String>,
    /// Errors of the mutated object; empty when it is allowed.
    pub refused: Vec<String>,
}

impl Mutated {
    /// Returns kind and name, with the namespace if it is written.
    pub fn title(&self) -> String {
        if self.namespace.is_empty() {
            format!("{} {}", self.kind, self.name)
        } else {
            format!("{} {}/{}", self.kind, self.namespace, self.name)
        }
    }

    /// Applies a patch to the object before.
    fn take(&mut self, patch: Patch) {
        let mut after = self.before.clone();
        if apply(&patch, &mut after).is_ok() {
            (self.patch, self.after) = (patch, after);
        }
    }
}

/// Returns all objects; workloads are replaced by their pods. Objects that the webhook ignores are included unchanged.
pub fn all(
    files: &[Document],
    old: &[Document],
    known: &Known,
    settings: &PodSettings,
    unreadable: &mut Vec<Unreadable>,
) -> Vec<Mutated> {
    let mut all = Vec::new();
    for document in files {
        let object: Value = serde_json::from_str(&document.json).unwrap_or_default();
        if document.is(POD) {
            match pod(object, known, settings) {
                Ok(mutated) => all.push(mutated),
                // The error is reported already: every object was collected for the context.
                Err(_) if !unreadable.is_empty() => {}
                Err(error) => unreadable.push(document.unreadable(&error)),
            }
            continue;
        }
        if let Some(before) = old.iter().find(|old| old.identity() == document.identity()) {
            all.push(updated(document, object, &before.json, known));
            continue;
        }
        let room = MOST_PODS.saturating_sub(u64::try_from(all.len()).unwrap_or(u64::MAX));
        match pods_of(document, &object, room) {
            Ok(None) => all.push(created(document, object)),
            Ok(Some(pods)) => all.extend(pods.into_iter().filter_map(|object| pod(object, known, settings).ok())),
            Err(error) => unreadable.push(document.unreadable(&error)),
        }
    }
    all
}

/// Maximum number of pods from all files: the largest clusters have no more, and all are held in memory.
const MOST_PODS: u64 = 100_000;

/// Mutates the update of a workload. Manifests have no status: a pod of each role counts as ready once.
fn updated(document: &Document, object: Value, old: &str, known: &Known) -> Mutated {
    let mut mutated = unchanged(document, object);
    let kind = WorkloadKind::ALL.iter().copied().find(|kind| document.is(kind.object_kind()));
    let whole = in_namespace(&document.json);
    let meta: Meta =
        whole.get("metadata").cloned().and_then(|meta| serde_json::from_value(meta).ok()).unwrap_or_default();
    let manager = known.manager.as_deref();
    let claim = rollout_claim(&meta, meta.namespace()).filter(|_| manager != Some(MANAGER));
    let held = kind.zip(claim).and_then(|(kind, claim)| {
        let group = known.group(&claim.group)?;
        let served = group.status.has_served(&claim.role) || group.status == GroupStatus::default();
        Some(hold_rollout(kind, &in_namespace(old), &mutated.before, &claim, group, served, manager))
    });
    held.into_iter().for_each(|patch| mutated.take(patch));
    mutated
}

/// Mutates the creation of an object that is neither a pod nor a workload.
fn created(document: &Document, object: Value) -> Mutated {
    let mut mutated = unchanged(document, object);
    if CLUSTER_TOPOLOGIES.iter().any(|kind| document.is(*kind))
        && let Ok(topology) = decode::<ClusterTopology>(&document.json)
    {
        mutated.take(protect_topology(&topology));
    }
    mutated
}

/// Returns the pods of a workload, as created in a namespace: controllers write it into names and variables.
fn pods_of(document: &Document, object: &Value, room: u64) -> Result<Option<Vec<Value>>, TooManyPods> {
    let whole = in_namespace(&document.json);
    let Some(mut pods) = expand(&document.api_version, &document.kind, &whole, room)? else { return Ok(None) };
    if object.pointer("/metadata/namespace").is_none() {
        let metadata =
            |pod: &mut Value| _ = pod.get_mut("metadata").and_then(Value::as_object_mut).map(|m| m.remove("namespace"));
        pods.iter_mut().for_each(metadata);
    }
    Ok(Some(pods))
}

fn unchanged(document: &Document, object: Value) -> Mutated {
    Mutated {
        kind: document.kind.clone(),
        namespace: document.namespace.clone(),
        name: document.name.clone(),
        after: object.clone(),
        before: object,
        patch: Patch::default(),
        warnings: Vec::new(),
        refused: Vec::new(),
    }
}

fn pod(before: Value, known: &Known, settings: &PodSettings) -> Result<Mutated, String> {
    let json = before.to_string();
    let pod: Pod = decode(&json).map_err(|error| error.to_string())?;
    let stored: Pod = serde_json::from_value(in_namespace(&json)).unwrap_or_default();
    let subject = Subject::of(&pod, stored.metadata.namespace(), known);
    let mutation = known.lookups(&subject, |lookups| mutate_pod(&pod, &subject, lookups, settings));
    let mut after = before.clone();
    apply(&mutation.patch, &mut after)?;
    let judged = judge_json(
        &POD.api_version(),
        POD.kind,
        Operation::Create,
        &in_namespace(&after.to_string()).to_string(),
        None,
        &known.world,
    );
    let refused = match judged {
        Some(Ok(judged)) => judged.errors.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    Ok(Mutated {
        kind: POD.kind.to_owned(),
        namespace: pod.metadata.namespace().to_owned(),
        name: pod.metadata.display_name().to_owned(),
        before,
        after,
        patch: mutation.patch,
        warnings: mutation.warnings,
        refused,
    })
}

/// Applies a patch as the API server does.
fn apply(patch: &Patch, object: &mut Value) -> Result<(), String> {
    let operations: json_patch::Patch = serde_json::from_str(&patch.to_json()).map_err(|error| error.to_string())?;
    json_patch::patch(object, &operations).map_err(|error| error.to_string())
}
