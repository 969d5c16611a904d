//! Nodes for a simulation. Batches that rolegate places are placed by the placer of the loop. All other pods go where a scheduler
//! would find room for them: a gang as a whole or not at all, the pods of any other batch one by one. No pod makes way for another
//! one: room that only preemption would make is none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::model::batching::PlacedIn;
use crate::model::{Group, GroupKey};
use crate::plan::placement::{Capacity, Fit, Line, Needs, NoFit, Placer, Question, Room, Sight, place, place_some};
use crate::plan::view::{GroupView, HeldPod, PodFacts, PodRef};

/// The nodes of a simulation, and the pods that are to find room on them.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub room: Room,
    /// The node label of each known layer that a coordination names, by position in the list of the group.
    pub layers: BTreeMap<usize, String>,
    /// The pods of each replica, by role and ordinal.
    pub pods: BTreeMap<(String, u32), Vec<SitePod>>,
}

/// A pod of a replica.
#[derive(Clone, Debug)]
pub enum SitePod {
    /// The pod has a node; its room is taken under this uid.
    Bound { uid: Arc<str>, node: Arc<str> },
    /// The pod has no node, or does not exist yet.
    Asks(Arc<Needs>),
}

/// The end of a simulation on nodes.
#[derive(Clone, Debug)]
pub struct Occupied {
    pub room: Room,
    /// The node label of each known layer that a coordination names.
    pub layers: BTreeMap<usize, String>,
    /// The uids of pods that had a node before the first decision.
    pub began: HashSet<Arc<str>>,
    /// The needs of all other pods, by uid, as far as they are known.
    pub needs: HashMap<Arc<str>, Arc<Needs>>,
    /// Roles in no batch of which not all pods have room.
    pub without_batch: Vec<(String, NoFit)>,
}

/// The nodes while a simulation runs.
#[derive(Debug)]
pub(super) struct Nodes {
    capacity: Capacity,
    line: Line,
    key: GroupKey,
    layers: BTreeMap<usize, String>,
    /// The node label of the domains of each coordination whose batches are placed.
    pub(super) domain_keys: Vec<(usize, String)>,
    /// Coordinations whose layer is missing.
    pub(super) missing_layers: Vec<usize>,
    /// The node label of which all pods of a batch share one value, by coordination.
    shared: BTreeMap<usize, String>,
    began: HashSet<Arc<str>>,
    needs: HashMap<Arc<str>, Arc<Needs>>,
    without_batch: Vec<(String, NoFit)>,
}

/// Pods that one look of a scheduler is for: of a batch of a coordination, or of a role, each with the domain they are bound to.
type Unit = (Option<(usize, u32)>, String, Option<String>);

impl Site {
    /// Returns the number of pods in a replica of each role, where it is known, and else that of `sizes`.
    pub(super) fn sizes(&self, sizes: &BTreeMap<String, u32>) -> BTreeMap<String, u32> {
        let mut all = sizes.clone();
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for ((role, _), pods) in &self.pods {
            let size = seen.entry(role).or_default();
            *size = (*size).max(u32::try_from(pods.len()).unwrap_or(u32::MAX));
        }
        all.extend(seen.into_iter().map(|(role, size)| (role.to_owned(), size)));
        all
    }
}

impl Nodes {
    /// Begins a simulation: pods that have a node in the cluster run there, and pods that have one by `view` take room.
    pub(super) fn begin(site: Site, group: &Group, view: &mut GroupView) -> Self {
        let layer = |index: usize| site.layers.get(&index).cloned();
        let placed = group.batched().filter_map(|(coordination, batching)| {
            Some((coordination.index, batching.placed_in()?.key(|_, _| layer(coordination.index))?))
        });
        let missing = group.batched().filter(|(coordination, batching)| {
            batching.layer().is_some() && !site.layers.contains_key(&coordination.index)
        });
        let shared = group.batched().filter_map(|(coordination, batching)| {
            let domain = PlacedIn::Domain(&batching.hard_topology()?.domain);
            Some((coordination.index, domain.key(|_, _| layer(coordination.index))?))
        });
        let mut nodes = Self {
            domain_keys: placed.collect(),
            missing_layers: missing.map(|(coordination, _)| coordination.index).collect(),
            shared: shared.collect(),
            key: group.key.clone(),
            capacity: Capacity::of(site.room),
            line: Line::default(),
            began: HashSet::new(),
            needs: HashMap::new(),
            without_batch: Vec::new(),
            layers: site.layers,
        };
        nodes.meet(&site.pods, view);
        nodes
    }

    /// Notes what each pod asks for, and lets those run that have a node.
    fn meet(&mut self, pods: &BTreeMap<(String, u32), Vec<SitePod>>, view: &mut GroupView) {
        for ((role, ordinal), pods) in pods {
            let Some(seen) = view.roles.get_mut(role) else { continue };
            let there: Vec<_> = seen.replicas.pods_of(*ordinal).to_vec();
            for (facts, pod) in there.iter().zip(pods) {
                match pod {
                    SitePod::Asks(needs) => {
                        self.capacity.awaits(&facts.pod.uid, needs.clone());
                        self.needs.insert(facts.pod.uid.clone(), needs.clone());
                    }
                    SitePod::Bound { uid, .. } => {
                        let pod = PodRef { uid: uid.clone(), ..facts.pod.clone() };
                        let runs = PodFacts { pod, ..running(facts) };
                        seen.replicas.remove(&facts.pod, *ordinal);
                        seen.replicas.add(&Arc::new(runs), *ordinal);
                        seen.committed = seen.committed.map(|count| count.max(ordinal.saturating_add(1)));
                    }
                }
            }
        }
    }

    /// Gives a node to each pod that has one by its counts, and notes that it had one from the beginning.
    pub(super) fn settle(&mut self, group: &Group, view: &GroupView) {
        let pods = view.roles.values().flat_map(|role| role.replicas.pods());
        let scheduled = pods.filter(|(_, pod)| pod.scheduled);
        let scheduled: Vec<_> =
            scheduled.map(|(ordinal, pod)| (HeldPod { facts: pod.clone(), ordinal }, None)).collect();
        self.began = scheduled.iter().map(|(pod, _)| pod.facts.pod.uid.clone()).collect();
        self.schedule(group, scheduled);
        // Counts are not doubted.
        self.without_batch.clear();
    }

    /// Lets the pods of roles in no batch run as far as there is room for them, or nobody says what they ask for.
    pub(super) fn run_free(&mut self, group: &Group, view: &mut GroupView) {
        for role in group.roles.iter().filter(|role| group.batch_size(&role.name).is_none()) {
            let Some(seen) = view.roles.get_mut(&role.name) else { continue };
            let pods: Vec<_> = seen.replicas.pods().filter(|(_, pod)| !pod.scheduled).collect();
            let pods: Vec<_> = pods.into_iter().map(|(ordinal, pod)| HeldPod { facts: pod.clone(), ordinal }).collect();
            self.schedule(group, pods.iter().map(|pod| (pod.clone(), None)).collect());
            for pod in pods.iter().filter(|pod| self.has_node(pod) || !self.needs.contains_key(&pod.pod.uid)) {
                seen.replicas.remove(&pod.facts.pod, pod.ordinal);
                seen.replicas.add(&Arc::new(running(&pod.facts)), pod.ordinal);
            }
        }
    }

    /// Runs a decision with a placer.
    pub(super) fn placing<T>(&mut self, decide: impl FnOnce(&mut Placer<'_>) -> T) -> T {
        let sight = Sight::Known(&mut self.capacity);
        let mut placer = Placer::new(self.key.clone(), sight, &mut self.line, false, Duration::ZERO);
        let decided = decide(&mut placer);
        // Held pods that are not asked for again have no place: they would have asked.
        placer.finish(HashSet::new);
        decided
    }

    pub(super) fn has_node(&self, pod: &HeldPod) -> bool {
        self.capacity.room().node_of(&pod.pod.uid).is_some()
    }

    pub(super) fn count(&self) -> usize {
        self.capacity.room().nodes().count()
    }

    pub(super) fn end(self) -> Occupied {
        let Self { capacity, layers, began, needs, without_batch, .. } = self;
        Occupied { room: capacity.room().clone(), layers, began, needs, without_batch }
    }

    /// Finds nodes for pods without a gate, each with the domain that it is bound to. Placed pods are bound to their nodes.
    pub(super) fn schedule(&mut self, group: &Group, pods: Vec<(HeldPod, Option<String>)>) {
        let mut units: BTreeMap<Unit, Vec<Arc<str>>> = BTreeMap::new();
        for (pod, only) in pods {
            let uid = &pod.pod.uid;
            if let Some(node) = self.capacity.assumed(uid).cloned() {
                self.capacity.binds(uid, &node);
            } else if self.needs.contains_key(uid) {
                let batch = unit_of(group, pod.role(), pod.ordinal);
                let role = if batch.is_some() { String::new() } else { pod.role().to_owned() };
                units.entry((batch, role, only)).or_default().push(uid.clone());
            }
        }
        for ((batch, role, only), pods) in units {
            let no_fit = self.unit(group, batch, only.as_deref(), &pods);
            self.without_batch.extend(no_fit.filter(|_| batch.is_none()).map(|no_fit| (role, no_fit)));
        }
    }

    /// Finds nodes for the pods of a unit; returns why not all have one.
    fn unit(
        &mut self,
        group: &Group,
        batch: Option<(usize, u32)>,
        only: Option<&str>,
        pods: &[Arc<str>],
    ) -> Option<NoFit> {
        let coordination = batch.and_then(|(index, _)| group.coordination(index));
        let is_gang = coordination.and_then(|of| of.batching()).is_some_and(|batching| batching.gangs.is_some());
        let key = batch.and_then(|(index, _)| self.shared.get(&index)).cloned();
        let needs: Vec<_> = pods.iter().filter_map(|uid| self.needs.get(uid).cloned()).collect();
        let none = BTreeMap::new();
        let question = Question { only, ..Question::new(&needs, key.as_deref(), &none) };
        let room = self.capacity.room();
        let (placed, no_fit) = match place(room, &question) {
            Fit::Fits(placement) => (placement.nodes.into_iter().enumerate().collect(), None),
            Fit::Not(no_fit) if is_gang => return Some(no_fit),
            Fit::Not(no_fit) => (place_some(room, &question, &no_fit), Some(no_fit)),
        };
        let placed = placed.iter().filter_map(|(at, node)| Some((pods.get(*at)?, node)));
        placed.for_each(|(uid, node)| self.capacity.binds(uid, node));
        no_fit
    }
}

/// Returns the coordination and the number of the batch that a scheduler looks at as one: of several, the one whose pods share a
/// domain or are a gang.
fn unit_of(group: &Group, role: &str, ordinal: u32) -> Option<(usize, u32)> {
    let batches = || group.batches_of(role, ordinal);
    let together = batches().find(|batch| batch.batching.is_all_or_nothing());
    together.or_else(|| batches().next()).map(|batch| (batch.coordination.index, batch.index))
}

/// Returns a pod as it runs.
pub(super) fn running(pod: &PodFacts) -> PodFacts {
    PodFacts { held: false, scheduled: true, ready: true, ..PodFacts::clone(pod) }
}
