//! A pod, its identity, and the objects that it names.

use crate::api::Pod;
use crate::api::workload::STATEFUL_SET;
use crate::model::{
    CliquePod, CliqueSet, GangTree, Group, GroupKey, OrdinalStarts, PodIdentity, identify, identify_clique_pod, names,
    revision,
};

/// The identity of a pod, which tells the objects to be looked up before the pod can be mutated.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Place of the pod in a group.
    pub identity: Option<PodIdentity>,
    /// Place of the pod in a Grove set.
    pub place: Option<CliquePod>,
    /// The KAI PodGroup that the pod names.
    pub pod_group: Option<GroupKey>,
    /// The StatefulSet that made the pod, whose `spec.ordinals.start` offsets its ordinal.
    pub stateful_set: Option<String>,
    namespace: String,
}

impl Subject {
    /// Reads a pod. `namespace` is that of the request, since a pod may omit its own.
    pub fn of(pod: &Pod, namespace: &str, starts: &impl OrdinalStarts) -> Self {
        Self {
            identity: identify(pod, namespace, starts),
            place: identify_clique_pod(pod),
            pod_group: pod_group_name(pod).map(|name| GroupKey::new(namespace, name)),
            stateful_set: stateful_set_name(pod).map(str::to_owned),
            namespace: namespace.to_owned(),
        }
    }

    /// Returns a pod with a known identity.
    pub fn known(identity: Option<PodIdentity>, place: Option<CliquePod>, namespace: &str) -> Self {
        Self { identity, place, namespace: namespace.to_owned(), ..Self::default() }
    }

    /// Reports whether the pod names no known object: it is not mutated.
    pub fn is_foreign(&self) -> bool {
        self.identity.is_none() && self.place.is_none() && self.pod_group.is_none()
    }

    pub fn group(&self) -> Option<&GroupKey> {
        self.identity.as_ref().map(|identity| &identity.group)
    }

    pub(super) fn role(&self) -> Option<&str> {
        self.identity.as_ref()?.role.as_deref()
    }

    /// Reports whether `group` would let the pod be created without a gate.
    pub fn is_free_in(&self, group: &Group) -> bool {
        self.identity.as_ref().is_some_and(|identity| group.never_holds(identity))
    }

    /// Reports whether `group` does not yet know the cohort of the pod's revision.
    pub fn is_new_in(&self, group: &Group, pod: &Pod) -> bool {
        let lacks = |(role, revision)| group.rolls(role) && group.lacks_cohort(role, revision);
        self.role().zip(revision(&pod.metadata)).is_some_and(lacks)
    }

    pub fn clique_set(&self) -> Option<GroupKey> {
        self.place.as_ref().map(|place| GroupKey::new(&self.namespace, &place.set))
    }

    /// Returns the ClusterTopology and its layer that decide the domain of the pod's batch.
    pub fn layer<'a>(&'a self, group: &'a Group) -> Option<(&'a str, &'a str)> {
        group.batchings_of(self.role()?).find(|(_, batching)| batching.topology.is_some())?.1.layer()
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// Returns the PodGroup that a pod names, in the pod's own namespace.
fn pod_group_name(pod: &Pod) -> Option<&str> {
    pod.metadata.annotation(names::KAI_POD_GROUP).filter(|name| !name.is_empty())
}

fn stateful_set_name(pod: &Pod) -> Option<&str> {
    pod.metadata.controller().filter(|owner| owner.kind == STATEFUL_SET.kind).map(|owner| &*owner.name)
}

/// The result of the lookup of a group.
#[derive(Clone, Copy, Debug, Default)]
pub enum GroupLookup<'a> {
    Found(&'a Group),
    /// A live read proves that the group does not exist (yet).
    #[default]
    Absent,
}

/// The result of the lookup of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopologyLookup<'a> {
    /// The node label of the layer.
    Found(&'a str),
    /// A live read proves that the ClusterTopology or its layer does not exist.
    #[default]
    Missing,
}

/// Settings of the mutation, equal for all pods.
#[derive(Clone, Debug)]
pub struct PodSettings {
    /// False disables discovery, whatever sets and groups say.
    pub discovery: bool,
    /// False where nothing is placed: pods of PodGroups that ask for placement are not held.
    pub places: bool,
    /// True lets pods pass whose role their group lacks, though rolegate's own label names it.
    pub frees_unknown_roles: bool,
    /// Suffix of every DNS name.
    pub cluster_domain: String,
    /// A second label for the segment of a pod.
    pub segment_label: Option<String>,
    /// A second label for the cohort of a pod.
    pub cohort_label: Option<String>,
}

impl Default for PodSettings {
    fn default() -> Self {
        Self {
            discovery: true,
            places: true,
            frees_unknown_roles: false,
            cluster_domain: "cluster.local".to_owned(),
            segment_label: None,
            cohort_label: None,
        }
    }
}

/// The objects that a pod names. An unreadable object must not count as absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lookups<'a> {
    pub group: GroupLookup<'a>,
    /// True when the group breaks no rule, and the StatefulSet of the pod's ordinal is known. Otherwise every pod of a
    /// batched role is gated, even one that the group never holds.
    pub is_certain: bool,
    /// The layer that the group refers to; unused where it refers to none.
    pub topology: TopologyLookup<'a>,
    /// The Grove set; `None` when a live read proves that it does not exist.
    pub clique_set: Option<&'a CliqueSet>,
    /// The KAI PodGroup; `None` when it is unknown.
    pub pod_group: Option<&'a GangTree>,
}

/// The input of every step.
#[derive(Clone, Copy)]
pub(super) struct MutationContext<'a> {
    pub pod: &'a Pod,
    pub subject: &'a Subject,
    pub lookups: &'a Lookups<'a>,
    pub settings: &'a PodSettings,
    /// The pod's role in its group, where both are known.
    pub coordinated: Option<Coordinated<'a>>,
}

/// A pod's role in a known group.
#[derive(Clone, Copy)]
pub(super) struct Coordinated<'a> {
    pub group: &'a Group,
    pub role: &'a str,
    /// Index of the pod's replica.
    pub ordinal: Option<u32>,
}

impl<'a> MutationContext<'a> {
    pub fn new(pod: &'a Pod, subject: &'a Subject, lookups: &'a Lookups<'a>, settings: &'a PodSettings) -> Self {
        let coordinated = match (lookups.group, &subject.identity, subject.role()) {
            (GroupLookup::Found(group), Some(identity), Some(role)) => {
                Some(Coordinated { group, role, ordinal: identity.ordinal })
            }
            _ => None,
        };
        // A group without readable roles (it refers to a missing group) may have this role.
        let known =
            |in_role: &Coordinated<'_>| in_role.group.roles.is_empty() || in_role.group.role(in_role.role).is_some();
        Self { pod, subject, lookups, settings, coordinated: coordinated.filter(known) }
    }

    /// Reports whether the pod is bound at creation: it can be neither held nor placed.
    pub fn is_bound(&self) -> bool {
        self.pod.has_node()
    }
}
