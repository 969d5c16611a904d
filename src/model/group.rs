//! A group of roles, whichever object carries it.

use std::fmt;
use std::sync::Arc;

use super::{Batching, Coordination, FieldPath};
use crate::api::status::GroupStatus;
use crate::api::{Meta, ObjectKind, RoleBasedGroup};

/// Names a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// Namespace of the group and of all its pods: a name never reaches into another namespace.
    pub namespace: Arc<str>,
    /// Name of the group.
    pub name: Arc<str>,
}

impl GroupKey {
    /// The group of this name in this namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The object that carries a group's coordination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its unique id.
    pub uid: String,
    /// Its version when it was read: a commit is conditional on it.
    pub resource_version: String,
    /// `metadata.generation`.
    pub generation: Option<i64>,
}

/// A named part of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Name.
    pub name: String,
    /// Path of the entry.
    pub at: FieldPath,
    /// Desired replicas; a negative value reads as 0.
    pub desired: u32,
    /// Replicas as written.
    pub replicas: Option<i64>,
    /// Roles that must be ready before this one's pods are made.
    pub dependencies: Vec<String>,
}

/// A group: what coordinates a set of roles.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub key: GroupKey,
    /// The object it was read from.
    pub carrier: Carrier,
    /// Its roles.
    pub roles: Vec<Role>,
    /// Its coordinations.
    pub coordinations: Vec<Coordination>,
    /// Path of `coordinationRequirements` when `coordination` is set as well.
    pub spelled_twice: Option<FieldPath>,
    /// Status of the carrier.
    pub status: GroupStatus,
    /// True while the carrier is being deleted.
    pub deleting: bool,
}

impl Group {
    /// Reads a RoleBasedGroup of one of the kinds in the seeds' shape.
    pub fn from_rbg(kind: ObjectKind, rbg: &RoleBasedGroup) -> Self {
        let spec_at = FieldPath::new("spec");
        let entries = [
            ("coordination", &rbg.spec.coordination),
            ("coordinationRequirements", &rbg.spec.coordination_requirements),
        ];
        let mut written = entries.into_iter().filter_map(|(field, list)| Some((spec_at.child(field), list.as_ref()?)));
        let (first, second) = (written.next(), written.next());
        let coordinations = first.map(|(at, list)| parse_entries(list, &at)).unwrap_or_default();
        let roles_at = spec_at.child("roles");
        let roles = rbg.spec.roles.iter().enumerate().map(|(index, role)| Role {
            name: role.name.clone(),
            at: roles_at.index(index),
            desired: desired(role.replicas),
            replicas: role.replicas,
            dependencies: role.dependencies.clone(),
        });
        Self {
            key: GroupKey::new(rbg.metadata.namespace(), rbg.metadata.display_name()),
            carrier: Carrier::of(kind, &rbg.metadata),
            roles: roles.collect(),
            coordinations,
            spelled_twice: second.map(|(at, _)| at),
            status: rbg.status.clone(),
            deleting: rbg.metadata.is_deleting(),
        }
    }

    /// The role of this name.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// Coordinations that make batches.
    pub fn batched(&self) -> impl Iterator<Item = (&Coordination, &Batching)> {
        self.coordinations.iter().filter_map(|coordination| Some((coordination, coordination.batching()?)))
    }

    /// Coordinations that make batches of this role, in order.
    pub fn batchings_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = (&'a Coordination, &'a Batching)> {
        self.batched().filter(move |(_, batching)| batching.sizes.contains_key(role))
    }

    /// Replicas of the role in one batch: all its coordinations agree on it, or the group breaks a rule.
    pub fn batch_size(&self, role: &str) -> Option<u32> {
        self.batchings_of(role).find_map(|(_, batching)| batching.size(role))
    }
}

impl Carrier {
    fn of(kind: ObjectKind, meta: &Meta) -> Self {
        Self {
            kind,
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation,
        }
    }
}

fn parse_entries(list: &[crate::api::Coordination], at: &FieldPath) -> Vec<Coordination> {
    list.iter().enumerate().map(|(index, entry)| Coordination::parse(index, entry, at.index(index))).collect()
}

/// Replicas default to 1, as the API server does for every workload.
fn desired(replicas: Option<i64>) -> u32 {
    u32::try_from(replicas.unwrap_or(1).max(0)).unwrap_or(u32::MAX)
}
