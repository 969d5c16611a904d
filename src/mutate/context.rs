//! A pod, who it is, and what is known of the objects that it names.

use crate::api::Pod;
use crate::api::workload::STATEFUL_SET;
use crate::model::{
    CliquePod, CliqueSet, GangTree, Group, GroupKey, OrdinalStarts, PodIdentity, identify, identify_clique_pod, names,
    revision,
};

/// Who a pod is, and so which objects have to be known before it can be born right.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Its place in a group.
    pub identity: Option<PodIdentity>,
    /// Its place in a Grove set.
    pub place: Option<CliquePod>,
    /// The KAI PodGroup that it names.
    pub pod_group: Option<GroupKey>,
    /// The StatefulSet that made it, whose `spec.ordinals.start` its number is counted from.
    pub stateful_set: Option<String>,
    namespace: String,
}

impl Subject {
    /// Reads a pod. The namespace is the request's, since a pod may leave its own out.
    pub fn of(pod: &Pod, namespace: &str, starts: &impl OrdinalStarts) -> Self {
        Self {
            identity: identify(pod, namespace, starts),
            place: identify_clique_pod(pod),
            pod_group: pod_group_name(pod).map(|name| GroupKey::new(namespace, name)),
            stateful_set: stateful_set_name(pod).map(str::to_owned),
            namespace: namespace.to_owned(),
        }
    }

    /// True for a pod that names nothing we know of: it passes untouched.
    pub fn is_foreign(&self) -> bool {
        self.identity.is_none() && self.place.is_none() && self.pod_group.is_none()
    }

    /// The group that it names.
    pub fn group(&self) -> Option<&GroupKey> {
        self.identity.as_ref().map(|identity| &identity.group)
    }

    /// The role that it names.
    pub(super) fn role(&self) -> Option<&str> {
        self.identity.as_ref()?.role.as_deref()
    }

    /// True when this view of its group would let it be born without a gate.
    pub fn is_free_in(&self, group: &Group) -> bool {
        self.identity.as_ref().is_some_and(|identity| group.never_holds(identity))
    }

    /// True when this view of its group does not know yet with which pods of other roles it is rolled.
    pub fn is_new_in(&self, group: &Group, pod: &Pod) -> bool {
        let lacks = |(role, revision)| group.rolls(role) && group.lacks_cohort(role, revision);
        self.role().zip(revision(&pod.metadata)).is_some_and(lacks)
    }

    /// The Grove set that it names.
    pub fn clique_set(&self) -> Option<GroupKey> {
        self.place.as_ref().map(|place| GroupKey::new(&self.namespace, &place.set))
    }

    /// The ClusterTopology and the layer of it that decide where the pod's batch goes, once its group is known.
    pub fn layer<'a>(&'a self, group: &'a Group) -> Option<(&'a str, &'a str)> {
        group.batchings_of(self.role()?).find(|(_, batching)| batching.topology.is_some())?.1.layer()
    }

    /// Namespace of the request.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// The PodGroup that a pod names, in the pod's own namespace.
fn pod_group_name(pod: &Pod) -> Option<&str> {
    pod.metadata.annotation(names::KAI_POD_GROUP).filter(|name| !name.is_empty())
}

fn stateful_set_name(pod: &Pod) -> Option<&str> {
    pod.metadata.controller().filter(|owner| owner.kind == STATEFUL_SET.kind).map(|owner| &*owner.name)
}

/// What is known of the group that a pod names.
#[derive(Clone, Copy, Debug, Default)]
pub enum GroupLookup<'a> {
    /// It is this one.
    Found(&'a Group),
    /// A live read says that there is none (yet).
    #[default]
    Absent,
}

/// What is known of the layer that a group refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopologyLookup<'a> {
    /// The node label of the layer.
    Found(&'a str),
    /// A live read says that there is no such ClusterTopology, or no such layer in it.
    #[default]
    Missing,
}

/// How pods are mutated, the same for all of them.
#[derive(Clone, Debug)]
pub struct PodSettings {
    /// False switches discovery off, whatever sets and groups say.
    pub discovery: bool,
    /// False where nothing is placed: pods of PodGroups that ask for it are not held.
    pub places: bool,
    /// Pods pass whose role their group does not have, though our own label names it.
    pub frees_unknown_roles: bool,
    /// End of every DNS name.
    pub cluster_domain: String,
    /// A label that says the segment of a pod, beside our own.
    pub segment_label: Option<String>,
    /// A label that says the cohort of a pod, beside our own.
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

/// What is known of the objects that a pod names. An object that could not be read must not be passed off as absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lookups<'a> {
    /// The group.
    pub group: GroupLookup<'a>,
    /// True when the group breaks no rule, and the StatefulSet that counts the pod is known. Otherwise every pod of a
    /// batched role is gated, even one that the group never holds.
    pub is_certain: bool,
    /// The layer that the group refers to; not looked at where it refers to none.
    pub topology: TopologyLookup<'a>,
    /// The Grove set; `None` when a live read says that there is none.
    pub clique_set: Option<&'a CliqueSet>,
    /// The KAI PodGroup; `None` when it is not known.
    pub pod_group: Option<&'a GangTree>,
}

/// A pod in its surroundings: what each step looks at.
#[derive(Clone, Copy)]
pub(super) struct MutationContext<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Who it is.
    pub subject: &'a Subject,
    /// What is known of the objects that it names.
    pub lookups: &'a Lookups<'a>,
    /// How pods are mutated.
    pub settings: &'a PodSettings,
    /// Its role in its group, where both are known.
    pub coordinated: Option<Coordinated<'a>>,
}

/// A pod's role in a known group.
#[derive(Clone, Copy)]
pub(super) struct Coordinated<'a> {
    /// The group.
    pub group: &'a Group,
    /// The role.
    pub role: &'a str,
    /// Index of the pod's replica.
    pub ordinal: Option<u32>,
}

impl<'a> MutationContext<'a> {
    /// Looks at a pod in its surroundings.
    pub fn new(pod: &'a Pod, subject: &'a Subject, lookups: &'a Lookups<'a>, settings: &'a PodSettings) -> Self {
        let coordinated = match (lookups.group, &subject.identity, subject.role()) {
            (GroupLookup::Found(group), Some(identity), Some(role)) => {
                Some(Coordinated { group, role, ordinal: identity.ordinal })
            }
            _ => None,
        };
        // Roles that cannot be read (the group refers to another that is not there) may be this one.
        let known =
            |in_role: &Coordinated<'_>| in_role.group.roles.is_empty() || in_role.group.role(in_role.role).is_some();
        Self { pod, subject, lookups, settings, coordinated: coordinated.filter(known) }
    }

    /// True for a pod that is bound at creation: it can be neither held nor placed.
    pub fn is_bound(&self) -> bool {
        self.pod.has_node()
    }
}
