//! The way of reading what rules look up: one by one for a few objects, else by one list of each kind, so that the number of
//! requests is bounded.

use std::collections::BTreeMap;
use std::fmt;

use crate::api::ObjectKind;
use crate::api::autoscaler::AUTOSCALER;
use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::coordinated_policy::COORDINATED_POLICY;
use crate::api::disruption_budget::POD_DISRUPTION_BUDGET;
use crate::api::pod_group::{POD_GROUP, TOPOLOGY};
use crate::api::service::SERVICE;
use crate::cluster::watch::sources::{CARRIERS, ROLE_BASED_GROUPS};
use crate::model::{AwaitedKind, GroupKey};
use crate::rules::Need;

/// Largest number of objects of one kind that are read one by one; more are listed.
const FEW: usize = 4;
/// Largest number of objects of an unlisted kind that are read one by one; more stay unknown.
const MOST: usize = 16;
/// Kinds with the right to get and not to list.
const NOT_LISTED: &[ObjectKind] = &[COORDINATED_POLICY, SERVICE, TOPOLOGY];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedRead {
    /// All needs that the read answers.
    pub(super) needs: Vec<Need>,
    pub(super) way: Way,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Reads the first object of the one name among the kinds.
    One(Place),
    /// Reads many names from a list of each kind.
    Many(Place),
    /// Lists every object of the kinds.
    All(Place),
    /// Reads which roles of a group have pods.
    Pods(GroupKey),
    /// Reads whether the API server serves a kind.
    Served(ObjectKind),
    /// Reads whether a kind that is watched has namespaces.
    Scope(AwaitedKind),
    /// Asks for the rights of the author.
    Rights,
    /// Too many reads: none is made.
    Not,
}

/// Kinds and namespace of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) kinds: &'static [ObjectKind],
    pub(super) namespace: Option<String>,
}

impl fmt::Display for PlannedRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.needs.first() else { return Ok(()) };
        match self.needs.len() {
            1 => first.fmt(f),
            more => write!(f, "{first} and {} more", more - 1),
        }
    }
}

/// Returns the reads for these needs. Their number does not grow with the number of needs of one place.
pub(super) fn reads(needs: Vec<Need>) -> Vec<PlannedRead> {
    let (mut reads, mut by_place, mut by_group) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for need in needs {
        match way(&need) {
            Way::One(place) => by_place.entry(place).or_insert_with(Vec::new).push(need),
            Way::Pods(group) => by_group.entry(group).or_insert_with(Vec::new).push(need),
            way => reads.push(PlannedRead { needs: vec![need], way }),
        }
    }
    for (place, mut needs) in by_place {
        let is_listed = place.kinds.iter().all(|kind| !NOT_LISTED.contains(kind));
        if needs.len() > FEW && is_listed {
            reads.push(PlannedRead { needs, way: Way::Many(place) });
            continue;
        }
        let rest = needs.split_off(MOST.min(needs.len()));
        reads.extend(needs.into_iter().map(|need| PlannedRead { needs: vec![need], way: Way::One(place.clone()) }));
        reads.extend((!rest.is_empty()).then_some(PlannedRead { needs: rest, way: Way::Not }));
    }
    reads.extend(by_group.into_iter().map(|(group, needs)| PlannedRead { needs, way: Way::Pods(group) }));
    reads
}

/// Returns how one need is read by itself.
fn way(need: &Need) -> Way {
    let place = |kinds, namespace: Option<&str>| Place { kinds, namespace: namespace.map(str::to_owned) };
    let one = |kinds, namespace| Way::One(place(kinds, namespace));
    match need {
        Need::RoleBasedGroup(key) => one(ROLE_BASED_GROUPS, Some(&key.namespace)),
        Need::Workload(key) => one(std::slice::from_ref(&key.kind.row().object), Some(&key.namespace)),
        Need::ClusterTopology(_) => one(CLUSTER_TOPOLOGIES, None),
        Need::CoordinatedPolicy(key) => one(&[COORDINATED_POLICY], Some(&key.namespace)),
        Need::PodGroup(key) => one(&[POD_GROUP], Some(&key.namespace)),
        Need::Service(key) => one(&[SERVICE], Some(&key.namespace)),
        Need::KaiTopology(_) => one(&[TOPOLOGY], None),
        Need::Groups { namespace } => Way::All(place(CARRIERS, Some(namespace))),
        Need::TopologyReferrers(_) => Way::All(place(CARRIERS, None)),
        Need::DisruptionBudgets { namespace } => Way::All(place(&[POD_DISRUPTION_BUDGET], Some(namespace))),
        Need::Autoscalers { namespace } => Way::All(place(&[AUTOSCALER], Some(namespace))),
        Need::Pods { group, .. } => Way::Pods(group.clone()),
        Need::Served(kind) => Way::Served(*kind),
        Need::ClusterScoped(kind) => Way::Scope(kind.clone()),
        Need::MayCreate { .. } | Need::MayDeletePods { .. } | Need::MayGet { .. } | Need::MayScale(_) => Way::Rights,
    }
}

/// Returns the object name in a need; `None` for a need of several objects.
pub(super) fn name_in(need: &Need) -> Option<&str> {
    match need {
        Need::RoleBasedGroup(key) | Need::CoordinatedPolicy(key) | Need::PodGroup(key) | Need::Service(key) => {
            Some(&key.name)
        }
        Need::Workload(key) => Some(&key.name),
        Need::ClusterTopology(name) | Need::KaiTopology(name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{WorkloadKey, WorkloadKind};

    fn workloads(kind: WorkloadKind, count: usize) -> impl Iterator<Item = Need> {
        let key = move |number| WorkloadKey { namespace: "ns".to_owned(), kind, name: format!("w-{number}") };
        (0..count).map(move |number| Need::Workload(key(number)))
    }

    /// Returns the number of reads, and of the needs that they answer.
    fn count(needs: impl IntoIterator<Item = Need>) -> (usize, usize) {
        let reads = reads(needs.into_iter().collect());
        (reads.len(), reads.iter().filter(|read| read.way != Way::Not).map(|read| read.needs.len()).sum())
    }

    #[test]
    fn few_are_read_each_by_itself_and_many_by_one_list_of_their_kind() {
        assert_eq!(count(workloads(WorkloadKind::StatefulSet, 3)), (3, 3));
        let sets = workloads(WorkloadKind::StatefulSet, 1000).chain(workloads(WorkloadKind::Deployment, 500));
        assert_eq!(count(sets.chain([Need::Groups { namespace: "ns".to_owned() }])), (3, 1501));
        assert_eq!(count((0..300).map(|number| Need::ClusterTopology(format!("t-{number}")))), (1, 300));
        let pods = |role| Need::Pods { group: GroupKey::new("ns", "pd"), role: format!("r-{role}") };
        assert_eq!(count((0..1000).map(pods)), (1, 1000));
    }

    #[test]
    fn what_may_not_be_listed_is_read_up_to_a_number() {
        let levels = |count| (0..count).map(|number| Need::KaiTopology(format!("t-{number}")));
        assert_eq!(count(levels(5)), (5, 5));
        assert_eq!(count(levels(10_000)), (MOST + 1, MOST));
    }
}
