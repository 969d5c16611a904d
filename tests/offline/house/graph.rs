//! The imports among modules directly below a folder of `src`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::source::{Names, Sources};

/// The files and folders of a folder, each with those that it imports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph(pub BTreeMap<String, BTreeSet<String>>);

impl Graph {
    /// Builds the graph of a folder, without its `mod.rs` and test files. With `with_tests`, imports in tests count.
    pub fn of(sources: &Sources, folder: &[String], with_tests: bool) -> Self {
        let node = |name: &Names| name.strip_prefix(folder)?.first().cloned();
        let mut graph = Self::default();
        for module in sources.below(folder) {
            let Some(from) = node(&module.name) else { continue };
            let used = module.mentions.iter().filter(|mention| mention.ours && (with_tests || !mention.test));
            let homes = used.filter_map(|mention| sources.home(&mention.names));
            let others = homes.filter_map(|home| node(&home.name)).filter(|to| *to != from).collect::<BTreeSet<_>>();
            if !module.test {
                graph.0.entry(from).or_default().extend(others);
            }
        }
        graph
    }

    /// Returns the modules on or above a cycle: modules without imports are removed repeatedly.
    pub fn circles(&self) -> Self {
        let mut left = self.clone();
        loop {
            let names: BTreeSet<_> = left.0.keys().cloned().collect();
            left.0.values_mut().for_each(|used| used.retain(|other| names.contains(other)));
            left.0.retain(|_, used| !used.is_empty());
            if left.0.len() == names.len() {
                return left;
            }
        }
    }

    pub fn edges(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    /// Returns the length of the longest chain of imports; `None` if there is a cycle.
    pub fn levels(&self) -> Option<usize> {
        let mut left = self.clone();
        let mut levels = 0;
        while !left.0.is_empty() {
            let names: BTreeSet<_> = left.0.keys().cloned().collect();
            let bottom = |used: &BTreeSet<String>| used.is_disjoint(&names);
            let lowest: BTreeSet<_> =
                left.0.iter().filter(|(_, used)| bottom(used)).map(|(name, _)| name.clone()).collect();
            if lowest.is_empty() {
                return None;
            }
            left.0.retain(|name, _| !lowest.contains(name));
            levels += 1;
        }
        Some(levels)
    }
}

/// Displays the rows as in the tables of the tests.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, used)| writeln!(f, "    ({name:?}, &{used:?}),"))
    }
}
