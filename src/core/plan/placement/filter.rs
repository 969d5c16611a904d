//! The nodes that a pod can go to, whatever their free room: the filters of kube-scheduler of the same names.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::features;
use super::needs::{Amounts, Needs};
use crate::api::node::{Node, Taint};
use crate::api::scheduling::{NodeRequirement, NodeSelector, NodeSelectorTerm};
use crate::model::batching::{CLUSTER, CLUSTER_KEY};
use crate::plan::devices::asks::{bears, keeps_away};

/// The taint of a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NOT_READY: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
/// The only field that a term can name.
pub(super) const NAME_FIELD: &str = "metadata.name";

/// The properties of a node, beside its room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeFacts {
    pub name: Arc<str>,
    /// Sorted by key.
    labels: Box<[Arc<Label>]>,
    /// The taints with effect `NoSchedule` or `NoExecute`.
    taints: Vec<Taint>,
    /// The features of its kubelet, as far as pods may need them; `None` if they are not known.
    features: Option<Vec<&'static str>>,
    /// False for a cordoned node.
    pub schedulable: bool,
    /// False while its kubelet does not answer.
    pub ready: bool,
}

/// The node label of a domain, and its value.
pub type DomainLabel = Arc<(String, String)>;

/// The reason why a pod cannot go to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The node does not match the selector or affinity of the pod.
    Affinity,
    /// A claim of the pod cannot be reached from the node.
    Volume,
    /// The kubelet of the node does not have a feature that the pod needs.
    Features,
    /// The node has a taint that the pod does not tolerate.
    Taint,
    NotReady,
    Cordoned,
    /// The kubelet of the node, or the scheduler, has refused it to pods of the batch.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Label {
    key: Box<str>,
    value: Box<str>,
}

/// Deduplicated labels and amounts of nodes: most nodes of a pool differ only in their names.
#[derive(Clone, Debug, Default)]
pub struct InCommon {
    labels: HashSet<Arc<Label>>,
    amounts: HashSet<Arc<Amounts>>,
}

impl Label {
    fn new(key: &str, value: &str) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

impl InCommon {
    pub fn size(&self) -> usize {
        self.labels.len() + self.amounts.len()
    }

    /// Returns the shared copy of these amounts.
    pub fn amounts(&mut self, amounts: Amounts) -> Arc<Amounts> {
        one_of(&mut self.amounts, amounts)
    }

    /// Removes the labels and amounts that only this node had.
    pub fn forget(&mut self, facts: Option<Arc<NodeFacts>>, amounts: &Arc<Amounts>) {
        let labels = facts.map(|facts| facts.labels.clone()).unwrap_or_default();
        // Two references: this one, and the one of the set.
        labels.iter().filter(|label| Arc::strong_count(label) <= 2).for_each(|label| _ = self.labels.remove(label));
        if Arc::strong_count(amounts) <= 2 {
            self.amounts.remove(amounts);
        }
    }
}

fn one_of<T: Hash + Eq>(known: &mut HashSet<Arc<T>>, one: T) -> Arc<T> {
    if let Some(known) = known.get(&one) {
        return known.clone();
    }
    let new = Arc::new(one);
    known.insert(new.clone());
    new
}

impl NodeFacts {
    pub fn of(node: &Node, name: Arc<str>, in_common: &mut InCommon) -> Self {
        let labels = node.metadata.labels.iter();
        Self {
            name,
            labels: labels.map(|(key, value)| one_of(&mut in_common.labels, Label::new(key, value))).collect(),
            taints: node.spec.taints.iter().filter(|taint| keeps_away(taint)).cloned().collect(),
            features: features::declared(node),
            schedulable: !node.spec.unschedulable,
            ready: node.is_ready(),
        }
    }

    /// Returns the value of a label. Every node has [`CLUSTER_KEY`].
    pub fn label(&self, key: &str) -> Option<&str> {
        if key == CLUSTER_KEY {
            return Some(CLUSTER);
        }
        let at = self.labels.binary_search_by(|known| (*known.key).cmp(key)).ok()?;
        self.labels.get(at).map(|label| &*label.value)
    }

    /// Reports whether the node is in none of these domains.
    pub fn is_in_none_of(&self, domains: &[DomainLabel]) -> bool {
        domains.iter().all(|domain| self.label(&domain.0) != Some(&domain.1))
    }

    /// Removes the cordon.
    pub fn uncordon(&mut self) {
        self.schedulable = true;
        self.taints.retain(|taint| taint.key != UNSCHEDULABLE);
    }

    /// Returns why a pod with these needs cannot go to the node: the most permanent reason if there are several.
    pub fn refusal(&self, needs: &Needs) -> Option<Refusal> {
        let bears = |taint: &Taint| needs.tolerations.iter().any(|toleration| bears(toleration, taint));
        let bears_cordon =
            || bears(&Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
        // The node controller also writes a cordon, and an unready node, as a taint.
        let is_state = |taint: &&Taint| {
            (!self.schedulable && taint.key == UNSCHEDULABLE) || (!self.ready && NOT_READY.contains(&&*taint.key))
        };
        if !self.is_asked_for(needs) {
            Some(Refusal::Affinity)
        } else if self.unreached(needs).is_some() {
            Some(Refusal::Volume)
        } else if self.lacks_a_feature(needs) {
            Some(Refusal::Features)
        } else if !self.taints.iter().filter(|taint| !is_state(taint)).all(bears) {
            Some(Refusal::Taint)
        } else if !self.ready {
            Some(Refusal::NotReady)
        } else if !self.schedulable && !bears_cordon() {
            Some(Refusal::Cordoned)
        } else if needs.refused_by.contains(&self.name) {
            Some(Refusal::Refused)
        } else {
            None
        }
    }

    fn lacks_a_feature(&self, needs: &Needs) -> bool {
        let lacks = |feature: &&str| self.features.as_ref().is_some_and(|has| !has.contains(feature));
        needs.features.iter().any(lacks)
    }

    fn is_asked_for(&self, needs: &Needs) -> bool {
        self.is_selected_by(&needs.node_selector)
            && needs.node_affinity.as_ref().is_none_or(|affinity| self.is_one_of(affinity))
    }

    /// Reports whether the node has all these labels.
    pub(super) fn is_selected_by(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(key, value)| self.label(key) == Some(value))
    }

    /// Returns the first claim of a pod that cannot be reached from the node.
    pub fn unreached<'a>(&self, needs: &'a Needs) -> Option<&'a Arc<str>> {
        needs.reach.iter().find(|reach| !self.is_one_of(&reach.nodes)).map(|reach| &reach.claim)
    }

    /// Reports whether a selector selects the node.
    pub fn is_one_of(&self, nodes: &NodeSelector) -> bool {
        nodes.node_selector_terms.iter().any(|term| self.matches(term))
    }

    fn matches(&self, term: &NodeSelectorTerm) -> bool {
        let label = |required: &NodeRequirement| holds(required, self.label(&required.key));
        let field = |required: &NodeRequirement| required.key == NAME_FIELD && holds(required, Some(&self.name));
        let is_empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
        !is_empty && term.match_expressions.iter().all(label) && term.match_fields.iter().all(field)
    }
}

/// Reports whether a requirement holds for this value, `None` for a missing label.
fn holds(required: &NodeRequirement, value: Option<&str>) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = || Some((number(value?)?, number(required.values.first()?)?));
    match required.operator.as_str() {
        "In" => value.is_some_and(|value| required.values.iter().any(|one| one == value)),
        "NotIn" => value.is_none_or(|value| required.values.iter().all(|one| one != value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}
