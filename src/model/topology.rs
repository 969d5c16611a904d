//! Where the pods of one batch go: the three ways of the designs to ask for it, in one shape.

use serde_json::Value;

use super::FieldPath;
use crate::api::ObjectKind;
use crate::api::coordination::{AffinityScheduling, DeployTopologyConstraint, TopologyAffinity};
use crate::api::pod_group::{KUBE_POD_GROUP, POD_GROUP, VOLCANO_POD_GROUP};

/// Name of the ClusterTopology that is meant when none is given (KEP-75).
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
        /// Name of the layer.
        layer: String,
    },
}

/// How much a batch insists on one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// All pods of the batch, or none.
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

/// Where the pods of one batch go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Path of the fields it was read from.
    pub at: FieldPath,
    /// The nodes that one batch shares.
    pub domain: Domain,
    /// Path of the field that names the domain.
    pub domain_at: FieldPath,
    /// How much it insists; an unknown word reads as hard, the strictest.
    pub strength: Strength,
    /// The word for it that is not known, with its path.
    pub unknown_strength: Option<(String, FieldPath)>,
    /// Prefer another domain for each batch.
    pub spread: bool,
}

impl Topology {
    /// KEP-30: a batch shares one domain, and batches keep apart.
    pub(super) fn of_affinity_scheduling(affinity: &AffinityScheduling, at: &FieldPath) -> Option<Self> {
        let key = affinity.topology_key.clone().filter(|key| !key.is_empty())?;
        Some(Self {
            at: at.clone(),
            domain: Domain::Key(key),
            domain_at: at.child("topologyKey"),
            strength: Strength::Hard,
            unknown_strength: None,
            spread: true,
        })
    }

    /// KEP-32, future enhancements.
    pub(super) fn of_segments(affinity: &TopologyAffinity, at: FieldPath) -> Option<Self> {
        let key = affinity.topology_key.clone().filter(|key| !key.is_empty())?;
        let (strength, unknown_strength) =
            strength(affinity.strategy.as_deref(), AFFINITY_STRATEGIES, Strength::Soft(100), at.child("strategy"));
        Some(Self {
            domain: Domain::Key(key),
            domain_at: at.child("topologyKey"),
            strength,
            unknown_strength,
            spread: affinity.spread_segments == Some(true),
            at,
        })
    }

    /// KEP-75: a layer; without one the constraint holds a gang at most.
    pub(super) fn of_deploy_constraint(constraint: &DeployTopologyConstraint, at: FieldPath) -> Option<Self> {
        let layer = constraint.topology_layer_name.clone().filter(|layer| !layer.is_empty())?;
        let named = constraint.cluster_topology_name.clone().filter(|name| !name.is_empty());
        let (strength, unknown_strength) = strength(
            constraint.constraint_mode.as_deref(),
            CONSTRAINT_MODES,
            Strength::Hard,
            at.child("constraintMode"),
        );
        Some(Self {
            domain: Domain::Layer { topology: named.unwrap_or_else(|| DEFAULT_CLUSTER_TOPOLOGY.to_owned()), layer },
            domain_at: at.child("topologyLayerName"),
            strength,
            unknown_strength,
            spread: true,
            at,
        })
    }

    /// True when a batch may not be split over two domains.
    pub fn is_hard(&self) -> bool {
        self.strength == Strength::Hard
    }
}

type UnknownWord = Option<(String, FieldPath)>;

fn strength(
    word: Option<&str>,
    spellings: &[(&str, Strength)],
    default: Strength,
    at: FieldPath,
) -> (Strength, UnknownWord) {
    let Some(word) = word.filter(|word| !word.is_empty()) else { return (default, None) };
    match spellings.iter().find(|(spelling, _)| *spelling == word) {
        Some((_, strength)) => (*strength, None),
        None => (Strength::Hard, Some((word.to_owned(), at))),
    }
}

/// The gang scheduler that a batch's PodGroup is made for (KEP-75, podGroupPolicy).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodGroupPolicy {
    /// `scheduling.x-k8s.io PodGroup` of the scheduler plugins.
    KubeScheduling {
        /// Seconds until the gang gives up.
        schedule_timeout_seconds: Option<i64>,
    },
    /// Volcano.
    VolcanoScheduling {
        /// Queue.
        queue: Option<String>,
        /// Priority class.
        priority_class_name: Option<String>,
    },
    /// KAI.
    Kai {
        /// Queue.
        queue: Option<String>,
        /// Priority class. KAI reads that of the PodGroup and not those of its pods.
        priority_class_name: Option<String>,
    },
    /// None of these.
    Unknown,
}

/// Fields of `podGroupPolicy`, exactly one of which is set.
pub const POD_GROUP_POLICIES: &[&str] = &["kubeScheduling", "volcanoScheduling", "kai"];

impl PodGroupPolicy {
    /// Reads a policy. Absent, `null`, the string `nil` (KEP-75's example) and an empty object are no policy.
    pub fn parse(value: Option<&Value>) -> Option<Self> {
        let value = value?;
        let fields = match value {
            Value::Null => return None,
            Value::String(word) if word == "nil" || word.is_empty() => return None,
            Value::Object(fields) => fields,
            _ => return Some(Self::Unknown),
        };
        let mut set = fields.iter().filter(|(_, value)| !value.is_null());
        let (field, value) = set.next()?;
        if set.next().is_some() {
            return Some(Self::Unknown);
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(match field.as_str() {
            "kubeScheduling" => Self::KubeScheduling {
                schedule_timeout_seconds: value.get("scheduleTimeoutSeconds").and_then(Value::as_i64),
            },
            "volcanoScheduling" => {
                Self::VolcanoScheduling { queue: text("queue"), priority_class_name: text("priorityClassName") }
            }
            "kai" => Self::Kai { queue: text("queue"), priority_class_name: text("priorityClassName") },
            _ => Self::Unknown,
        })
    }

    /// The kind of the PodGroup that is made; `None` when it is not known.
    pub const fn kind(&self) -> Option<ObjectKind> {
        match self {
            Self::KubeScheduling { .. } => Some(KUBE_POD_GROUP),
            Self::VolcanoScheduling { .. } => Some(VOLCANO_POD_GROUP),
            Self::Kai { .. } => Some(POD_GROUP),
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nil_is_no_policy() {
        for none in [json!(null), json!("nil"), json!({}), json!({"kubeScheduling": null})] {
            assert_eq!(PodGroupPolicy::parse(Some(&none)), None, "{none}");
        }
        assert_eq!(
            PodGroupPolicy::parse(Some(&json!({"kubeScheduling": {"scheduleTimeoutSeconds": 60}}))),
            Some(PodGroupPolicy::KubeScheduling { schedule_timeout_seconds: Some(60) })
        );
        for unknown in [json!(3), json!({"other": {}}), json!({"kai": {}, "volcanoScheduling": {}})] {
            assert_eq!(PodGroupPolicy::parse(Some(&unknown)), Some(PodGroupPolicy::Unknown), "{unknown}");
        }
    }

    #[test]
    fn kep_75_defaults_to_the_hard_mode_of_the_default_topology() {
        let constraint = DeployTopologyConstraint {
            topology_layer_name: Some("host".to_owned()),
            ..DeployTopologyConstraint::default()
        };
        let topology = Topology::of_deploy_constraint(&constraint, FieldPath::new("x")).expect("it has a layer");
        assert!(topology.is_hard());
        assert_eq!(
            topology.domain,
            Domain::Layer { topology: DEFAULT_CLUSTER_TOPOLOGY.to_owned(), layer: "host".to_owned() }
        );
    }
}
