//! A PodGroup as a tree of gangs (KAI, hierarchical PodGroup): who is whose parent, how many members each gang needs, and
//! which topology constraint holds for which part. Faults are kept, for the rules to report; every walk ends even on a
//! cycle.

use std::collections::BTreeSet;

use super::{FieldPath, GroupKey, dialect::Dialect, names};
use crate::api;
use crate::api::pod_group::{PodGroupSpec, TopologyConstraint};

/// A PodGroup with its subgroups.
#[derive(Clone, Debug)]
pub struct GangTree {
    /// Its name. Its pods are in the same namespace.
    pub key: GroupKey,
    /// What its counts mean; `None` when nothing tells.
    pub dialect: Option<Dialect>,
    /// `spec.minMember` as written.
    pub min_member: Option<i64>,
    /// `spec.minSubGroup` as written.
    pub min_sub_group: Option<i64>,
    /// `spec.schedulingBackoff` as written.
    pub scheduling_backoff: Option<i64>,
    /// Constraint over all pods, whatever their subgroups say.
    pub constraint: Option<Constraint>,
    /// Constraint of the pods that no subgroup and no set constrains (`global`).
    pub fallback: Option<Constraint>,
    /// Subgroups, as written.
    pub gangs: Vec<Gang>,
    /// Sets of subgroups that keep a constraint together.
    pub sets: Vec<GangSet>,
    /// Constraints by name of subgroup, as written: names may lead nowhere.
    pub by_name: Vec<(String, Constraint)>,
    /// True when its pods are to be placed by us.
    pub place: bool,
    /// True while the PodGroup is being deleted.
    pub deleting: bool,
}

/// A subgroup.
#[derive(Clone, Debug)]
pub struct Gang {
    /// Name as written.
    pub name: String,
    /// Path of the entry.
    pub at: FieldPath,
    /// Name of the parent; `""` reads as none.
    pub parent: Option<String>,
    /// Position of the parent; `None` for a top-level subgroup and for a parent that does not exist.
    pub above: Option<usize>,
    /// Positions of the children.
    pub children: Vec<usize>,
    /// `minMember` as written.
    pub min_member: Option<i64>,
    /// `minSubGroup` as written.
    pub min_sub_group: Option<i64>,
    /// Its own constraint, wherever it is written.
    pub constraint: Option<Constraint>,
}

/// Subgroups that keep a constraint together.
#[derive(Clone, Debug)]
pub struct GangSet {
    /// Path of the entry.
    pub at: FieldPath,
    /// Names as written.
    pub members: Vec<String>,
    /// Their constraint.
    pub constraint: Constraint,
}

/// A topology constraint; empty words read as none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Its path.
    pub at: FieldPath,
    /// Name of the object that defines the levels.
    pub topology: Option<String>,
    /// Level of which all pods share one domain.
    pub required: Option<String>,
    /// Level of which they share one domain if possible.
    pub preferred: Option<String>,
}

/// What has to be there before a gang may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimum {
    /// This many pods of the gang or of those below it.
    Pods(u32),
    /// This many of its children, each with its own minimum.
    Gangs(u32),
}

impl GangTree {
    /// Reads a PodGroup whose counts mean what `dialect` says.
    pub fn from_pod_group(group: &api::PodGroup, dialect: Option<Dialect>) -> Self {
        let spec_at = FieldPath::new("spec");
        let spec = &group.spec;
        let constraints_at = spec_at.child("topologyConstraints");
        let constraints = spec.topology_constraints.as_ref();
        let by_name: Vec<_> = constraints
            .into_iter()
            .flat_map(|constraints| &constraints.sub_groups)
            .map(|(name, written)| {
                let at = constraints_at.child("subGroups").key(name.as_str());
                (name.clone(), Constraint::read(&written.clone().unwrap_or_default(), at))
            })
            .collect();
        let sets_at = constraints_at.child("subGroupSets");
        let sets = constraints.into_iter().flat_map(|constraints| &constraints.sub_group_sets).enumerate();
        Self {
            key: GroupKey::new(group.metadata.namespace(), group.metadata.display_name()),
            dialect,
            min_member: spec.min_member,
            min_sub_group: spec.min_sub_group,
            scheduling_backoff: spec.scheduling_backoff,
            constraint: written(spec.topology_constraint.as_ref(), spec_at.child("topologyConstraint")),
            fallback: constraints
                .and_then(|constraints| constraints.global.as_ref())
                .map(|global| Constraint::read(global, constraints_at.child("global"))),
            gangs: gangs(spec, &spec_at, &by_name),
            sets: sets
                .map(|(index, set)| {
                    let at = sets_at.index(index);
                    let constraint = set.constraint.clone().unwrap_or_default();
                    GangSet {
                        members: set.sub_groups.clone(),
                        constraint: Constraint::read(&constraint, at.child("constraint")),
                        at,
                    }
                })
                .collect(),
            by_name,
            place: group.metadata.annotation(names::PLACE) == Some("enabled"),
            deleting: group.metadata.is_deleting(),
        }
    }

    /// True when nothing in it speaks of subgroups: such PodGroups are none of our business.
    pub fn is_flat(&self) -> bool {
        self.gangs.is_empty() && self.sets.is_empty() && self.by_name.is_empty()
    }

    /// The subgroup of this name; of two with one name, the first.
    pub fn gang(&self, name: &str) -> Option<&Gang> {
        self.gangs.iter().find(|gang| gang.name == name)
    }

    /// Subgroups without a parent. One whose parent does not exist counts: it will have some parent, or none.
    pub fn top_level(&self) -> impl Iterator<Item = &Gang> {
        self.gangs.iter().filter(|gang| gang.above.is_none())
    }

    /// Subgroups that pods may be in: those without children, as written.
    pub fn leaves(&self) -> impl Iterator<Item = &Gang> {
        self.gangs.iter().filter(|gang| gang.is_leaf() && !gang.name.is_empty())
    }

    /// The subgroups above one, from its parent up; each once, even on a cycle.
    pub fn ancestors<'a>(&'a self, gang: &'a Gang) -> impl Iterator<Item = &'a Gang> {
        let mut seen = BTreeSet::new();
        let mut next = gang.above;
        std::iter::from_fn(move || {
            let index = next.filter(|index| seen.insert(*index))?;
            let above = self.gangs.get(index)?;
            next = above.above;
            Some(above)
        })
    }

    /// Parent chains that end where they began, each once: from the child down to the parent, positions in the list.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let mut done = BTreeSet::new();
        let mut cycles = Vec::new();
        for start in 0..self.gangs.len() {
            let mut path: Vec<usize> = Vec::new();
            let mut at = Some(start);
            while let Some(index) = at.filter(|index| done.insert(*index)) {
                path.push(index);
                at = self.gangs.get(index).and_then(|gang| gang.above);
            }
            if let Some(first) = at.and_then(|index| path.iter().position(|step| *step == index)) {
                cycles.push(path.split_off(first));
            }
        }
        cycles
    }

    /// What the whole needs before any of it runs. Without a dialect the counts are read as the design has them: it asks
    /// for more.
    pub fn minimum(&self) -> Minimum {
        let all = self.top_level().count();
        match (self.min_sub_group, self.min_member) {
            (Some(gangs), _) => Minimum::Gangs(count(Some(gangs), all)),
            (None, pods @ Some(_)) if self.dialect == Some(Dialect::Upstream) => Minimum::Pods(count(pods, 0)),
            (None, members) => Minimum::Gangs(count(members, all)),
        }
    }

    /// The leaf that a pod belongs to by its role: the one named as the role, else `<role>-<ordinal>`.
    pub fn leaf_for(&self, role: &str, ordinal: Option<u32>) -> Option<&Gang> {
        let leaf = |name: &str| self.gang(name).filter(|gang| gang.is_leaf() && !gang.name.is_empty());
        leaf(role).or_else(|| leaf(&format!("{role}-{}", ordinal?)))
    }
}

impl Gang {
    /// True when it has no children.
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// What it needs before any of it runs: all its children, or one pod, when nothing is written.
    pub fn minimum(&self) -> Minimum {
        if self.is_leaf() {
            return Minimum::Pods(count(self.min_member, 1));
        }
        Minimum::Gangs(count(self.min_sub_group.or(self.min_member), self.children.len()))
    }
}

impl Constraint {
    fn read(written: &TopologyConstraint, at: FieldPath) -> Self {
        let word = |word: &Option<String>| word.clone().filter(|word| !word.is_empty());
        Self {
            at,
            topology: word(&written.topology),
            required: word(&written.required_topology_level),
            preferred: word(&written.preferred_topology_level),
        }
    }

    /// True when it constrains something.
    pub fn names_a_level(&self) -> bool {
        self.required.is_some() || self.preferred.is_some()
    }
}

/// KAI's own clients write `{}` where there is no constraint.
fn written(constraint: Option<&TopologyConstraint>, at: FieldPath) -> Option<Constraint> {
    let constraint = Constraint::read(constraint?, at);
    (constraint.topology.is_some() || constraint.names_a_level()).then_some(constraint)
}

fn gangs(spec: &PodGroupSpec, spec_at: &FieldPath, by_name: &[(String, Constraint)]) -> Vec<Gang> {
    let list_at = spec_at.child("subGroups");
    let position = |name: &str| spec.sub_groups.iter().position(|sub_group| sub_group.name == name);
    let mut gangs: Vec<_> = spec
        .sub_groups
        .iter()
        .enumerate()
        .map(|(index, sub_group)| {
            let at = list_at.index(index);
            let parent = sub_group.parent.clone().filter(|parent| !parent.is_empty());
            let own = written(sub_group.topology_constraint.as_ref(), at.child("topologyConstraint"));
            let named = || by_name.iter().find(|(name, _)| *name == sub_group.name).map(|(_, found)| found.clone());
            Gang {
                name: sub_group.name.clone(),
                above: parent.as_deref().and_then(position),
                parent,
                children: Vec::new(),
                min_member: sub_group.min_member,
                min_sub_group: sub_group.min_sub_group,
                constraint: own.or_else(named),
                at,
            }
        })
        .collect();
    let links: Vec<_> = gangs.iter().enumerate().filter_map(|(index, gang)| Some((gang.above?, index))).collect();
    for (above, index) in links {
        if let Some(parent) = gangs.get_mut(above) {
            parent.children.push(index);
        }
    }
    gangs
}

/// A count as written, or the default; negative values read as 0.
fn count(written: Option<i64>, default: usize) -> u32 {
    match written {
        Some(value) => u32::try_from(value.max(0)).unwrap_or(u32::MAX),
        None => u32::try_from(default).unwrap_or(u32::MAX),
    }
}
