//! A PodGroup as a tree of gangs (KAI, hierarchical PodGroup): the parent of each gang, the members that it needs, and its
//! topology constraint. Faults are kept for the rules to report; every walk ends even on a cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::gang_placement::Placement;
use super::{FieldPath, GroupKey, dialect::Dialect, names};
use crate::api;
use crate::api::pod_group::{PodGroupSpec, TopologyConstraint, TopologyConstraints};

/// A PodGroup with its subgroups.
#[derive(Clone, Debug)]
pub struct GangTree {
    /// Name of the PodGroup; its pods are in the same namespace.
    pub key: GroupKey,
    /// Meaning of the counts; `None` when it is not known.
    pub dialect: Option<Dialect>,
    /// `spec.minMember` as written.
    pub min_member: Option<i64>,
    /// `spec.minSubGroup` as written.
    pub min_sub_group: Option<i64>,
    /// `spec.schedulingBackoff` as written.
    pub scheduling_backoff: Option<i64>,
    /// Constraint on all pods, in any subgroup.
    pub constraint: Option<Constraint>,
    /// Constraint on the pods that no subgroup and no set constrains (`global`).
    pub fallback: Option<Constraint>,
    pub gangs: Vec<Gang>,
    pub sets: Vec<GangSet>,
    /// Constraints by subgroup name, as written: a name may belong to no subgroup.
    pub by_name: Vec<(String, Constraint)>,
    /// True when the PodGroup asks for its pods to be placed.
    pub place: bool,
    pub deleting: bool,
    pub uid: String,
    pub resource_version: String,
    /// Committed placement of the leaves, from the annotation.
    pub placement: Placement,
    /// Index in `gangs` by name; of two subgroups with one name, the first.
    positions: BTreeMap<String, usize>,
}

/// A subgroup.
#[derive(Clone, Debug)]
pub struct Gang {
    pub name: String,
    /// Path of the entry.
    pub at: FieldPath,
    /// Name of the parent; `""` counts as absent.
    pub parent: Option<String>,
    /// Index of the parent; `None` for a top-level subgroup and for a parent that does not exist.
    pub above: Option<usize>,
    /// Indexes of the children.
    pub children: Vec<usize>,
    /// `minMember` as written.
    pub min_member: Option<i64>,
    /// `minSubGroup` as written.
    pub min_sub_group: Option<i64>,
    /// Constraint from the subgroup itself, else from `topologyConstraints.subGroups`.
    pub constraint: Option<Constraint>,
}

/// Subgroups that must satisfy a constraint together.
#[derive(Clone, Debug)]
pub struct GangSet {
    /// Path of the entry.
    pub at: FieldPath,
    /// Names of subgroups, as written.
    pub members: Vec<String>,
    pub constraint: Constraint,
}

/// A topology constraint; empty words count as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    pub at: FieldPath,
    /// Name of the Topology that defines the levels.
    pub topology: Option<String>,
    /// All pods must share one domain of this level.
    pub required: Option<String>,
    /// All pods share one domain of this level if possible.
    pub preferred: Option<String>,
}

/// Returns the name of the KAI PodGroup that places a pod with this metadata, in the pod's namespace.
pub fn placed_by(meta: &api::Meta) -> Option<&str> {
    meta.annotation(names::KAI_POD_GROUP).filter(|_| meta.label(names::PLACED_BY).is_some())
}

/// Minimum that must exist before a gang may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimum {
    /// This many pods of the gang or of the gangs below it.
    Pods(u32),
    /// This many children, each with its own minimum.
    Gangs(u32),
}

impl GangTree {
    /// Reads a PodGroup whose counts have the meaning of `dialect`.
    pub fn from_pod_group(group: &api::PodGroup, dialect: Option<Dialect>) -> Self {
        let spec_at = FieldPath::new("spec");
        let spec = &group.spec;
        let constraints_at = spec_at.child("topologyConstraints");
        let constraints = spec.topology_constraints.as_ref();
        let by_name = constraints.into_iter().flat_map(|constraints| &constraints.sub_groups).map(|(name, written)| {
            let at = constraints_at.child("subGroups").key(name.as_str());
            (name.clone(), Constraint::read(&written.clone().unwrap_or_default(), at))
        });
        let listed = spec.sub_groups.iter().enumerate().rev();
        let positions = listed.map(|(index, one)| (one.name.clone(), index)).collect();
        let sets_at = constraints_at.child("subGroupSets");
        let sets = constraints.into_iter().flat_map(|constraints| &constraints.sub_group_sets).enumerate();
        let sets = sets.map(|(index, set)| {
            let at = sets_at.index(index);
            let constraint = Constraint::read(&set.constraint.clone().unwrap_or_default(), at.child("constraint"));
            GangSet { members: set.sub_groups.clone(), constraint, at }
        });
        let global = constraints.and_then(|constraints| constraints.global.as_ref());
        Self {
            key: GroupKey::new(group.metadata.namespace(), group.metadata.display_name()),
            dialect,
            min_member: spec.min_member,
            min_sub_group: spec.min_sub_group,
            scheduling_backoff: spec.scheduling_backoff,
            constraint: written(spec.topology_constraint.as_ref(), spec_at.child("topologyConstraint")),
            fallback: global.map(|global| Constraint::read(global, constraints_at.child("global"))),
            gangs: gangs(spec, &spec_at, &positions, constraints),
            sets: sets.collect(),
            by_name: by_name.collect(),
            place: group.metadata.annotation(names::PLACE) == Some("enabled"),
            positions,
            deleting: group.metadata.is_deleting(),
            uid: group.metadata.uid.clone().unwrap_or_default(),
            resource_version: group.metadata.resource_version.clone().unwrap_or_default(),
            placement: Placement::read(group.metadata.annotation(names::PLACEMENT)),
        }
    }

    /// Reports whether the PodGroup has no subgroups and no constraints on any.
    pub fn is_flat(&self) -> bool {
        self.gangs.is_empty() && self.sets.is_empty() && self.by_name.is_empty()
    }

    /// Returns the subgroup of this name; of two with one name, the first.
    pub fn gang(&self, name: &str) -> Option<&Gang> {
        self.gangs.get(*self.positions.get(name)?)
    }

    /// Returns the subgroups without a parent, including those whose parent does not exist.
    pub fn top_level(&self) -> impl Iterator<Item = &Gang> {
        self.gangs.iter().filter(|gang| gang.above.is_none())
    }

    /// Returns the subgroups that pods may be in: those without children.
    pub fn leaves(&self) -> impl Iterator<Item = &Gang> {
        self.gangs.iter().filter(|gang| gang.is_leaf() && !gang.name.is_empty())
    }

    /// Returns, for each subgroup, the value of `of` at the nearest subgroup above it that has one. The time depends on the
    /// number of subgroups, not on their depth; a cycle ends the search.
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

    /// Returns each cycle of parents once, as indexes from child to parent.
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

    /// Reports whether a subgroup has more than `levels` others above it; a subgroup on a cycle always has.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        let above = |at: usize| self.gangs.get(at)?.above;
        self.gangs.iter().any(|gang| std::iter::successors(gang.above, |at| above(*at)).nth(levels).is_some())
    }

    /// Returns the minimum of the whole PodGroup.
    pub fn minimum(&self) -> Minimum {
        self.needs(self.min_member, self.min_sub_group, self.top_level().count())
    }

    /// Returns the minimum of a subgroup; by default one pod for a leaf, else all children.
    pub fn minimum_of(&self, gang: &Gang) -> Minimum {
        if gang.is_leaf() {
            return Minimum::Pods(count(gang.min_member, 1));
        }
        self.needs(gang.min_member, gang.min_sub_group, gang.children.len())
    }

    /// Returns the minimum of a gang with children. Without a dialect, `minMember` has the meaning of the design, which asks
    /// for more.
    fn needs(&self, min_member: Option<i64>, min_sub_group: Option<i64>, children: usize) -> Minimum {
        match (min_sub_group, min_member) {
            (None, pods @ Some(_)) if matches!(self.dialect, Some(Dialect::Upstream | Dialect::Pods)) => {
                Minimum::Pods(count(pods, 0))
            }
            (gangs, members) => Minimum::Gangs(count(gangs.or(members), children)),
        }
    }

    /// Returns the leaf of a pod by its role: the leaf with the name of the role, else `<role>-<ordinal>`.
    pub fn leaf_for(&self, role: &str, ordinal: Option<u32>) -> Option<&Gang> {
        let leaf = |name: &str| self.gang(name).filter(|gang| gang.is_leaf() && !gang.name.is_empty());
        leaf(role).or_else(|| leaf(&format!("{role}-{}", ordinal?)))
    }
}

impl Gang {
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

    pub fn names_a_level(&self) -> bool {
        self.required.is_some() || self.preferred.is_some()
    }
}

/// Reads a constraint; `None` for `{}`, which KAI's own clients write for no constraint.
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
    let gangs = spec.sub_groups.iter().enumerate().map(|(index, sub_group)| {
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
    });
    let mut gangs: Vec<_> = gangs.collect();
    let links: Vec<_> = gangs.iter().enumerate().filter_map(|(index, gang)| Some((gang.above?, index))).collect();
    for (above, index) in links {
        if let Some(parent) = gangs.get_mut(above) {
            parent.children.push(index);
        }
    }
    gangs
}

/// Returns a count as written, or the default; a negative value counts as 0.
fn count(written: Option<i64>, default: usize) -> u32 {
    written.map_or_else(|| u32::try_from(default), |value| u32::try_from(value.max(0))).unwrap_or(u32::MAX)
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
