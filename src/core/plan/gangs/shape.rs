//! The shape of a placed PodGroup: the tree of its gangs, their leaves, and the node labels that leaves share.

use std::collections::BTreeSet;

use crate::model::{Constraint, GangTree, Minimum};

/// The maximum depth of nested gangs. A topology has a handful of levels.
pub(super) const MOST_LEVELS: usize = 64;

/// A level of a topology in a spec: the object that defines it, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// The name of the object; `None` if none is named.
    pub topology: Option<String>,
    pub name: String,
}

/// The gangs, leaves and shares of a PodGroup.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The gangs; the first is the whole.
    pub gangs: Vec<GangShape>,
    /// The names of the leaves; `""` for the only leaf of a PodGroup without subgroups.
    pub leaves: Vec<String>,
    /// The leaves with a common domain.
    pub shares: Vec<LeafShare>,
}

#[derive(Clone, Debug)]
pub struct GangShape {
    /// The subject of messages: `gang workers`, or `it` for the whole.
    pub what: String,
    /// The minimum before any of its pods run.
    pub minimum: Minimum,
    /// The positions of its children.
    pub children: Vec<usize>,
    /// The position of its leaf; `None` if it has children.
    pub leaf: Option<usize>,
}

/// Leaves whose pods share a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafShare {
    /// The subject of messages, such as `gang workers`.
    pub what: String,
    pub level: Level,
    /// The positions of the leaves, in ascending order.
    pub leaves: Vec<usize>,
    /// False for a share that is dropped if it cannot be kept.
    pub required: bool,
}

impl Shape {
    /// Returns the shape of a PodGroup; `None` if a gang is its own ancestor, or gangs are nested too deeply for recursive
    /// walks.
    pub fn of(tree: &GangTree) -> Option<Self> {
        if tree.is_deeper_than(MOST_LEVELS) {
            return None;
        }
        let mut shape = Self { gangs: Vec::new(), leaves: Vec::new(), shares: Vec::new() };
        if tree.gangs.is_empty() {
            let pods = tree.min_member.unwrap_or(1).max(0);
            let minimum = Minimum::Pods(u32::try_from(pods).unwrap_or(u32::MAX));
            shape.leaves.push(String::new());
            shape.gangs.push(GangShape { what: WHOLE.to_owned(), minimum, children: Vec::new(), leaf: Some(0) });
        } else {
            shape.gangs.push(GangShape {
                what: WHOLE.to_owned(),
                minimum: tree.minimum(),
                children: Vec::new(),
                leaf: None,
            });
            for (at, gang) in tree.gangs.iter().enumerate() {
                let leaf = gang.is_leaf().then_some(shape.leaves.len());
                shape.leaves.extend(leaf.map(|_| gang.name.clone()));
                shape.gangs.push(GangShape {
                    what: format!("gang {}", gang.name),
                    minimum: tree.minimum_of(gang),
                    children: gang.children.iter().map(|child| child + 1).collect(),
                    leaf,
                });
                let parent = gang.above.map_or(0, |above| above + 1);
                if parent == 0
                    && let Some(whole) = shape.gangs.first_mut()
                {
                    whole.children.push(at + 1);
                }
            }
        }
        shape.add_shares(tree);
        Some(shape)
    }

    fn add_shares(&mut self, tree: &GangTree) {
        let all: Vec<_> = (0..self.leaves.len()).collect();
        if let Some(constraint) = &tree.constraint {
            self.share("the PodGroup", constraint, &all);
        }
        let mut covered = BTreeSet::new();
        for set in &tree.sets {
            let members = tree.gangs.iter().enumerate().filter(|(_, gang)| set.members.contains(&gang.name));
            let leaves: BTreeSet<_> = members.flat_map(|(at, _)| self.leaves_of(at + 1)).collect();
            covered.extend(leaves.iter().copied());
            let what = format!("the set of {}", set.members.join(", "));
            self.share(&what, &set.constraint, &leaves.into_iter().collect::<Vec<_>>());
        }
        for (at, gang) in tree.gangs.iter().enumerate() {
            if let Some(constraint) = &gang.constraint {
                let leaves = self.leaves_of(at + 1);
                covered.extend(leaves.iter().copied());
                self.share(&format!("gang {}", gang.name), constraint, &leaves);
            }
        }
        if let Some(constraint) = &tree.fallback {
            let rest: Vec<_> = all.into_iter().filter(|leaf| !covered.contains(leaf)).collect();
            self.share("what has no constraint of its own", constraint, &rest);
        }
    }

    fn share(&mut self, what: &str, constraint: &Constraint, leaves: &[usize]) {
        if leaves.is_empty() {
            return;
        }
        let preferred = constraint.preferred.as_ref().filter(|level| Some(*level) != constraint.required.as_ref());
        for (level, required) in [(constraint.required.as_ref(), true), (preferred, false)] {
            let Some(name) = level else { continue };
            let level = Level { topology: constraint.topology.clone(), name: name.clone() };
            self.shares.push(LeafShare { what: what.to_owned(), level, leaves: leaves.to_vec(), required });
        }
    }

    /// Returns the leaves of a gang, in ascending order.
    pub fn leaves_of(&self, gang: usize) -> Vec<usize> {
        let (mut found, mut next) = (BTreeSet::new(), vec![gang]);
        while let Some(gang) = next.pop().and_then(|at| self.gangs.get(at)) {
            found.extend(gang.leaf);
            next.extend(&gang.children);
        }
        found.into_iter().collect()
    }

    /// Returns the leaf with this name; the leaf of a PodGroup without subgroups has all pods.
    pub fn leaf(&self, name: Option<&str>) -> Option<usize> {
        let only = self.gangs.len() == 1;
        self.leaves.iter().position(|leaf| only || name.is_some_and(|name| leaf == name))
    }
}

/// The subject of messages on the whole.
const WHOLE: &str = "it";
