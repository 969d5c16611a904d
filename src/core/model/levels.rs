//! The levels of a topology in order, with every spelling of each, to tell whether one constraint is wider than another.

use super::Layers;
use crate::api::pod_group::Topology;

/// Levels from wide to narrow, each as the list of its spellings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(Vec<Vec<String>>);

/// Usual names of levels, from wide to narrow. Sites differ on whether a zone holds datacenters or the reverse, so the two are
/// one level.
const USUAL: &[&[&str]] = &[
    &["region", "topology.kubernetes.io/region"],
    &["zone", "topology.kubernetes.io/zone", "datacenter"],
    &["block"],
    &["rack"],
    &["host", "hostname", "node", "kubernetes.io/hostname"],
];

impl Levels {
    /// Takes levels from wide to narrow, each with its spellings: layer name, alias, label key.
    pub fn new(levels: impl IntoIterator<Item = impl IntoIterator<Item = String>>) -> Self {
        Self(levels.into_iter().map(|spellings| spellings.into_iter().collect()).collect())
    }

    /// Returns the levels of KAI's Topology.
    pub fn from_topology(topology: &Topology) -> Self {
        let spellings = topology.spec.levels.iter().map(|level| level.alias.iter().chain([&level.node_label]).cloned());
        Self::new(spellings)
    }

    /// Returns the layers of a ClusterTopology as levels.
    pub fn from_layers(layers: &Layers) -> Self {
        Self::new(layers.narrow_to_wide().into_iter().rev().map(|layer| [layer.name, layer.key]))
    }

    /// Returns the usual levels, for constraints whose topology is not known.
    pub fn usual() -> Self {
        Self::new(USUAL.iter().map(|level| level.iter().map(|word| (*word).to_owned())))
    }

    /// Reports whether both levels are known and the first is wider.
    pub fn wider(&self, one: &str, other: &str) -> bool {
        self.rank(one).zip(self.rank(other)).is_some_and(|(one, other)| one < other)
    }

    fn rank(&self, word: &str) -> Option<usize> {
        self.0.iter().position(|spellings| spellings.iter().any(|spelling| spelling == word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_compared_by_any_spelling_and_unknown_words_not_at_all() {
        let topology: Topology = serde_json::from_value(serde_json::json!({"spec": {"levels": [
            {"nodeLabel": "example.com/block", "alias": "block"}, {"nodeLabel": "example.com/rack", "alias": null}
        ]}}))
        .unwrap();
        let levels = Levels::from_topology(&topology);
        assert!(levels.wider("block", "example.com/rack"));
        assert!(!levels.wider("example.com/rack", "example.com/block"));
        assert!(!levels.wider("block", "rack"), "the topology does not know this word");
        assert!(Levels::usual().wider("zone", "rack"));
        assert!(!Levels::usual().wider("zone", "datacenter"));
    }
}
