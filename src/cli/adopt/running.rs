//! Running workloads and existing groups, as read from the cluster.

use serde::Deserialize;
use serde_json::{Value, json};

use super::target::Target;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::{Meta, ObjectKind, Pod};
use crate::model::Workload;
use crate::model::maker::{Maker, Owner};
use crate::model::workload_object::{WithType, WorkloadObject};
use crate::rules::decode_value;

/// A running workload with its pods.
pub struct Running {
    pub target: Target,
    pub object: Value,
    pub workload: Workload,
    pub pods: Vec<Pod>,
}

/// Parses an object as the type of its kind.
struct Read<'a>(&'a Value);

impl WithType for Read<'_> {
    type Output = Result<Workload, String>;

    fn of<T: WorkloadObject>(self) -> Self::Output {
        decode_value::<T>(self.0).map(|object| object.workload()).map_err(|error| error.to_string())
    }
}

impl Running {
    /// Parses a workload, and selects its own pods.
    pub fn of(target: Target, object: Value, pods: &[Pod]) -> Result<Self, String> {
        let workload = target.kind.with_type(Read(&object)).map_err(|error| format!("{target}: {error}"))?;
        let maker = Maker::of(target.kind, &target.name, &object);
        let is_own = |pod: &&Pod| {
            let Some((maker, owner)) = maker.as_ref().zip(pod.metadata.controller()) else { return false };
            let owner = Owner { kind: &owner.kind, name: &owner.name, uid: &owner.uid };
            !pod.is_gone() && maker.has_made(owner, |key| pod.metadata.label(key))
        };
        let pods = pods.iter().filter(is_own).cloned().collect();
        Ok(Self { target, object, workload, pods })
    }

    /// Returns the patch that labels the existing pod templates; `None` when each has the labels.
    pub fn template(&self, wanted: &Value) -> Option<Value> {
        let lacks = |path: &&&[&str]| {
            let template = path.iter().try_fold(&self.object, |value, step| value.get(*step));
            let has = |template: &Value| has_labels(template.pointer("/metadata/labels"), wanted);
            template.is_some_and(|template| template.is_object() && !has(template))
        };
        let mut patch = json!({});
        let lacking: Vec<_> = self.target.kind.row().templates.iter().filter(lacks).collect();
        for path in &lacking {
            let inner = json!({ "metadata": { "labels": wanted } });
            json_patch::merge(&mut patch, &path.iter().rev().fold(inner, |inner, step| json!({ (*step): inner })));
        }
        (!lacking.is_empty()).then_some(patch)
    }
}

/// Reports whether `labels` contains all of `wanted`.
pub fn has_labels(labels: Option<&Value>, wanted: &Value) -> bool {
    wanted
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// An existing carrier of a group.
pub struct Carrier {
    pub kind: ObjectKind,
    pub object: Value,
}

impl Carrier {
    pub fn meta(&self) -> Meta {
        self.object.get("metadata").map(Meta::deserialize).and_then(Result::ok).unwrap_or_default()
    }

    /// Returns the role that refers to a workload.
    pub fn role_of(&self, target: &Target) -> Option<String> {
        let roles = self.object.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten();
        let refers = |role: &&Value| {
            let text = |path: &str| role.pointer(path).and_then(Value::as_str);
            text("/workloadRef/kind") == Some(target.kind.as_str())
                && text("/workloadRef/name") == Some(target.name.as_str())
        };
        roles.filter(|_| self.kind == ROLE_COORDINATION).find(refers)?.get("name")?.as_str().map(str::to_owned)
    }
}
