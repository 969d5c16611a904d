//! Placement of the pods of one batch: the three forms of the designs in one shape.

use super::FieldPath;
use super::fault::Reader;
use crate::api::coordination::{AffinityScheduling, DeployTopologyConstraint, TopologyAffinity};

/// Default name of the ClusterTopology (KEP-75).
pub const DEFAULT_CLUSTER_TOPOLOGY: &str = "rbg-cluster-topology";

/// The nodes that one batch shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Nodes with one value of this label (KEP-30, KEP-32).
    Key(String),
    /// A layer of a ClusterTopology (KEP-75).
    Layer {
        /// Name of the ClusterTopology.
        topology: String,
        layer: String,
    },
}

/// Strength of a batch's claim to one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// A requirement: all pods of the batch share one domain.
    Hard,
    /// A preference of this weight, 1 to 100.
    Soft(u8),
}

/// Spellings of `constraintMode`; the first is the default.
pub const CONSTRAINT_MODES: &[(&str, Strength)] = &[("hard", Strength::Hard), ("soft", Strength::Soft(100))];

/// Spellings of `topologyAffinity.strategy`; the first is the default.
pub const AFFINITY_STRATEGIES: &[(&str, Strength)] = &[
    ("PreferSegmentAffinity", Strength::Soft(100)),
    ("RequireSegmentAffinity", Strength::Hard),
    ("BestEffort", Strength::Soft(1)),
];

/// Placement of the pods of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Path of the fields that it was read from.
    pub at: FieldPath,
    pub domain: Domain,
    /// Path of the field that names the domain.
    pub domain_at: FieldPath,
    /// An unknown word counts as hard, the strictest.
    pub strength: Strength,
    /// True when each batch prefers another domain.
    pub spread: bool,
}

impl Topology {
    /// Reads KEP-30's form: a batch shares one domain, and batches stay apart.
    pub(super) fn of_affinity_scheduling(affinity: &AffinityScheduling, at: &FieldPath) -> Option<Self> {
        let key = affinity.topology_key.clone().filter(|key| !key.is_empty())?;
        Some(Self {
            at: at.clone(),
            domain: Domain::Key(key),
            domain_at: at.child("topologyKey"),
            strength: Strength::Hard,
            spread: true,
        })
    }

    /// Reads KEP-32's form (future enhancements).
    pub(super) fn of_segments(affinity: &TopologyAffinity, segments: &mut Reader<'_>) -> Option<Self> {
        let key = affinity.topology_key.clone().filter(|key| !key.is_empty())?;
        let mut fields = segments.within("affinity-strategy", "topologyAffinity");
        let strength = fields.word("strategy", affinity.strategy.as_deref(), AFFINITY_STRATEGIES, Strength::Soft(100));
        Some(Self {
            domain: Domain::Key(key),
            domain_at: fields.at.child("topologyKey"),
            strength: strength.unwrap_or(Strength::Hard),
            spread: affinity.spread_segments == Some(true),
            at: fields.at,
        })
    }

    /// Reads KEP-75's form: a layer; a constraint without one has a gang at most.
    pub(super) fn of_deploy_constraint(constraint: &DeployTopologyConstraint, mut fields: Reader<'_>) -> Option<Self> {
        let layer = constraint.topology_layer_name.clone().filter(|layer| !layer.is_empty())?;
        let named = constraint.cluster_topology_name.clone().filter(|name| !name.is_empty());
        let strength =
            fields.word("constraintMode", constraint.constraint_mode.as_deref(), CONSTRAINT_MODES, Strength::Hard);
        Some(Self {
            domain: Domain::Layer { topology: named.unwrap_or_else(|| DEFAULT_CLUSTER_TOPOLOGY.to_owned()), layer },
            domain_at: fields.at.child("topologyLayerName"),
            strength: strength.unwrap_or(Strength::Hard),
            spread: true,
            at: fields.at,
        })
    }

    /// Reports whether a batch must not be split over two domains.
    pub fn is_hard(&self) -> bool {
        self.strength == Strength::Hard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kep_75_defaults_to_the_hard_mode_of_the_default_topology() {
        let constraint = DeployTopologyConstraint {
            topology_layer_name: Some("host".to_owned()),
            ..DeployTopologyConstraint::default()
        };
        let topology = Topology::of_deploy_constraint(&constraint, Reader::of_group(&mut Vec::new()));
        let topology = topology.expect("it has a layer");
        assert!(topology.is_hard());
        assert_eq!(
            topology.domain,
            Domain::Layer { topology: DEFAULT_CLUSTER_TOPOLOGY.to_owned(), layer: "host".to_owned() }
        );
    }
}
