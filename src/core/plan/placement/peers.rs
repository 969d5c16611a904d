//! The identity of a pod for other pods, and its constraints on where these are.

use crate::api::scheduling::{PodAffinityTerm, SchedulingPod, SpreadConstraint};
use crate::api::selector::{LabelSelector, Requirement};

/// Labels that number pods: each pod of a workload has another value. They are not kept.
const NUMBERS: [&str; 4] = [
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "statefulset.kubernetes.io/pod-name",
];

/// The separator of labels, which occurs in none of them, like `=`.
const BETWEEN: &str = ",";

/// The identity of a pod for other pods: the same for all pods of one template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    namespace: Box<str>,
    /// `key=value` pairs in one text, without the labels that number pods: there are as many such texts as workloads.
    labels: Box<str>,
    /// The required anti-affinity, which also binds other pods.
    pub apart: Box<[Apart]>,
}

/// The pods that a constraint selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Whom {
    /// The namespaces; `None` for all.
    namespaces: Option<Vec<Box<str>>>,
    /// `None` selects no pod.
    selector: Option<LabelSelector>,
}

/// A term of required anti-affinity: none of the selected pods may be in the same domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Apart {
    /// The node label whose values are the domains.
    pub key: Box<str>,
    pub whom: Whom,
}

/// A `DoNotSchedule` spread: a bound on how many more of the selected pods a domain has than the domain with the fewest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spread {
    /// The node label whose values are the domains.
    pub key: Box<str>,
    pub whom: Whom,
    pub max_skew: u32,
    /// With fewer domains than this, the minimum counts as 0.
    pub min_domains: u32,
    /// Whether domains of nodes that the pod does not select count.
    pub any_node: bool,
    /// Whether domains of nodes with taints that the pod does not tolerate are left out.
    pub honors_taints: bool,
}

impl Peer {
    /// Reads a pod; returns false if a term of its anti-affinity is not modelled, and left out.
    pub fn of(pod: &SchedulingPod) -> (Self, bool) {
        let labels = pod.metadata.labels.iter().filter(|(key, _)| !NUMBERS.contains(&key.as_str()));
        let labels = labels.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(BETWEEN).into();
        let terms = &pod.spec.affinity.pod_anti_affinity.terms;
        let apart: Box<[Apart]> = terms.iter().filter_map(|term| Apart::of(term, pod)).collect();
        let all = apart.len() == terms.len();
        (Self { namespace: pod.metadata.namespace().into(), labels, apart }, all)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.split(BETWEEN).find_map(|label| label.strip_prefix(key)?.strip_prefix('='))
    }
}

impl Whom {
    pub fn includes(&self, peer: &Peer) -> bool {
        let is_in = |namespaces: &Vec<Box<str>>| namespaces.contains(&peer.namespace);
        self.namespaces.as_ref().is_none_or(is_in)
            && self.selector.as_ref().is_some_and(|selector| selector.holds(|key| peer.label(key)))
    }

    /// Returns `None` if the selector uses labels that are not kept.
    fn new(
        namespaces: Option<Vec<Box<str>>>,
        selector: Option<&LabelSelector>,
        like: &[String],
        unlike: &[String],
        pod: &SchedulingPod,
    ) -> Option<Self> {
        let mut selector = selector.cloned();
        // As in the scheduler, a label that the pod lacks is left out.
        let all = like.iter().map(|key| (key, "In")).chain(unlike.iter().map(|key| (key, "NotIn")));
        let own = all.filter_map(|(key, operator)| {
            let (key, operator, value) = (key.clone(), operator.to_owned(), pod.metadata.label(key)?.to_owned());
            Some(Requirement { key, operator, values: vec![value] })
        });
        selector.iter_mut().for_each(|selector| selector.match_expressions.extend(own.clone()));
        let is_kept = !selector.iter().flat_map(LabelSelector::keys).any(|key| NUMBERS.contains(&key));
        is_kept.then_some(Self { namespaces, selector })
    }
}

impl Apart {
    fn of(term: &PodAffinityTerm, pod: &SchedulingPod) -> Option<Self> {
        let namespaces = match &term.namespace_selector {
            None if term.namespaces.is_empty() => Some(vec![pod.metadata.namespace().into()]),
            None => Some(term.namespaces.iter().map(|name| name.as_str().into()).collect()),
            Some(selector) if *selector == LabelSelector::default() => None,
            Some(_) => return None,
        };
        let (like, unlike) = (&term.match_label_keys, &term.mismatch_label_keys);
        let whom = Whom::new(namespaces, term.label_selector.as_ref(), like, unlike, pod)?;
        Some(Self { key: term.topology_key.as_str().into(), whom })
    }
}

impl Spread {
    /// Reads the `DoNotSchedule` constraints of a pod; returns false if one is not modelled, and left out.
    pub fn of(pod: &SchedulingPod) -> (Vec<Self>, bool) {
        let insists = |one: &&SpreadConstraint| matches!(one.when_unsatisfiable.as_str(), "" | "DoNotSchedule");
        let constraints = || pod.spec.topology_spread_constraints.iter().filter(insists);
        let read = |one: &SpreadConstraint| {
            let namespaces = Some(vec![pod.metadata.namespace().into()]);
            Some(Self {
                key: one.topology_key.as_str().into(),
                whom: Whom::new(namespaces, one.label_selector.as_ref(), &one.match_label_keys, &[], pod)?,
                max_skew: one.max_skew,
                min_domains: one.min_domains.unwrap_or(1),
                any_node: one.node_affinity_policy == "Ignore",
                honors_taints: one.node_taints_policy == "Honor",
            })
        };
        let all: Vec<_> = constraints().filter_map(read).collect();
        let is_whole = all.len() == constraints().count();
        (all, is_whole)
    }
}
