//! The known other objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Options;
use super::coordinated::{WorkloadName, workloads};
use super::need::{Known, Need};
use super::violation::{Cause, Report};
use crate::api::CoordinatedPolicy;
use crate::api::autoscaler::Autoscaler;
use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::disruption_budget::PodDisruptionBudget;
use crate::api::service::Service;
use crate::api::status::GroupStatus;
use crate::model::claims::role_based_group;
use crate::model::{Dialect, FieldPath, GangTree, Group, GroupKey, Layers, Levels, Sources, Workload, WorkloadKey};

/// The known other objects, and the options of the judgement. None of them is trusted to be valid.
///
/// A missing object must be stated with `answer`. A fact that was never looked up is unknown, and the rules that depend on it
/// report that they did not judge.
#[derive(Debug, Default)]
pub struct World {
    pub options: Options,
    /// The objects are manifests: a group or topology that is not among them counts as absent, and lists as complete, since
    /// both cause warnings at most. A workload that is not among them is unknown.
    pub manifests: bool,
    /// Dialect of the installed PodGroup CRD.
    pub kai_crd: Option<Dialect>,
    groups: BTreeMap<GroupKey, Vec<Arc<Group>>>,
    /// Groups by the workloads that they coordinate.
    coordinating: BTreeMap<WorkloadName, Vec<Arc<Group>>>,
    workloads: BTreeMap<WorkloadKey, Arc<Workload>>,
    topologies: BTreeMap<String, Arc<Layers>>,
    budgets: BTreeMap<String, Vec<Arc<PodDisruptionBudget>>>,
    autoscalers: BTreeMap<String, Vec<Arc<Autoscaler>>>,
    services: BTreeMap<GroupKey, Arc<Service>>,
    policies: BTreeMap<GroupKey, Arc<CoordinatedPolicy>>,
    pod_groups: BTreeMap<GroupKey, Arc<GangTree>>,
    levels: BTreeMap<String, Arc<Levels>>,
    roles_with_pods: BTreeSet<(GroupKey, String)>,
    answers: BTreeMap<Need, bool>,
    shortages: BTreeMap<GroupKey, Vec<Shortage>>,
    /// Kind and name of the objects that stand before a RoleCoordination in its file.
    before: BTreeMap<GroupKey, BTreeSet<(String, String)>>,
}

/// A coordination with fewer batches that fit than are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Index in the list of coordinations.
    pub coordination: usize,
    /// Number of batches that fit.
    pub fits: u32,
    /// Number of wanted batches that are not bound yet.
    pub of: u32,
    /// Why the next batch does not fit.
    pub why: String,
    /// Whether the pods on the nodes were not counted: not even so many may fit.
    pub on_empty_nodes: bool,
}

impl World {
    /// Returns the world of manifests: files that will be applied together.
    pub fn of_manifests(options: Options) -> Self {
        Self { options, manifests: true, ..Self::default() }
    }

    /// Answers a need: whether the object exists, or the fact is true. Existing objects are added separately.
    pub fn answer(&mut self, need: Need, there: bool) {
        self.answers.insert(need, there);
    }

    pub fn is_answered(&self, need: &Need) -> bool {
        self.known(need) != Known::Unknown
    }

    /// Adds a group of any carrier. Several may claim the same key.
    pub fn add_group(&mut self, group: impl Into<Arc<Group>>) {
        let group = group.into();
        for workload in workloads(&group).into_keys() {
            self.coordinating.entry(workload).or_default().push(Arc::clone(&group));
        }
        self.groups.entry(group.key.clone()).or_default().push(group);
    }

    pub fn add_workload(&mut self, workload: impl Into<Arc<Workload>>) {
        let workload = workload.into();
        self.workloads.insert(workload.key.clone(), workload);
    }

    /// Adds a ClusterTopology; of two with one name, that of the first kind counts.
    pub fn add_topology(&mut self, topology: impl Into<Arc<Layers>>) {
        let topology = topology.into();
        let rank = |topology: &Layers| CLUSTER_TOPOLOGIES.iter().position(|kind| *kind == topology.kind);
        let present = self.topologies.entry(topology.name.clone()).or_insert_with(|| Arc::clone(&topology));
        if rank(&topology) <= rank(present) {
            *present = topology;
        }
    }

    pub fn add_budget(&mut self, budget: impl Into<Arc<PodDisruptionBudget>>) {
        let budget = budget.into();
        self.budgets.entry(budget.metadata.namespace().to_owned()).or_default().push(budget);
    }

    pub fn add_autoscaler(&mut self, autoscaler: impl Into<Arc<Autoscaler>>) {
        let autoscaler = autoscaler.into();
        self.autoscalers.entry(autoscaler.metadata.namespace().to_owned()).or_default().push(autoscaler);
    }

    pub fn add_service(&mut self, service: impl Into<Arc<Service>>) {
        let service = service.into();
        let key = GroupKey::new(service.metadata.namespace(), service.metadata.display_name());
        self.services.insert(key, service);
    }

    pub fn service(&self, key: &GroupKey) -> Known<&Service> {
        self.or_absent(self.services.get(key).map(Arc::as_ref), || Need::Service(key.clone()))
    }

    /// Returns the known HorizontalPodAutoscalers of a namespace.
    pub fn autoscalers_in(&self, namespace: &str) -> impl Iterator<Item = &Autoscaler> {
        self.autoscalers.get(namespace).into_iter().flatten().map(Arc::as_ref)
    }

    pub fn add_policy(&mut self, policy: impl Into<Arc<CoordinatedPolicy>>) {
        let policy = policy.into();
        let key = GroupKey::new(policy.metadata.namespace(), policy.metadata.display_name());
        self.policies.insert(key, policy);
    }

    pub fn add_pod_group(&mut self, tree: impl Into<Arc<GangTree>>) {
        let tree = tree.into();
        self.pod_groups.insert(tree.key.clone(), tree);
    }

    /// Adds the levels of the KAI Topology with this name.
    pub fn add_levels(&mut self, topology: impl Into<String>, levels: impl Into<Arc<Levels>>) {
        self.levels.insert(topology.into(), levels.into());
    }

    /// Adds the shortages of a group.
    pub fn add_shortages(&mut self, group: GroupKey, shortages: Vec<Shortage>) {
        self.shortages.insert(group, shortages);
    }

    /// Adds the kind and name of an object that stands before the RoleCoordination of this name, in one file.
    pub fn add_before(&mut self, coordination: GroupKey, (kind, name): (&str, &str)) {
        self.before.entry(coordination).or_default().insert((kind.to_owned(), name.to_owned()));
    }

    /// Reports whether an object stands before the RoleCoordination of this name, in one file.
    pub(super) fn is_before(&self, coordination: &GroupKey, (kind, name): (&str, &str)) -> bool {
        let before = self.before.get(coordination);
        before.is_some_and(|before| before.contains(&(kind.to_owned(), name.to_owned())))
    }

    /// Returns the shortages of a group, as far as checked.
    pub fn shortages(&self, group: &GroupKey) -> &[Shortage] {
        self.shortages.get(group).map(Vec::as_slice).unwrap_or_default()
    }

    /// Records that a role has pods.
    pub fn add_pod(&mut self, group: GroupKey, role: impl Into<String>) {
        self.roles_with_pods.insert((group, role.into()));
    }

    /// Returns the RoleBasedGroup of this name.
    pub fn role_based_group(&self, key: &GroupKey) -> Known<&Group> {
        let found = role_based_group(self.groups.get(key).into_iter().flatten()).map(Arc::as_ref);
        self.or_absent(found, || Need::RoleBasedGroup(key.clone()))
    }

    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values().flatten().map(Arc::as_ref)
    }

    /// Returns the group as each object with its name carries it.
    pub(super) fn carriers(&self, key: &GroupKey) -> impl Iterator<Item = &Group> {
        self.groups.get(key).into_iter().flatten().map(Arc::as_ref)
    }

    /// Returns the groups that coordinate a workload of this name.
    pub(super) fn coordinating(&self, workload: &WorkloadName) -> impl Iterator<Item = &Group> {
        self.coordinating.get(workload).into_iter().flatten().map(Arc::as_ref)
    }

    pub fn workload(&self, key: &WorkloadKey) -> Known<&Workload> {
        self.or_absent(self.workloads.get(key).map(Arc::as_ref), || Need::Workload(key.clone()))
    }

    pub fn topology(&self, name: &str) -> Known<&Layers> {
        self.or_absent(self.topologies.get(name).map(Arc::as_ref), || Need::ClusterTopology(name.to_owned()))
    }

    /// Returns the known PodDisruptionBudgets of a namespace.
    pub fn budgets_in(&self, namespace: &str) -> impl Iterator<Item = &PodDisruptionBudget> {
        self.budgets.get(namespace).into_iter().flatten().map(Arc::as_ref)
    }

    /// Returns the node label of a layer of a ClusterTopology.
    pub fn layer_key(&self, topology: &str, layer: &str) -> Option<String> {
        Some(self.topology(topology).present()?.layer(layer)?.key)
    }

    /// Returns the CoordinatedPolicy that RBG applies to the group of this name.
    pub fn policy(&self, key: &GroupKey) -> Known<&CoordinatedPolicy> {
        self.or_absent(self.policies.get(key).map(Arc::as_ref), || Need::CoordinatedPolicy(key.clone()))
    }

    pub fn pod_group(&self, key: &GroupKey) -> Known<&GangTree> {
        self.or_absent(self.pod_groups.get(key).map(Arc::as_ref), || Need::PodGroup(key.clone()))
    }

    /// Returns the levels of a topology: a ClusterTopology, else a Topology of KAI.
    pub fn levels(&self, topology: &str) -> Known<Levels> {
        let layers = || self.topologies.get(topology).map(|layers| Levels::from_layers(layers));
        let found = layers().or_else(|| self.levels.get(topology).map(|levels| (**levels).clone()));
        self.or_absent(found, || Need::KaiTopology(topology.to_owned()))
    }

    pub fn has_pods(&self, group: &GroupKey, role: &str) -> Known<()> {
        self.known(&Need::Pods { group: group.clone(), role: role.to_owned() })
    }

    /// Returns the answer to a need, without the object.
    pub fn known(&self, need: &Need) -> Known<()> {
        let there = match need {
            Need::RoleBasedGroup(key) => self.role_based_group(key).present().is_some(),
            Need::Workload(key) => self.workloads.contains_key(key),
            Need::ClusterTopology(name) => self.topologies.contains_key(name),
            Need::CoordinatedPolicy(key) => self.policies.contains_key(key),
            Need::PodGroup(key) => self.pod_groups.contains_key(key),
            Need::Service(key) => self.services.contains_key(key),
            Need::KaiTopology(name) => self.levels.contains_key(name),
            Need::Pods { group, role } => self.roles_with_pods.contains(&(group.clone(), role.clone())),
            Need::Groups { .. }
            | Need::TopologyReferrers(_)
            | Need::DisruptionBudgets { .. }
            | Need::Autoscalers { .. } => self.manifests,
            Need::Served(_)
            | Need::ClusterScoped(_)
            | Need::MayCreate { .. }
            | Need::MayDeletePods { .. }
            | Need::MayGet { .. }
            | Need::MayScale(_) => false,
        };
        if there { Known::Present(()) } else { self.answered(need) }
    }

    /// Reports that the author has no right to what rolegate would do for a field: rolegate lends no rights. `need` is the
    /// question for the right, `detail` the fault without it.
    pub(super) fn right(&self, need: &Need, (subject, path): (&str, FieldPath), detail: String, report: &mut Report) {
        match self.known(need) {
            Known::Present(()) => {}
            Known::Absent => report.error(subject, path, Cause::NoRight, None, detail),
            Known::Unknown => report.not_judged(subject, path, need),
        }
    }

    /// Reports that the author may not delete pods: `what` is set, and `why` rolegate deletes some.
    pub(super) fn right_to_delete(
        &self,
        group: &Group,
        field: (&str, FieldPath),
        (what, why): (&str, &str),
        report: &mut Report,
    ) {
        let namespace = &*group.key.namespace;
        let need = Need::MayDeletePods { namespace: namespace.to_owned() };
        let detail = format!("whoever sets {what} must be allowed to delete pods in namespace {namespace:?}{why}");
        self.right(&need, field, detail, report);
    }

    fn or_absent<T>(&self, found: Option<T>, need: impl FnOnce() -> Need) -> Known<T> {
        match found {
            Some(found) => Known::Present(found),
            None if self.answered(&need()) == Known::Absent => Known::Absent,
            None => Known::Unknown,
        }
    }

    fn answered(&self, need: &Need) -> Known<()> {
        let complete = matches!(
            need,
            Need::RoleBasedGroup(_)
                | Need::ClusterTopology(_)
                | Need::CoordinatedPolicy(_)
                | Need::PodGroup(_)
                | Need::KaiTopology(_)
        );
        match self.answers.get(need) {
            Some(true) => Known::Present(()),
            Some(false) => Known::Absent,
            None if self.manifests && complete => Known::Absent,
            None => Known::Unknown,
        }
    }
}

impl Sources for World {
    fn role_based_group(&self, key: &GroupKey) -> Option<&Group> {
        self.role_based_group(key).present()
    }

    fn workload(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.workload(key).present()
    }

    /// For manifests, scaling counts as allowed.
    fn may_scale(&self, _: &GroupStatus) -> bool {
        self.manifests || self.options.allowed.scale
    }
}
