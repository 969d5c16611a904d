//! The needs of a pod.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::features;
use super::peers::{Apart, Peer, Spread};
use super::reach::Reach;
use crate::api::scheduling::{
    NodeSelector, PodAffinityTerm, ResourceList, SchedulingPod, SchedulingSpec, Toleration, Volume,
};
use crate::model::names;
use crate::model::quantity::{NoQuantity, amount};
use crate::plan::devices::{Ask, ClaimRef};

/// The resource that is counted in thousandths; all others are counted in whole units.
const CPU: &str = "cpu";
/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Amounts by resource: thousandths of processors, bytes, or pieces. Never below 0.
pub type Amounts = BTreeMap<Arc<str>, i64>;

/// The load of a pod on its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    /// The claims of devices.
    pub claims: Vec<ClaimRef>,
    /// Amounts above 0.
    pub amounts: Amounts,
    /// Host ports.
    pub ports: Vec<HostPort>,
    /// The larger, the more important.
    pub priority: i32,
    /// Whether the pod never preempts others, whatever its priority.
    pub never_preempts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The address, `0.0.0.0` for all.
    pub ip: String,
    /// TCP, UDP or SCTP.
    pub protocol: String,
    pub port: i32,
}

impl HostPort {
    /// Reports whether no node can give both ports at once.
    pub fn conflicts(&self, other: &Self) -> bool {
        let all = |port: &Self| port.ip == ALL_ADDRESSES;
        let same_address = all(self) || all(other) || self.ip == other.ip;
        same_address && self.port == other.port && self.protocol == other.protocol
    }
}

/// The address that stands for all addresses of a node.
pub(super) const ALL_ADDRESSES: &str = "0.0.0.0";

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Needs {
    pub load: Load,
    /// Labels that the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity.
    pub node_affinity: Option<NodeSelector>,
    pub tolerations: Vec<Toleration>,
    /// Features of kubelets.
    pub features: Vec<&'static str>,
    /// The identity of the pod for other pods, and its anti-affinity.
    pub peer: Arc<Peer>,
    /// The constraints on its spread over domains.
    pub spread: Vec<Spread>,
    /// The nodes that reach its claims, if not every node does.
    pub reach: Vec<Reach>,
    /// Nodes that were refused to pods of its batch, by their kubelets or by the scheduler.
    pub refused_by: Vec<Arc<str>>,
    /// Resources with which nodes are requested for its batch: they count although no node has them.
    pub awaits: Vec<Arc<str>>,
    /// A digest of the pod's constraints by other pods, as written; `None` without any but the affinity to its own batch.
    pub related: Option<Arc<str>>,
    /// Whether the pod has an affinity to its own batch, which keeps the batch together without a domain.
    pub keeps_together: bool,
    /// Constraints that only the scheduler checks.
    pub not_modelled: Vec<NotModelled>,
}

/// A constraint that decides where a pod goes and is not modelled: an answer holds only without it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotModelled {
    /// Claims of volumes, which may be reached from some nodes only.
    Volumes,
    /// Limits of volumes; their reach is modelled.
    VolumeLimits,
    /// Devices by claim (DRA), for this reason.
    Devices(Arc<str>),
    /// Required affinity to pods of other batches.
    PodAffinity,
    /// Required anti-affinity that selects namespaces by labels, or pods by labels that number them.
    PodAntiAffinity,
    /// A `DoNotSchedule` spread over pods selected by labels that number them.
    TopologySpread,
    /// Another scheduler, with rules of its own.
    Scheduler(String),
    /// The RuntimeClass of a pod that does not exist yet, for this reason.
    RuntimeClass(Arc<str>),
    /// A resource that no node has, and that another scheduler, an extender, or a device class that may not be read gives.
    Resource(Arc<str>),
}

impl NotModelled {
    /// Returns a line on constraints that an answer leaves out, if there are some.
    pub fn beyond(all: &[Self]) -> Option<String> {
        let what: Vec<_> = all.iter().map(Self::describe).collect();
        (!what.is_empty()).then(|| format!("the scheduler looks at more than this answer: {}", what.join(", ")))
    }

    /// Returns a text that follows "it does not look at …".
    pub fn describe(&self) -> String {
        match self {
            Self::Volumes => "claims of volumes".to_owned(),
            Self::VolumeLimits => {
                "how many volumes a node takes, and which of those without a provisioner are free".to_owned()
            }
            Self::Devices(why) | Self::RuntimeClass(why) => why.to_string(),
            Self::PodAffinity => "required affinity to other pods".to_owned(),
            Self::PodAntiAffinity => {
                "required anti-affinity by labels of namespaces, or by labels that number pods".to_owned()
            }
            Self::TopologySpread => {
                "topologySpreadConstraints with DoNotSchedule by labels that number pods".to_owned()
            }
            Self::Scheduler(name) => format!("the rules of scheduler {name:?}"),
            Self::Resource(name) => format!("resource {name}, which no node has in its allocatable"),
        }
    }
}

impl Load {
    /// Returns the part that may ask for devices.
    pub fn ask(&self) -> Ask<'_> {
        Ask { claims: &self.claims, amounts: &self.amounts }
    }
}

impl Needs {
    /// Returns the needs without these labels of nodes, to which a release has bound the pod.
    pub fn without(&self, labels: &[&str]) -> Arc<Self> {
        let mut needs = self.clone();
        needs.node_selector.retain(|label, _| !labels.contains(&&**label));
        Arc::new(needs)
    }

    /// Returns the needs of a pod or of a pod template.
    ///
    /// # Errors
    ///
    /// Fails on an amount that is no quantity: the API server refuses such a pod.
    pub fn of(pod: &SchedulingPod) -> Result<Self, NoQuantity> {
        let spec = &pod.spec;
        let (peer, of_anti_affinity) = Peer::of(pod);
        let (spread, of_spread) = Spread::of(pod);
        let also = [(!of_anti_affinity, NotModelled::PodAntiAffinity), (!of_spread, NotModelled::TopologySpread)];
        Ok(Self {
            load: Load::of(pod)?,
            node_selector: spec.node_selector.clone(),
            node_affinity: spec.affinity.node_affinity.required.clone(),
            tolerations: spec.tolerations.clone(),
            features: features::needed(spec),
            peer: Arc::new(peer),
            spread,
            reach: Vec::new(),
            refused_by: Vec::new(),
            awaits: Vec::new(),
            related: related(spec),
            keeps_together: spec.affinity.pod_affinity.terms.iter().any(is_own_batch),
            not_modelled: not_modelled(spec, also),
        })
    }
}

impl Needs {
    /// Returns a hash of the amounts and claims, and of the nodes that the pod selects, by labels or by other pods: what an edit of
    /// its template changes, and nothing that changes by itself.
    pub fn shape(&self) -> String {
        let mut text = format!("{:?}", self.of_nodes());
        // A pod without these keeps the hash that earlier releases have stored.
        if self.by_others() != (&[], None) {
            _ = write!(text, "{:?}", self.by_others());
        }
        names::digest(&text)
    }

    /// Reports whether both have one [`Self::shape`].
    pub fn is_shaped_like(&self, other: &Self) -> bool {
        (self.of_nodes(), self.by_others()) == (other.of_nodes(), other.by_others())
    }

    fn by_others(&self) -> (&[ClaimRef], Option<&str>) {
        (&self.load.claims, self.related.as_deref())
    }

    const fn of_nodes(&self) -> OfTemplate<'_> {
        let Self { load: Load { amounts, ports, .. }, node_selector, node_affinity, tolerations, .. } = self;
        ((amounts, ports.as_slice()), (node_selector, node_affinity, tolerations.as_slice()))
    }
}

/// What the pod takes from nodes, and the nodes that it selects.
type OfTemplate<'a> =
    ((&'a Amounts, &'a [HostPort]), (&'a BTreeMap<String, String>, &'a Option<NodeSelector>, &'a [Toleration]));

/// The key of interchangeable pods, as far as other pods do not matter.
pub(super) type Alike<'a> = (
    (&'a Load, &'a BTreeMap<String, String>, &'a Option<NodeSelector>, &'a [Toleration], &'a [&'static str]),
    (&'a [Apart], &'a [Spread], &'a [Reach], &'a [NotModelled]),
);

impl Needs {
    /// Reports whether the pod can be bound to its chosen node. The scheduler chooses the node if a constraint is not modelled,
    /// or if a spread asks for several domains among the selected nodes, of which one node would leave too few.
    pub(super) fn may_name_its_node(&self) -> bool {
        let needs_several = |spread: &Spread| spread.min_domains > 1 && !spread.any_node;
        self.not_modelled.is_empty() && !self.spread.iter().any(needs_several)
    }

    /// Reports whether pods like it fit in any order of binding, whatever nodes the scheduler prefers.
    pub(super) fn fits_in_any_order(&self) -> bool {
        let Self { load, spread, reach, refused_by, peer, .. } = self;
        let is_bound = load.claims.is_empty() && load.ports.is_empty() && reach.is_empty();
        is_bound && spread.is_empty() && peer.apart.is_empty() && refused_by.is_empty()
    }

    /// Reports whether the pod does not exist yet, and its RuntimeClass is not known.
    pub(super) fn lacks_its_class(&self) -> bool {
        self.not_modelled.iter().any(|what| matches!(what, NotModelled::RuntimeClass(_)))
    }

    /// Reports whether another scheduler than the default one binds the pod.
    pub(super) fn has_other_scheduler(&self) -> bool {
        self.not_modelled.iter().any(|what| matches!(what, NotModelled::Scheduler(_)))
    }

    /// Returns the key of interchangeable pods.
    pub(super) fn alike(&self) -> Alike<'_> {
        let Self { load, node_selector, node_affinity, tolerations, features, .. } = self;
        let of_nodes = (load, node_selector, node_affinity, tolerations.as_slice(), features.as_slice());
        (of_nodes, (&self.peer.apart, &self.spread, &self.reach, &self.not_modelled))
    }
}

/// Reads the amounts of a list.
pub(super) fn amounts(list: &ResourceList) -> Result<Amounts, NoQuantity> {
    let amount = |name: &str, text: &str| amount(text, if name == CPU { 1000 } else { 1 });
    list.iter().map(|(name, quantity)| Ok((Arc::from(name.as_str()), amount(name, &quantity.0)?.max(0)))).collect()
}

/// Iterates over the needs of pods, without those that a pod shares with the previous one, as most do.
pub(super) fn kinds<'a>(pods: impl IntoIterator<Item = &'a Arc<Needs>>) -> impl Iterator<Item = &'a Arc<Needs>> {
    let mut last: Option<&Arc<Needs>> = None;
    pods.into_iter().filter(move |needs| last.replace(needs).is_none_or(|before| !Arc::ptr_eq(before, needs)))
}

/// Returns the sum of the amounts of all pods.
pub fn total<'a>(pods: impl IntoIterator<Item = &'a Arc<Needs>>) -> Amounts {
    let mut total = Amounts::new();
    pods.into_iter().for_each(|needs| add(&mut total, &needs.load.amounts));
    total
}

const UNITS: &[(&str, i64)] = &[("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

fn is_bytes(resource: &str) -> bool {
    resource == "memory" || resource.contains("storage") || resource.starts_with("hugepages-")
}

/// Formats an amount as in a manifest.
pub(super) fn written(resource: &str, amount: i64) -> String {
    if resource == CPU {
        return if amount % 1000 == 0 { (amount / 1000).to_string() } else { format!("{amount}m") };
    }
    let unit = UNITS.iter().find(|(_, bytes)| is_bytes(resource) && amount != 0 && amount % bytes == 0);
    unit.map_or_else(|| amount.to_string(), |(unit, bytes)| format!("{}{unit}", amount / bytes))
}

/// Formats an amount with few digits: processors to a tenth, bytes to a tenth of their largest unit, rounded down.
pub fn rounded(resource: &str, amount: i64) -> String {
    let tenths = |amount: i64, unit: i64| {
        let tenths = i128::from(amount) * 10 / i128::from(unit);
        let (whole, tenth) = (tenths / 10, tenths % 10);
        if tenth == 0 { whole.to_string() } else { format!("{whole}.{tenth}") }
    };
    if resource == CPU {
        return tenths(amount, 1000);
    }
    let unit = UNITS.iter().find(|(_, bytes)| is_bytes(resource) && amount >= *bytes);
    unit.map_or_else(|| amount.to_string(), |(unit, bytes)| format!("{}{unit}", tenths(amount, *bytes)))
}

pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

pub(super) fn most(of: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let sum = of.entry(name.clone()).or_default();
        *sum = (*sum).max(*amount);
    }
}

fn not_modelled(spec: &SchedulingSpec, also: [(bool, NotModelled); 2]) -> Vec<NotModelled> {
    let claims = |volume: &Volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
    let scheduler = spec.scheduler_name.as_deref().filter(|name| !name.is_empty() && *name != DEFAULT_SCHEDULER);
    let table = [
        (spec.volumes.iter().any(claims), NotModelled::Volumes),
        (spec.affinity.pod_affinity.terms.iter().any(|term| !is_own_batch(term)), NotModelled::PodAffinity),
    ];
    let of_scheduler = scheduler.map(|name| NotModelled::Scheduler(name.to_owned()));
    table.into_iter().chain(also).filter_map(|(is, what)| is.then_some(what)).chain(of_scheduler).collect()
}

fn related(spec: &SchedulingSpec) -> Option<Arc<str>> {
    let near: Vec<_> = spec.affinity.pod_affinity.terms.iter().filter(|term| !is_own_batch(term)).collect();
    let (apart, spread) = (&spec.affinity.pod_anti_affinity.terms, &spec.topology_spread_constraints);
    let is_any = !near.is_empty() || !apart.is_empty() || !spread.is_empty();
    is_any.then(|| names::digest(&format!("{:?}", (near, apart, spread))).into())
}

/// Reports whether the term is the affinity of a batch to itself, which placement in one domain satisfies.
pub(super) fn is_own_batch(term: &PodAffinityTerm) -> bool {
    let required = term.label_selector.iter().flat_map(|selector| &selector.match_expressions);
    required.into_iter().any(|one| one.key == names::KEP75_BATCH && one.operator == "In")
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn a_few_digits_are_enough() {
        let cases = [
            ("cpu", 1_500, "1.5"),
            ("cpu", 96_000, "96"),
            ("memory", (5 << 30) / 2, "2.5Gi"),
            ("memory", (1 << 30) - 1, "1023.9Mi"),
            ("ephemeral-storage", 0, "0"),
            ("nvidia.com/gpu", 1_024, "1024"),
        ];
        for (resource, amount, expected) in cases {
            assert_eq!(rounded(resource, amount), expected, "{amount} {resource}");
        }
    }
}
