//! Grove: the pods of every clique, in every replica of the set and of its scaling groups.

use serde_json::{Value, json};

use super::birth::{Birth, Name, Owner};
use super::number;
use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::{self, ObjectKind};
use crate::model::clique_set::{Clique, ScalingGroup, clique_name};
use crate::model::{CliqueSet, names};

/// Gate that Grove lifts itself.
const GATE: &str = "grove.io/podgang-pending-creation";

/// Returns the pods of a PodCliqueSet.
pub(super) fn of_pod_clique_set(set: &Value) -> Vec<Value> {
    pods(POD_CLIQUE_SET, "grove.io/podcliqueset-replica-index", set)
}

/// Returns the pods of a PodGangSet, the former name of the kind.
pub(super) fn of_pod_gang_set(set: &Value) -> Vec<Value> {
    pods(POD_GANG_SET, "grove.io/podgangset-replica-index", set)
}

/// Paths of the fields that determine the number of pods.
pub(super) const COUNTED: &[&str] =
    &["spec.replicas", "spec.template.cliques.*.spec.replicas", "spec.template.podCliqueScalingGroups.*.replicas"];

/// Returns the number of pods of a PodCliqueSet.
pub(super) fn count_of_pod_clique_set(set: &Value) -> u64 {
    read(POD_CLIQUE_SET, set).map_or(0, |set| count(&set))
}

/// Returns the number of pods of a PodGangSet.
pub(super) fn count_of_pod_gang_set(set: &Value) -> u64 {
    read(POD_GANG_SET, set).map_or(0, |set| count(&set))
}

fn count(set: &CliqueSet) -> u64 {
    let in_copy = set.cliques.iter().fold(0_u64, |sum, clique| {
        let group = clique.group.and_then(|group| set.scaling_groups.get(group));
        let copies = group.map_or(1, |group| u64::from(group.replicas));
        sum.saturating_add(u64::from(clique.replicas).saturating_mul(copies))
    });
    in_copy.saturating_mul(set.replicas.into())
}

fn read(kind: ObjectKind, object: &Value) -> Option<CliqueSet> {
    let read = serde_json::from_value::<api::PodCliqueSet>(object.clone()).ok()?;
    Some(CliqueSet::from_set(kind, &read))
}

fn pods(kind: ObjectKind, replica_label: &'static str, object: &Value) -> Vec<Value> {
    let Some(set) = read(kind, object) else { return Vec::new() };
    let whole = Whole { set: &set, object, replica_label };
    // A set without cliques counts no pods, so its replicas are unlimited.
    let copies = if set.cliques.is_empty() { 0 } else { set.replicas };
    (0..copies).flat_map(|replica| whole.copy(replica)).collect()
}

/// A set and the object that it was read from.
#[derive(Clone, Copy)]
struct Whole<'a> {
    set: &'a CliqueSet,
    object: &'a Value,
    replica_label: &'static str,
}

/// One replica of a scaling group.
#[derive(Clone, Copy)]
struct GroupCopy<'a> {
    group: &'a ScalingGroup,
    position: usize,
    replica: u32,
}

impl<'a> Whole<'a> {
    /// Returns the pods of one replica of the set: cliques without a scaling group, then the scaling groups.
    fn copy(self, replica: u32) -> Vec<Value> {
        let alone = self.set.cliques.iter().enumerate().filter(|(_, clique)| clique.group.is_none());
        let mut pods: Vec<_> = alone.flat_map(|(index, clique)| self.clique(replica, None, index, clique)).collect();
        for (position, group) in self.set.scaling_groups.iter().enumerate() {
            let cliques = self.set.cliques.iter().enumerate();
            let members: Vec<_> = cliques.filter(|(_, clique)| clique.group == Some(position)).collect();
            if members.is_empty() {
                continue;
            }
            for copy in 0..group.replicas {
                let group = GroupCopy { group, position, replica: copy };
                pods.extend(
                    members.iter().flat_map(|(index, clique)| self.clique(replica, Some(group), *index, clique)),
                );
            }
        }
        pods
    }

    fn clique(self, replica: u32, group: Option<GroupCopy<'a>>, index: usize, clique: &'a Clique) -> Vec<Value> {
        let set = &*self.set.key.name;
        let in_group = group.map(|group| (group.group.name.as_str(), group.replica));
        let full_name = clique_name(set, replica, in_group, &clique.name);
        let entry = self.object.pointer(&format!("/spec/template/cliques/{index}")).unwrap_or(&Value::Null);
        let template = json!({
            "metadata": { "labels": entry.get("labels"), "annotations": entry.get("annotations") },
            "spec": entry.pointer("/spec/podSpec"),
        });
        (0..clique.replicas).map(|pod| self.pod(replica, group, &full_name, pod, &template)).collect()
    }

    fn pod(self, replica: u32, group: Option<GroupCopy<'_>>, full_name: &str, index: u32, template: &Value) -> Value {
        let set = &*self.set.key.name;
        let service = format!("{set}-{replica}");
        let component = if group.is_some() { "pcsg-podclique" } else { "pcs-podclique" };
        let mut labels: Vec<(String, String)> = [
            ("app.kubernetes.io/name", full_name.to_owned()),
            ("app.kubernetes.io/managed-by", "grove-operator".to_owned()),
            (names::PART_OF, set.to_owned()),
            ("app.kubernetes.io/component", component.to_owned()),
            (names::GROVE_CLIQUE, full_name.to_owned()),
            (self.replica_label, replica.to_string()),
            (names::GROVE_POD_INDEX, index.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        let mut env = vec![
            variable("GROVE_PCS_NAME", set),
            variable("GROVE_PCS_INDEX", &replica.to_string()),
            variable("GROVE_PCLQ_NAME", full_name),
            variable("GROVE_HEADLESS_SERVICE", &format!("{service}.{}.svc.cluster.local", self.set.key.namespace)),
            from_label("GROVE_PCLQ_POD_INDEX", names::GROVE_POD_INDEX),
        ];
        let mut gang = service.clone();
        if let Some(group) = group {
            let group_name = format!("{service}-{}", group.group.name);
            labels.push((names::GROVE_SCALING_GROUP.to_owned(), group_name.clone()));
            labels.push((names::GROVE_SCALING_GROUP_REPLICA.to_owned(), group.replica.to_string()));
            if let Some(extra) = group.replica.checked_sub(self.minimum(group)) {
                labels.push(("grove.io/base-podgang".to_owned(), gang));
                gang = format!("{group_name}-{extra}");
            }
            env.push(from_label("GROVE_PCSG_NAME", names::GROVE_SCALING_GROUP));
            env.push(variable("GROVE_PCSG_TEMPLATE_NUM_PODS", &self.pods_in(group).to_string()));
            env.push(from_label("GROVE_PCSG_INDEX", names::GROVE_SCALING_GROUP_REPLICA));
        }
        labels.push(("grove.io/podgang".to_owned(), gang));
        let birth = Birth {
            name: Name::Generated(format!("{full_name}-")),
            labels,
            annotations: Vec::new(),
            owner: Owner { api_version: "grove.io/v1alpha1", kind: "PodClique", name: full_name.to_owned(), uid: None },
            env,
            hostname: Some(format!("{full_name}-{index}")),
            subdomain: Some(service),
            gate: Some(GATE),
        };
        birth.of(template, self.object)
    }

    /// Returns the number of replicas of a scaling group in the gang of the set; further replicas have their own gangs.
    fn minimum(self, group: GroupCopy<'_>) -> u32 {
        let at = format!("/spec/template/podCliqueScalingGroups/{}/minAvailable", group.position);
        number(self.object, &at, 1).max(1)
    }

    fn pods_in(self, group: GroupCopy<'_>) -> u32 {
        let members = self.set.cliques.iter().filter(|clique| clique.group == Some(group.position));
        members.map(|clique| clique.replicas).fold(0, u32::saturating_add)
    }
}

fn variable(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

fn from_label(name: &str, label: &str) -> Value {
    let path = format!("metadata.labels['{label}']");
    json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } })
}
