//! A PodGroup as a tree of gangs (KAI, hierarchical PodGroup): who is whose parent, how many members each gang needs, and
//! which topology constraint holds for which part. Faults are kept, for the rules to report; every walk ends even on a
//! cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::gang_placement::Placement;
use super::{FieldPath, GroupKey, dialect::Dialect, names};
use crate::api;
use crate::api::pod_group::{PodGroupSpec, TopologyConstraint, TopologyConstraints};

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
    /// True when it asks for its pods to be placed.
    pub place: bool,
    /// True while the PodGroup is being deleted.
    pub deleting: bool,
    /// Unique id.
    pub uid: String,
    /// Version that it was read at.
    pub resource_version: String,
    /// Where its leaves go, as it is noted on it.
    pub placement: Placement,
    /// Positions by name; of two subgroups with one name, the first.
    positions: BTreeMap<String, usize>,
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

/// Name of the KAI PodGroup that places a pod with this metadata, in its own namespace.
pub fn placed_by(meta: &api::Meta) -> Option<&str> {
    meta.annotation(names::KAI_POD_GROUP).filter(|_| meta.label(names::PLACED_BY).is_some())
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
        let mut positions = BTreeMap::new();
        for (index, sub_group) in spec.sub_groups.iter().enumerate() {
            positions.entry(sub_group.name.clone()).or_insert(index);
        }
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
            gangs: gangs(spec, &spec_at, &positions, constraints),
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
            positions,
            deleting: group.metadata.is_deleting(),
            uid: group.metadata.uid.clone().unwrap_or_default(),
            resource_version: group.metadata.resource_version.clone().unwrap_or_default(),
            placement: Placement::read(group.metadata.annotation(names::PLACEMENT)),
        }
    }

    /// True when nothing in it speaks of subgroups: such PodGroups are none of our business.
    pub fn is_flat(&self) -> bool {
        self.gangs.is_empty() && self.sets.is_empty() && self.by_name.is_empty()
    }

    /// The subgroup of this name; of two with one name, the first.
    pub fn gang(&self, name: &str) -> Option<&Gang> {
        self.gangs.get(*self.positions.get(name)?)
    }

    /// Subgroups without a parent. One whose parent does not exist counts: it will have some parent, or none.
    pub fn top_level(&self) -> impl Iterator<Item = &Gang> {
        self.gangs.iter().filter(|gang| gang.above.is_none())
    }

    /// Subgroups that pods may be in: those without children, as written.
    pub fn leaves(&self) -> impl Iterator<Item = &Gang> {
        self.gangs.iter().filter(|gang| gang.is_leaf() && !gang.name.is_empty())
    }

    /// For each subgroup, what `of` finds at the nearest subgroup above it. Takes time in the number of subgroups, however
    /// deep they are; on a cycle there is nothing above.
    pub fn nearest_above<'a, T: Clone>(&'a self, of: impl Fn(&'a Gang) -> Option<T>) -> Vec<Option<T>> {
        let mut found: Vec<Option<Option<T>>> = vec![None; self.gangs.len()];
        for start in 0..self.gangs.len() {
            let mut path = BTreeSet::new();
            let mut at = start;
            let above = loop {
                if let Some(Some(known)) = found.get(at) {
                    break known.clone();
                }
                let parent = self.gangs.get(at).and_then(|gang| gang.above).filter(|_| path.insert(at));
                let Some((parent, gang)) = parent.and_then(|parent| Some((parent, self.gangs.get(parent)?))) else {
                    path.insert(at);
                    break None;
                };
                match of(gang) {
                    Some(value) => break Some(value),
                    None => at = parent,
                }
            };
            for index in path {
                if let Some(slot) = found.get_mut(index) {
                    *slot = Some(above.clone());
                }
            }
        }
        found.into_iter().map(Option::flatten).collect()
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

    /// True when a subgroup has more than so many others above it; on a cycle there is no end of them.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        let above = |at: usize| self.gangs.get(at)?.above;
        self.gangs.iter().any(|gang| std::iter::successors(gang.above, |at| above(*at)).nth(levels).is_some())
    }

    /// What the whole needs before any of it runs.
    pub fn minimum(&self) -> Minimum {
        self.needs(self.min_member, self.min_sub_group, self.top_level().count())
    }

    /// What a subgroup needs before any of it runs: one pod, or all its children, when nothing is written.
    pub fn minimum_of(&self, gang: &Gang) -> Minimum {
        if gang.is_leaf() {
            return Minimum::Pods(count(gang.min_member, 1));
        }
        self.needs(gang.min_member, gang.min_sub_group, gang.children.len())
    }

    /// Without a dialect `minMember` is read as the design has it: that asks for more.
    fn needs(&self, min_member: Option<i64>, min_sub_group: Option<i64>, children: usize) -> Minimum {
        match (min_sub_group, min_member) {
            (None, pods @ Some(_)) if matches!(self.dialect, Some(Dialect::Upstream | Dialect::Pods)) => {
                Minimum::Pods(count(pods, 0))
            }
            (gangs, members) => Minimum::Gangs(count(gangs.or(members), children)),
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

fn gangs(
    spec: &PodGroupSpec,
    spec_at: &FieldPath,
    positions: &BTreeMap<String, usize>,
    constraints: Option<&TopologyConstraints>,
) -> Vec<Gang> {
    let list_at = spec_at.child("subGroups");
    let named_at = spec_at.child("topologyConstraints").child("subGroups");
    let mut gangs: Vec<_> = spec
        .sub_groups
        .iter()
        .enumerate()
        .map(|(index, sub_group)| {
            let at = list_at.index(index);
            let parent = sub_group.parent.clone().filter(|parent| !parent.is_empty());
            let own = written(sub_group.topology_constraint.as_ref(), at.child("topologyConstraint"));
            let named = constraints.and_then(|constraints| constraints.sub_groups.get(&sub_group.name)?.as_ref());
            Gang {
                name: sub_group.name.clone(),
                above: parent.as_deref().and_then(|parent| positions.get(parent).copied()),
                parent,
                children: Vec::new(),
                min_member: sub_group.min_member,
                min_sub_group: sub_group.min_sub_group,
                constraint: own.or_else(|| written(named, named_at.key(sub_group.name.as_str()))),
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tree(spec: Value, dialect: Option<Dialect>) -> GangTree {
        let spec = serde_json::from_value(spec).unwrap();
        GangTree::from_pod_group(&api::PodGroup { spec, ..api::PodGroup::default() }, dialect)
    }

    fn replicas() -> Value {
        json!({"minMember": 1, "subGroups": [
            {"name": "replica-1", "minMember": 2},
            {"name": "leaders-1", "parent": "replica-1", "minMember": 1},
            {"name": "workers-1", "parent": "replica-1", "minMember": 3},
            {"name": "replica-2"},
            {"name": "leaders-2", "parent": "replica-2"},
        ]})
    }

    #[test]
    fn a_minimum_counts_children_in_the_design_and_pods_in_kai() {
        let proposal = tree(replicas(), Some(Dialect::Proposal));
        let minimum = |name| proposal.minimum_of(proposal.gang(name).unwrap());
        assert_eq!(proposal.minimum(), Minimum::Gangs(1));
        assert_eq!(minimum("replica-1"), Minimum::Gangs(2));
        assert_eq!(minimum("workers-1"), Minimum::Pods(3));
        assert_eq!((minimum("replica-2"), minimum("leaders-2")), (Minimum::Gangs(1), Minimum::Pods(1)));
        assert_eq!(tree(replicas(), Some(Dialect::Upstream)).minimum(), Minimum::Pods(1));
        let pods = tree(replicas(), Some(Dialect::Pods));
        assert_eq!(pods.minimum_of(pods.gang("replica-1").unwrap()), Minimum::Pods(2));
        assert_eq!(tree(replicas(), None).minimum(), Minimum::Gangs(1));
        assert_eq!(tree(json!({"subGroups": [{"name": "a"}, {"name": "b"}]}), None).minimum(), Minimum::Gangs(2));
    }

    #[test]
    fn pods_are_in_leaves_only() {
        let tree = tree(replicas(), None);
        let leaves: Vec<_> = tree.leaves().map(|gang| gang.name.as_str()).collect();
        assert_eq!(leaves, ["leaders-1", "workers-1", "leaders-2"]);
        let leaf = |role, ordinal| tree.leaf_for(role, ordinal).map(|gang| gang.name.as_str());
        assert_eq!(leaf("leaders", Some(2)), Some("leaders-2"));
        assert_eq!(leaf("workers-1", None), Some("workers-1"));
        assert_eq!((leaf("replica", Some(1)), leaf("leaders", None)), (None, None));
    }

    #[test]
    fn what_is_above_is_found_once_and_never_on_a_cycle() {
        let tree = tree(
            json!({"subGroups": [
                {"name": "a", "minMember": 7}, {"name": "b", "parent": "a"}, {"name": "c", "parent": "b"},
                {"name": "x", "parent": "y"}, {"name": "y", "parent": "x"}, {"name": "z", "parent": "z"},
            ]}),
            None,
        );
        assert_eq!(tree.nearest_above(|gang| gang.min_member), [None, Some(7), Some(7), None, None, None]);
        assert_eq!(tree.cycles(), [vec![3, 4], vec![5]]);
    }
}
