//! The workload behind a role.

use std::collections::BTreeMap;

use serde_json::Value;

use super::first_host;
use super::workload::Unlabelled;
use super::{FieldPath, GroupKey, WorkloadKey, WorkloadKind};
use crate::api;
use crate::api::role_coordination::WorkloadRef;

/// What makes the pods of a role, as far as rules look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleWorkload {
    /// `workloadRef` as written, with its path.
    pub reference: Option<(WorkloadRef, FieldPath)>,
    /// The workload's name, where it is known.
    pub key: Option<WorkloadKey>,
    /// The pods are made by way of RBG's own instances, which no kind of workload here stands for.
    pub instances: Option<Instances>,
    /// What a pod template of the workload lacks of the labels of group and role.
    pub unlabelled: Option<Unlabelled>,
    /// True when the desired replicas stand in a workload or group that is not known: `desired` reads as 0.
    pub desired_is_unknown: bool,
    /// How long a pod must be ready before it counts, in seconds.
    pub min_ready_seconds: u32,
    /// Its own progress deadline is over: it says that it has failed.
    pub is_overdue: bool,
    /// Path of an update strategy of the role's own.
    pub update_strategy: Option<FieldPath>,
    /// Path of what makes the role's pods one after another.
    pub ordered: Option<FieldPath>,
    /// DNS name of the role's first pod within the namespace, where its workload has a governing Service.
    pub first_host: Option<String>,
    /// Labels that the role's pods are known to carry.
    pub labels: BTreeMap<String, String>,
}

/// How RBG's instances of a role are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// With a number each.
    Numbered,
    /// With a random end each.
    Random,
}

/// Annotation of a v1alpha2 role: `<apiVersion>/<kind>` of its workload.
const ROLE_WORKLOAD_TYPE: &str = "rbg.workloads.x-k8s.io/role-workload-type";
/// Annotation of a v1alpha2 role: its instances are numbered, or have random names.
const INSTANCE_PATTERN: &str = "rbg.workloads.x-k8s.io/role-instance-pattern";
/// RBG's own kinds of workload: that of v0.7 and later, which is the default of v1alpha2, and that of v0.6.
const INSTANCE_SETS: &[&str] = &["RoleInstanceSet", "InstanceSet"];

/// Longest name that RBG gives to a workload.
const WORKLOAD_NAME_MAX: usize = 63;

impl RoleWorkload {
    /// The workload that RBG makes for a role: `<group>-<role>`, a StatefulSet in v1alpha1 unless it says otherwise.
    pub(super) fn of_rbg_role(key: &GroupKey, version: &str, role: &api::rbg::Role, at: &FieldPath) -> Self {
        let strategies = [("updateStrategy", &role.update_strategy), ("rolloutStrategy", &role.rollout_strategy)];
        let is_set = |value: &Option<Value>| value.as_ref().is_some_and(|value| !is_empty(value));
        let name: String = format!("{}-{}", key.name, role.name).chars().take(WORKLOAD_NAME_MAX).collect();
        let word = workload_kind(version, role);
        let kind = WorkloadKind::parse(word);
        let instances = INSTANCE_SETS.contains(&word).then(|| instances(role));
        Self {
            first_host: first_host::of_rbg_role(&key.name, &name, kind, instances == Some(Instances::Random), role),
            instances,
            key: kind.map(|kind| WorkloadKey { namespace: key.namespace.to_string(), kind, name }),
            update_strategy: strategies.iter().find(|(_, value)| is_set(value)).map(|(field, _)| at.child(*field)),
            ordered: (role.pod_management_policy.as_deref() == Some("OrderedReady"))
                .then(|| at.child("podManagementPolicy")),
            labels: template_labels(role),
            ..Self::default()
        }
    }

    /// What makes the role's pods, where their names say no ordinal.
    pub fn without_ordinals(&self) -> Option<&'static str> {
        let kind = self.key.as_ref().map(|key| key.kind).filter(|kind| !kind.row().numbered);
        let instances = self.instances.filter(|instances| *instances == Instances::Random);
        kind.map(WorkloadKind::as_str).or(instances.map(|_| "stateless RoleInstanceSet"))
    }

    /// What makes the role's pods, where it has no partition that can be moved. RBG writes that of its own instances itself.
    pub fn without_partition(&self) -> Option<&'static str> {
        let kind = self.key.as_ref().map(|key| key.kind).filter(|kind| kind.row().rollout.is_none());
        kind.map(WorkloadKind::as_str).or(self.instances.map(|_| "RoleInstanceSet"))
    }
}

fn workload_kind<'a>(version: &str, role: &'a api::rbg::Role) -> &'a str {
    if version == "v1alpha1" {
        let kind = role.workload.as_ref().and_then(|workload| workload.get("kind")).and_then(Value::as_str);
        return kind.unwrap_or("StatefulSet");
    }
    let kind = annotation(role, ROLE_WORKLOAD_TYPE).and_then(|kind| kind.rsplit('/').next());
    kind.unwrap_or("RoleInstanceSet")
}

fn instances(role: &api::rbg::Role) -> Instances {
    match annotation(role, INSTANCE_PATTERN) {
        Some("Stateless") => Instances::Random,
        _ => Instances::Numbered,
    }
}

fn annotation<'a>(role: &'a api::rbg::Role, key: &str) -> Option<&'a str> {
    role.annotations.as_ref()?.get(key)?.as_str()
}

fn template_labels(role: &api::rbg::Role) -> BTreeMap<String, String> {
    let labels = role.template.as_ref().and_then(|template| template.pointer("/metadata/labels"));
    let entries = labels.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}
