//! The shape of a PodGroup that is placed: its gangs as a tree with the leaves that pods are in, and which leaves share which
//! node label.

use std::collections::BTreeSet;

use crate::model::{Constraint, GangTree, Minimum};

/// Gangs within one another. A topology has a handful of levels.
pub(super) const MOST_LEVELS: usize = 64;

/// A level of a topology, as it is written: the object that defines it, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// Name of the object; `None` where none is named.
    pub topology: Option<String>,
    /// The level.
    pub name: String,
}

/// A PodGroup as it is placed.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Gangs; the first is the whole.
    pub gangs: Vec<GangShape>,
    /// Names of the leaves; `""` for the only one of a PodGroup without subgroups.
    pub leaves: Vec<String>,
    /// Which leaves share what.
    pub shares: Vec<LeafShare>,
}

/// A gang.
#[derive(Clone, Debug)]
pub struct GangShape {
    /// `gang workers`, or `it` for the whole.
    pub what: String,
    /// What it needs before any of it runs.
    pub minimum: Minimum,
    /// Positions of its children.
    pub children: Vec<usize>,
    /// Position of the leaf that it is.
    pub leaf: Option<usize>,
}

/// Leaves whose pods share a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafShare {
    /// `gang workers`, for people.
    pub what: String,
    /// The level.
    pub level: Level,
    /// Positions of the leaves, in order.
    pub leaves: Vec<usize>,
    /// False where it gives way if it cannot be kept.
    pub required: bool,
}

impl Shape {
    /// The shape of a PodGroup; `None` for one in which gangs are their own parents, or within more others than the walks
    /// over it have stack for.
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

    /// The leaves of a gang, in order.
    pub fn leaves_of(&self, gang: usize) -> Vec<usize> {
        let (mut found, mut next) = (BTreeSet::new(), vec![gang]);
        while let Some(gang) = next.pop().and_then(|at| self.gangs.get(at)) {
            found.extend(gang.leaf);
            next.extend(&gang.children);
        }
        found.into_iter().collect()
    }

    /// The leaf of a pod that names this one; that of a PodGroup without subgroups has all of them.
    pub fn leaf(&self, name: Option<&str>) -> Option<usize> {
        let only = self.gangs.len() == 1;
        self.leaves.iter().position(|leaf| only || name.is_some_and(|name| leaf == name))
    }
}

/// What the whole is called in messages.
const WHOLE: &str = "it";
