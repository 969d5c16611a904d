//! Batches by number: which replicas are in one, how many there are, and what they are called.

use std::ops::Range;

use super::{Batching, Coordination, Group, GroupKey, PodGroupPolicy, names};

impl Batching {
    /// The batch of a role's replica; `None` for a role without batches.
    pub fn batch_of(&self, role: &str, ordinal: u32) -> Option<u32> {
        ordinal.checked_div(self.size(role)?)
    }

    /// The ordinals of a role in a batch, of so many desired replicas; empty once the role has run out, and for a role
    /// without batches.
    pub fn ordinals(&self, role: &str, batch: u32, desired: u32) -> Range<u32> {
        let size = self.size(role).unwrap_or(0);
        let from = batch.saturating_mul(size).min(desired);
        from..from.saturating_add(size).min(desired)
    }

    /// How many batches the replicas of a role make.
    pub fn batches_in(&self, role: &str, replicas: u32) -> u32 {
        self.size(role).map_or(0, |size| replicas.div_ceil(size))
    }

    /// How many batches there are: those of the role that has most. `replicas` says how many a role has, where it is
    /// known.
    pub fn total(&self, replicas: impl Fn(&str) -> Option<u32>) -> u32 {
        self.sizes.keys().filter_map(|role| Some(self.batches_in(role, replicas(role)?))).max().unwrap_or(0)
    }

    /// What people call a batch, counted from 1: `segment 3`.
    pub fn batch_name(&self, batch: u32) -> String {
        format!("{} {}", self.kind.word(), batch + 1)
    }

    /// The same with the label by which its pods are selected, which counts from 0: `segment 3 (rolegate.dev/segment=2)`.
    pub fn labelled_name(&self, batch: u32) -> String {
        format!("{} ({}={batch})", self.batch_name(batch), names::SEGMENT)
    }

    /// The same in words: `segment 3 is rolegate.dev/segment=2`.
    pub fn label_of(&self, batch: u32) -> String {
        format!("{} is {}={batch}", self.batch_name(batch), names::SEGMENT)
    }
}

/// A batch that a replica belongs to, in one coordination.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The group.
    pub group: &'a Group,
    /// The coordination that makes the batch.
    pub coordination: &'a Coordination,
    /// How it does.
    pub batching: &'a Batching,
    /// Which one, from 0.
    pub index: u32,
}

/// The labels of a replica's pods that say where it is in batches of this size.
pub fn place_labels(size: u32, ordinal: u32) -> [(&'static str, String); 2] {
    let segment = ordinal.checked_div(size).unwrap_or_default();
    [(names::KEP75_SUBGROUP_SIZE, size.to_string()), (names::SEGMENT, segment.to_string())]
}

impl Group {
    /// The batches of a role's replica, one for each coordination that makes batches of the role. A stored size below 1
    /// makes none.
    pub fn batches_of<'a>(&'a self, role: &'a str, ordinal: u32) -> impl Iterator<Item = Batch<'a>> {
        self.batchings_of(role).filter_map(move |(coordination, batching)| {
            let index = batching.batch_of(role, ordinal)?;
            Some(Batch { group: self, coordination, batching, index })
        })
    }

    /// The batch of a replica that shares a domain: a role is in at most one such coordination, or the group breaks a rule.
    pub fn batch_with_topology<'a>(&'a self, role: &'a str, ordinal: u32) -> Option<Batch<'a>> {
        self.batches_of(role, ordinal).find(|batch| batch.batching.topology.is_some())
    }
}

impl Batch<'_> {
    /// `<coordination>-<index>` as a label value (KEP-75, deploy-topology-coordination-name). Two groups may use one name.
    pub fn label(&self) -> String {
        names::label_value(&format!("{}-{}", self.coordination.display_name(), self.index))
    }

    /// Name of its PodGroup, `<group>-<coordination>-<index>`, for KAI `<namespace>.<group>-<coordination>-<index>`: many of
    /// its versions take PodGroups of one name in two namespaces for one (kai-scheduler/KAI-Scheduler#2095), and a namespace
    /// has no dot. It fits a label value, since schedulers label pods with it.
    pub fn pod_group_name(&self) -> String {
        let (GroupKey { namespace, name }, coordination) = (&self.group.key, self.coordination.display_name());
        let name = format!("{name}-{coordination}-{}", self.index);
        match &self.batching.pod_group {
            Some((PodGroupPolicy::Kai { .. }, _)) => names::label_value(&format!("{namespace}.{name}")),
            _ => names::label_value(&name),
        }
    }
}
