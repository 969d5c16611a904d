//! A group of roles, read from any object that carries it.

use std::collections::BTreeMap;

use super::coordination::BELONGS_TO_BATCHES;
use super::engine::{EngineFault, read_settings};
use super::fault::{Cause, Fault, Reader};
use super::moment::Moment;
use super::pod_groups::PodGroupPolicy;
use super::role::RoleWorkload;
use super::workload::desired;
use super::{Batching, Coordination, Elastic, Engine, FieldPath, GroupKey, Workload, WorkloadKey, WorkloadKind, names};
use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2};
use crate::api::role_coordination::{CoordinatedRole, ROLE_COORDINATION};
use crate::api::status::GroupStatus;
use crate::api::{Meta, ObjectKind, RoleBasedGroup, RoleCoordination};

/// Kinds of objects that carry groups.
pub const CARRIERS: &[ObjectKind] =
    &[ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2, ROLE_COORDINATION];

/// Other objects that define the desired replicas of a RoleCoordination.
pub trait Sources {
    /// Returns the RoleBasedGroup of this name, of any served version.
    fn role_based_group(&self, key: &GroupKey) -> Option<&Group>;
    fn workload(&self, key: &WorkloadKey) -> Option<&Workload>;
    /// Reports whether the workloads of a group with this status are scaled; true by default, for previews.
    fn may_scale(&self, _: &GroupStatus) -> bool {
        true
    }
}

/// Sources without any objects.
impl Sources for () {
    fn role_based_group(&self, _: &GroupKey) -> Option<&Group> {
        None
    }

    fn workload(&self, _: &WorkloadKey) -> Option<&Workload> {
        None
    }
}

/// The object that carries a group's coordination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    pub kind: ObjectKind,
    /// Name of the object; the group has another name if the object refers to the roles of another object.
    pub name: String,
    /// Creation time, RFC 3339; empty while the object is being created.
    pub created: String,
    pub uid: String,
    /// Resource version that was read; commits are conditional on it.
    pub resource_version: String,
    pub generation: Option<i64>,
    /// Time at which a person resumed the recoveries that wait for one.
    pub resumed: Option<Moment>,
    /// Time at which a person ended the pauses of its rollouts.
    pub rollout_resumed: Option<Moment>,
    /// Time at which a person asked for its rollouts to go back.
    pub rolled_back: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    /// Path of the entry.
    pub at: FieldPath,
    /// Desired replicas; a negative number counts as 0.
    pub desired: u32,
    /// `replicas` as written.
    pub replicas: Option<i64>,
    /// Roles that must be ready before the pods of this role are created.
    pub dependencies: Vec<String>,
    /// Engine in its pods, or the faults of its settings.
    pub engine: Option<Result<Engine, Vec<EngineFault>>>,
    pub workload: RoleWorkload,
}

/// The RoleBasedGroup that a RoleCoordination refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub name: String,
    /// Path of the reference.
    pub at: FieldPath,
    /// False when the RoleBasedGroup is not known; the group then has no roles.
    pub found: bool,
    /// True when the RoleBasedGroup names this RoleCoordination in its annotation.
    pub annotated: bool,
}

/// A group: roles and the coordinations between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub key: GroupKey,
    /// Object that the group was read from.
    pub carrier: Carrier,
    pub roles: Vec<Role>,
    pub coordinations: Vec<Coordination>,
    /// What could not be read.
    pub faults: Vec<Fault>,
    /// Reference to the RoleBasedGroup whose roles these are.
    pub reference: Option<Reference>,
    /// True when the carrier itself lists the roles.
    pub has_own_roles: bool,
    /// Path of the field that makes one gang of the whole group.
    pub gang: Option<FieldPath>,
    /// Path of the annotation `rolegate.dev/discovery-scope`, which has no effect.
    pub misplaced_scope: Option<FieldPath>,
    /// True when the pods of the group find each other by environment variables.
    pub discovery: bool,
    /// RoleCoordination that the carrier's annotation names.
    pub coordinated_by: Option<String>,
    /// Wanted number of segments, if set.
    pub elastic: Option<Elastic>,
    pub status: GroupStatus,
    pub deleting: bool,
    /// Index in `roles` by name; of two roles with one name, the first.
    positions: BTreeMap<String, usize>,
}

impl Group {
    /// Reads a RoleBasedGroup of any of its kinds.
    pub fn from_rbg(kind: ObjectKind, rbg: &RoleBasedGroup) -> Self {
        let spec_at = FieldPath::new("spec");
        let entries = [
            ("coordination", &rbg.spec.coordination),
            ("coordinationRequirements", &rbg.spec.coordination_requirements),
        ];
        let mut written = entries.into_iter().filter_map(|(field, list)| Some((spec_at.child(field), list.as_ref()?)));
        let (first, second) = (written.next(), written.next());
        let mut faults = Vec::new();
        let coordinations = first.map(|(at, list)| parse_entries(list, &at, &mut faults)).unwrap_or_default();
        if let Some((at, _)) = second {
            let detail = "may not be set together with `coordination`";
            Reader::of_group(&mut faults).note(at, Cause::Forbidden, None, detail);
        }
        let roles_at = spec_at.child("roles");
        let key = GroupKey::new(rbg.metadata.namespace(), rbg.metadata.display_name());
        let roles = rbg.spec.roles.iter().enumerate().map(|(index, role)| {
            let at = roles_at.index(index);
            Role {
                name: role.name.clone(),
                desired: desired(role.replicas),
                replicas: role.replicas,
                dependencies: role.dependencies.clone(),
                engine: role.engine.as_ref().map(|engine| read_settings(engine, &at.child("engine"))),
                workload: RoleWorkload::of_rbg_role(&key, kind.version, role, &at),
                at,
            }
        });
        let roles: Vec<_> = roles.collect();
        Self {
            positions: positions(&roles),
            roles,
            carrier: Carrier::of(kind, &rbg.metadata),
            coordinations,
            faults,
            reference: None,
            has_own_roles: true,
            gang: gang(rbg, &spec_at),
            misplaced_scope: misplaced_scope(&rbg.metadata),
            discovery: rbg.metadata.annotation(names::DISCOVERY) == Some("enabled"),
            coordinated_by: rbg.metadata.annotation(names::GROUP).map(str::to_owned),
            elastic: None,
            status: rbg.status.clone(),
            deleting: rbg.metadata.is_deleting(),
            key,
        }
    }

    /// Reads a RoleCoordination. Desired replicas come from the RoleBasedGroup or the workloads that it refers to, and are 0
    /// for an unknown source.
    pub fn from_role_coordination(kind: ObjectKind, carrier: &RoleCoordination, sources: &impl Sources) -> Self {
        let spec_at = FieldPath::new("spec");
        let (meta, spec) = (&carrier.metadata, &carrier.spec);
        let own_name = meta.display_name();
        let key =
            GroupKey::new(meta.namespace(), spec.group_ref.as_ref().map_or(own_name, |group| group.name.as_str()));
        let referred = spec.group_ref.as_ref().map(|group_ref| {
            let rbg = sources.role_based_group(&key);
            let reference = Reference {
                name: group_ref.name.clone(),
                at: spec_at.child("groupRef"),
                found: rbg.is_some(),
                annotated: rbg.is_some_and(|rbg| rbg.coordinated_by.as_deref() == Some(own_name)),
            };
            (reference, rbg)
        });
        let own_roles = spec.roles.iter().flatten().enumerate();
        let roles_at = spec_at.child("roles");
        let roles: Vec<_> = match &referred {
            Some((reference, rbg)) => {
                rbg.iter().flat_map(|rbg| &rbg.roles).map(|role| role.seen_from(&reference.at)).collect()
            }
            None => own_roles
                .map(|(index, role)| Role::of_coordination(&key, role, roles_at.index(index), sources))
                .collect(),
        };
        let gang =
            referred.as_ref().and_then(|(reference, rbg)| rbg.as_ref()?.gang.as_ref().map(|_| reference.at.clone()));
        let discovers = meta.annotation(names::DISCOVERY) == Some("enabled")
            || referred.as_ref().and_then(|(_, rbg)| *rbg).is_some_and(|rbg| rbg.discovery);
        let mut faults = Vec::new();
        if PodGroupPolicy::parse(spec.pod_group_policy.as_ref()).is_some() {
            let at = spec_at.child("podGroupPolicy");
            Reader::of_group(&mut faults).note(at, Cause::Forbidden, None, BELONGS_TO_BATCHES);
        }
        let mut group = Self {
            carrier: Carrier::of(kind, meta),
            positions: positions(&roles),
            roles,
            coordinations: parse_entries(&spec.coordination, &spec_at.child("coordination"), &mut faults),
            faults,
            reference: referred.map(|(reference, _)| reference),
            has_own_roles: spec.roles.is_some(),
            gang,
            misplaced_scope: misplaced_scope(meta),
            discovery: discovers,
            coordinated_by: None,
            elastic: None,
            status: carrier.status.clone(),
            deleting: meta.is_deleting(),
            key,
        };
        group.elastic = group.wanted_of(spec, sources);
        group.desire_segments(sources);
        group
    }

    /// Reports whether both are equal apart from status and resource version; no group is refused because of these.
    pub fn is_like(&self, other: &Self) -> bool {
        let carrier = Carrier { resource_version: other.carrier.resource_version.clone(), ..self.carrier.clone() };
        Self { carrier, status: other.status.clone(), ..self.clone() } == *other
    }

    /// Returns the role of this name; of two with one name, the first.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.get(*self.positions.get(name)?)
    }

    pub fn coordination(&self, index: usize) -> Option<&Coordination> {
        self.coordinations.get(index)
    }

    /// Returns what could not be read in the block at this path.
    pub fn faults_within(&self, block: &FieldPath) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(|fault| fault.at.is_within(block))
    }

    /// Reports whether nodes are requested for batches of the group that fit nowhere.
    pub fn requests_nodes(&self) -> bool {
        self.batched().any(|(coordination, _)| coordination.requests_nodes())
    }

    /// Returns the coordinations that make batches.
    pub fn batched(&self) -> impl Iterator<Item = (&Coordination, &Batching)> {
        self.coordinations.iter().filter_map(|coordination| Some((coordination, coordination.batching()?)))
    }

    /// Returns the name of a batch that the status names, such as `segment 2`.
    pub fn batch_name(&self, coordination: &str, batch: u32) -> String {
        let found = self.batched().find(|(known, _)| known.display_name() == coordination);
        found.map_or_else(|| format!("batch {}", batch + 1), |(_, batching)| batching.batch_name(batch))
    }

    /// Returns every strategy that makes batches, the superfluous ones of faulty coordinations included.
    pub fn batchings(&self) -> impl Iterator<Item = (&Coordination, &Batching)> {
        self.coordinations.iter().flat_map(|one| one.batchings.iter().map(move |batching| (one, batching)))
    }

    /// Reports whether a coordination rolls the role in lockstep with others.
    pub fn rolls(&self, role: &str) -> bool {
        let mut rolling = self.coordinations.iter().filter(|coordination| coordination.rolling_update.is_some());
        rolling.any(|coordination| coordination.names(role))
    }

    /// Returns the coordinations that make batches of this role, in order.
    pub fn batchings_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = (&'a Coordination, &'a Batching)> {
        self.batched().filter(move |(_, batching)| batching.sizes.contains_key(role))
    }

    /// Returns the first batching of this role with a size of at least 1. In a valid group, all coordinations of a role agree
    /// on the size.
    pub fn batching_of(&self, role: &str) -> Option<&Batching> {
        self.batched().map(|(_, batching)| batching).find(|batching| batching.size(role).is_some())
    }

    /// Returns the seconds for which a pod of a role must be ready before it counts: the most of its workload's and of those of
    /// its coordinations.
    pub fn min_ready_seconds(&self, role: &Role) -> u32 {
        let of = |coordination: &Coordination| coordination.ready_when().map(|when| when.min_ready_seconds).max();
        let timed = self.coordinations.iter().filter_map(|coordination| Some((coordination, of(coordination)?)));
        let asked = timed.filter(|(coordination, _)| coordination.names(&role.name)).map(|(_, seconds)| seconds);
        asked.fold(role.workload.min_ready_seconds, u32::max)
    }

    /// Returns the replicas of the role in one batch.
    pub fn batch_size(&self, role: &str) -> Option<u32> {
        self.batching_of(role)?.size(role)
    }
}

fn misplaced_scope(meta: &Meta) -> Option<FieldPath> {
    meta.annotation(names::DISCOVERY_SCOPE).map(|_| FieldPath::annotation(names::DISCOVERY_SCOPE))
}

fn positions(roles: &[Role]) -> BTreeMap<String, usize> {
    roles.iter().enumerate().rev().map(|(index, role)| (role.name.clone(), index)).collect()
}

impl Carrier {
    /// Reports whether a person resumed waiting work at or after a time, RFC 3339.
    pub fn is_resumed_since(&self, since: Option<&str>) -> bool {
        self.resumed.zip(since.and_then(Moment::parse)).is_some_and(|(resumed, since)| resumed >= since)
    }

    fn of(kind: ObjectKind, meta: &Meta) -> Self {
        Self {
            kind,
            name: meta.display_name().to_owned(),
            created: meta.creation_timestamp.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation,
            resumed: meta.annotation(names::RESUMED_AT).and_then(Moment::parse),
            rollout_resumed: meta.annotation(names::ROLLOUT_RESUMED_AT).and_then(Moment::parse),
            rolled_back: meta.annotation(names::ROLLED_BACK_AT).and_then(Moment::parse),
        }
    }
}

fn parse_entries(list: &[crate::api::Coordination], at: &FieldPath, faults: &mut Vec<Fault>) -> Vec<Coordination> {
    list.iter().enumerate().map(|(index, entry)| Coordination::parse(index, entry, at.index(index), faults)).collect()
}

/// Returns the path of the field that makes one gang of the whole group: `podGroupPolicy` in v1alpha1, an annotation in
/// v1alpha2.
fn gang(rbg: &RoleBasedGroup, spec_at: &FieldPath) -> Option<FieldPath> {
    if PodGroupPolicy::parse(rbg.spec.pod_group_policy.as_ref()).is_some() {
        return Some(spec_at.child("podGroupPolicy"));
    }
    let annotated = rbg.metadata.annotation(names::RBG_GANG) == Some("true");
    annotated.then(|| FieldPath::annotation(names::RBG_GANG))
}

impl Role {
    /// Returns the role as a RoleCoordination that refers to its group sees it: every path is that of the reference.
    fn seen_from(&self, reference: &FieldPath) -> Self {
        let workload = RoleWorkload {
            update_strategy: self.workload.update_strategy.as_ref().map(|_| reference.clone()),
            ordered: self.workload.ordered.as_ref().map(|_| reference.clone()),
            ..self.workload.clone()
        };
        Self { at: reference.clone(), workload, ..self.clone() }
    }

    fn of_coordination(group: &GroupKey, role: &CoordinatedRole, at: FieldPath, sources: &impl Sources) -> Self {
        let reference_at = at.child("workloadRef");
        let reference = role.workload_ref.as_ref();
        let key = reference.and_then(|reference| {
            let kind = WorkloadKind::parse(&reference.kind)?;
            Some(WorkloadKey { namespace: group.namespace.to_string(), kind, name: reference.name.clone() })
        });
        let known = key.as_ref().and_then(|key| sources.workload(key));
        let written = role.replicas.or_else(|| known.map(|workload| i64::from(workload.desired)));
        let desired_is_unknown = reference.is_some() && written.is_none();
        Self {
            name: role.name.clone(),
            desired: if desired_is_unknown { 0 } else { desired(written) },
            replicas: role.replicas,
            dependencies: Vec::new(),
            engine: role.engine.as_ref().map(|engine| read_settings(engine, &at.child("engine"))),
            workload: RoleWorkload {
                reference: reference.map(|reference| (reference.clone(), reference_at.clone())),
                instances: None,
                desired_is_unknown,
                unlabelled: known.and_then(|workload| workload.unlabelled(&group.name, &role.name)),
                min_ready_seconds: known.map_or(0, |workload| workload.min_ready_seconds),
                is_overdue: known.is_some_and(|workload| workload.is_overdue),
                update_strategy: known.filter(|workload| !workload.takes_partition).map(|_| reference_at.clone()),
                ordered: known.and_then(|workload| workload.one_by_one).map(|_| reference_at),
                hosts: known.and_then(|workload| workload.hosts.clone()),
                engines: known.map(|workload| workload.engines.clone()).unwrap_or_default(),
                templates: known.map(|workload| workload.templates.clone()).unwrap_or_default(),
                foreign_gate: known.and_then(|workload| workload.foreign_gate.clone()),
                labels: known.and_then(|workload| workload.template_labels.last().cloned()).unwrap_or_default(),
                standalone: false,
                key,
            },
            at,
        }
    }
}
