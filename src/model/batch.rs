//! The batch of a replica, and what is named after it.

use super::{Batching, Coordination, Group, names};

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

impl Group {
    /// The batches of a role's replica, one for each coordination that makes batches of the role. A stored size below 1
    /// makes none.
    pub fn batches_of<'a>(&'a self, role: &'a str, ordinal: u32) -> impl Iterator<Item = Batch<'a>> {
        self.batchings_of(role).filter_map(move |(coordination, batching)| {
            let index = ordinal.checked_div(batching.size(role)?)?;
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

    /// Name of its PodGroup, `<group>-<coordination>-<index>`. It fits a label value, since schedulers label pods with it.
    pub fn pod_group_name(&self) -> String {
        let (group, coordination) = (&self.group.key.name, self.coordination.display_name());
        names::label_value(&format!("{group}-{coordination}-{}", self.index))
    }
}
