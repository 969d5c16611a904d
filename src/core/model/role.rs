//! The workload of a role.

use std::collections::BTreeMap;

use serde_json::Value;

use super::engine::TemplateEngine;
use super::hosts::rbg_name;
use super::role_templates::role_templates;
use super::workload::Unlabelled;
use super::workload_object::engines;
use super::{FieldPath, GroupKey, Hosts, WorkloadKey, WorkloadKind, gate_of_template};
use crate::api;
use crate::api::role_coordination::WorkloadRef;
use crate::api::workload::PodTemplate;

/// The workload that creates the pods of a role, limited to the fields that rules read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleWorkload {
    /// `workloadRef` as written, with its path.
    pub reference: Option<(WorkloadRef, FieldPath)>,
    /// The workload's name, if known.
    pub key: Option<WorkloadKey>,
    /// Set if RBG's own instances create the pods, for which there is no `WorkloadKind`.
    pub instances: Option<Instances>,
    /// Labels of group and role that a pod template of the workload lacks.
    pub unlabelled: Option<Unlabelled>,
    /// True when the desired replicas come from an unknown workload or group; `desired` is then 0.
    pub desired_is_unknown: bool,
    /// Seconds that a pod must be ready before it counts.
    pub min_ready_seconds: u32,
    /// True when the workload reports that its progress deadline has passed.
    pub is_overdue: bool,
    /// Path of the role's own update strategy.
    pub update_strategy: Option<FieldPath>,
    /// Path of the field that makes the workload create pods one after another.
    pub ordered: Option<FieldPath>,
    /// DNS names of the role's pods, if its workload has a governing Service.
    pub hosts: Option<Hosts>,
    /// Engines that the pod templates of the workload ask for, as their annotations say.
    pub engines: Vec<String>,
    /// What the pod templates of the workload say of the engine in their pods; of two, the first is that of the leader.
    pub templates: Vec<TemplateEngine>,
    /// The first gate of another controller in its pod templates.
    pub foreign_gate: Option<String>,
    /// Labels that the role's pods are known to carry.
    pub labels: BTreeMap<String, String>,
    /// True when the role says that each of its instances is one pod.
    pub standalone: bool,
}

/// Naming of RBG's instances of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// Each instance has a number.
    Numbered,
    /// Each instance has a random suffix.
    Random,
}

/// Annotation of a v1alpha2 role: `<apiVersion>/<kind>` of its workload.
const ROLE_WORKLOAD_TYPE: &str = "rbg.workloads.x-k8s.io/role-workload-type";
/// Annotation of a v1alpha2 role: whether its instances are numbered or have random names.
const INSTANCE_PATTERN: &str = "rbg.workloads.x-k8s.io/role-instance-pattern";
/// RBG's own kinds of workload: the kind of v0.7 and later, which is the default of v1alpha2, and the kind of v0.6.
const INSTANCE_SETS: &[&str] = &["RoleInstanceSet", "InstanceSet"];

impl RoleWorkload {
    /// Returns the workload that RBG makes for a role: `<group>-<role>`, in v1alpha1 a StatefulSet by default.
    pub(super) fn of_rbg_role(key: &GroupKey, version: &str, role: &api::rbg::Role, at: &FieldPath) -> Self {
        let strategies = [("updateStrategy", &role.update_strategy), ("rolloutStrategy", &role.rollout_strategy)];
        let is_set = |value: &Option<Value>| value.as_ref().is_some_and(|value| !is_empty(value));
        let name = rbg_name(&format!("{}-{}", key.name, role.name));
        let word = workload_kind(version, role);
        let kind = WorkloadKind::parse(word);
        let instances = INSTANCE_SETS.contains(&word).then(|| instances(role));
        let templates = role_templates(role).into_iter();
        let templates: Vec<PodTemplate> = templates.filter_map(|(one, _)| serde_json::from_value(one).ok()).collect();
        Self {
            hosts: Hosts::of_rbg_role(&key.name, &name, kind, instances == Some(Instances::Random), role),
            instances,
            key: kind.map(|kind| WorkloadKey { namespace: key.namespace.to_string(), kind, name }),
            update_strategy: strategies.iter().find(|(_, value)| is_set(value)).map(|(field, _)| at.child(*field)),
            ordered: (role.pod_management_policy.as_deref() == Some("OrderedReady"))
                .then(|| at.child("podManagementPolicy")),
            labels: templates.last().map(|template| template.metadata.labels.clone()).unwrap_or_default(),
            engines: engines(&templates),
            foreign_gate: templates.iter().find_map(gate_of_template),
            templates: templates.iter().map(TemplateEngine::of).collect(),
            standalone: role.standalone_pattern.is_some(),
            ..Self::default()
        }
    }

    /// Returns the kind of the workload if its pods' names have no ordinals.
    pub fn without_ordinals(&self) -> Option<&'static str> {
        let kind = self.key.as_ref().map(|key| key.kind).filter(|kind| !kind.row().numbered);
        let instances = self.instances.filter(|instances| *instances == Instances::Random);
        kind.map(WorkloadKind::as_str).or(instances.map(|_| "stateless RoleInstanceSet"))
    }

    /// Reports whether each replica is one pod, as far as the role itself tells.
    pub fn has_single_pods(&self) -> bool {
        self.standalone || self.key.as_ref().is_some_and(|key| key.kind.row().made_by.is_none())
    }

    /// Returns the kind of the workload if it has no partition to move. RBG itself writes the partition of its instances.
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

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}
