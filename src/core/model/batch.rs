//! Batches by number: their replicas, their count and their names.

use std::ops::Range;

use super::{Batching, Coordination, Group, GroupKey, MemberKey, Members, PodGroupPolicy, names};

impl Batching {
    /// Returns the batch of a role's replica; `None` for a role without batches.
    pub fn batch_of(&self, role: &str, ordinal: u32) -> Option<u32> {
        ordinal.checked_div(self.size(role)?)
    }

    /// Returns the ordinals of a role in a batch; empty beyond the desired replicas and for a role without batches.
    pub fn ordinals(&self, role: &str, batch: u32, desired: u32) -> Range<u32> {
        let size = self.size(role).unwrap_or(0);
        let from = batch.saturating_mul(size).min(desired);
        from..from.saturating_add(size).min(desired)
    }

    /// Returns the number of batches that the replicas of a role make.
    pub fn batches_in(&self, role: &str, replicas: u32) -> u32 {
        self.size(role).map_or(0, |size| replicas.div_ceil(size))
    }

    /// Returns the number of batches, which is that of the role with the most. `replicas` returns the replicas of a role, if
    /// known.
    pub fn total(&self, replicas: impl Fn(&str) -> Option<u32>) -> u32 {
        self.sizes.keys().filter_map(|role| Some(self.batches_in(role, replicas(role)?))).max().unwrap_or(0)
    }

    /// Returns the name of a batch in messages, counted from 1: `segment 3`.
    pub fn batch_name(&self, batch: u32) -> String {
        format!("{} {}", self.kind.word(), batch + 1)
    }

    /// Returns the name with the label that selects the pods, counted from 0: `segment 3 (rolegate.dev/segment=2)`.
    pub fn labelled_name(&self, batch: u32) -> String {
        format!("{} ({}={batch})", self.batch_name(batch), names::SEGMENT)
    }

    /// Returns name and label as a phrase: `segment 3 is rolegate.dev/segment=2`.
    pub fn label_of(&self, batch: u32) -> String {
        format!("{} is {}={batch}", self.batch_name(batch), names::SEGMENT)
    }
}

/// A batch that a replica belongs to, in one coordination.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub group: &'a Group,
    pub coordination: &'a Coordination,
    pub batching: &'a Batching,
    /// Number of the batch, from 0.
    pub index: u32,
}

/// Returns the labels that tell the place of a replica's pods in batches of this size.
pub fn place_labels(size: u32, ordinal: u32) -> [(&'static str, String); 2] {
    let segment = ordinal.checked_div(size).unwrap_or_default();
    [(names::KEP75_SUBGROUP_SIZE, size.to_string()), (names::SEGMENT, segment.to_string())]
}

impl Group {
    /// Returns the batches of a role's replica, one for each coordination that makes batches of the role. A stored size below 1
    /// makes none.
    pub fn batches_of<'a>(&'a self, role: &'a str, ordinal: u32) -> impl Iterator<Item = Batch<'a>> {
        self.batchings_of(role).filter_map(move |(coordination, batching)| {
            let index = batching.batch_of(role, ordinal)?;
            Some(Batch { group: self, coordination, batching, index })
        })
    }

    /// Returns the replica's batch that shares a domain; in a valid group, a role has at most one such coordination.
    pub fn batch_with_topology<'a>(&'a self, role: &'a str, ordinal: u32) -> Option<Batch<'a>> {
        self.batches_of(role, ordinal).find(|batch| batch.batching.topology.is_some())
    }
}

impl Batch<'_> {
    /// Returns `<coordination>-<index>` as a label value (KEP-75, deploy-topology-coordination-name). Two groups may have the
    /// same.
    pub fn label(&self) -> String {
        names::label_value(&format!("{}-{}", self.coordination.display_name(), self.index))
    }

    /// Returns the name of a PodGroup of the batch: `<group>-<coordination>-<batch>`, for one role of it with `.<role>`, and for
    /// one replica `<group>-<coordination>.<role>.<ordinal>`, whatever its batch. Names of coordinations and roles have no
    /// dots, so that no two levels share a name. KAI gets it as `<namespace>.<name>`: many versions of KAI confuse PodGroups of
    /// one name in two namespaces (kai-scheduler/KAI-Scheduler#2095), and a namespace has no dot. The name fits a label value,
    /// since schedulers label pods with it.
    pub fn pod_group_name(&self, members: Members<'_>, key: MemberKey) -> String {
        let (GroupKey { namespace, name }, coordination) = (&self.group.key, self.coordination.display_name());
        let name = match members {
            Members::Batch => format!("{name}-{coordination}-{}", self.index),
            Members::Role(role) => format!("{name}-{coordination}-{}.{role}", self.index),
            Members::Replica { role, ordinal } => format!("{name}-{coordination}.{role}.{ordinal}"),
        };
        if key == MemberKey::Annotation(names::KAI_POD_GROUP) {
            names::label_value(&format!("{namespace}.{name}"))
        } else {
            names::label_value(&name)
        }
    }
}

/// The PodGroup of a pod, by the policy of a coordination.
#[derive(Clone, Debug)]
pub struct PodGroupOf<'a> {
    pub batch: Batch<'a>,
    pub members: Members<'a>,
    pub policy: &'a PodGroupPolicy,
    /// The label or annotation in which the pod names it.
    pub key: MemberKey,
    pub name: String,
}

impl PodGroupOf<'_> {
    /// Returns the words for its pods in messages: `step 2`, `role "decode" of step 2`, `replica 3 of role "decode"`.
    pub fn words(&self) -> String {
        let batch = self.batch.batching.batch_name(self.batch.index);
        match self.members {
            Members::Batch => batch,
            Members::Role(role) => format!("role {role:?} of {batch}"),
            Members::Replica { role, ordinal } => format!("replica {ordinal} of role {role:?}"),
        }
    }
}

impl Group {
    /// Returns the PodGroup of the pods of a replica; `None` without a policy, with an unknown one, and for a replica that
    /// needs none.
    pub fn pod_group_of<'a>(&'a self, role: &'a str, ordinal: u32, replica_size: u32) -> Option<PodGroupOf<'a>> {
        // Few groups have a policy.
        let mut gangs = self.batched().filter_map(|(of, batching)| Some((of, batching, batching.gangs.as_ref()?)));
        gangs.find_map(|(coordination, batching, gangs)| {
            let batch = Batch { group: self, coordination, batching, index: batching.batch_of(role, ordinal)? };
            let (policy, key) = (&gangs.policy, gangs.policy.member_key()?);
            let members = gangs.level.members(role, ordinal, replica_size)?;
            Some(PodGroupOf { batch, members, policy, key, name: batch.pod_group_name(members, key) })
        })
    }
}
