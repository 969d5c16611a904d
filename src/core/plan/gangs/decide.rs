//! Decisions on the held pods of a PodGroup that rolegate places.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::model::names::HOSTNAME;
use crate::model::{GangTree, GroupKey, HoldReason, LeafPlacement, LetGo, Minimum, Placement, Stance};
use crate::plan::decide::placed::Pin;
use crate::plan::gangs::grow::{Counts, Growth, at, eligible, is_met};
use crate::plan::gangs::shape::{LeafShare, Level, MOST_LEVELS, Shape};
use crate::plan::gangs::taken::Taken;
use crate::plan::placement::{Capacity, DomainLabel, Fit, Needs, Question, Share, Shared, place};
use crate::plan::view::PodRef;

/// The observed state of a PodGroup and its pods.
#[derive(Clone, Debug)]
pub struct TreeSnapshot {
    pub key: GroupKey,
    /// The PodGroup; `None` if it does not exist.
    pub tree: Option<Arc<GangTree>>,
    /// Pods that it places or has placed, without ended and terminating ones.
    pub pods: Vec<TreePod>,
    /// The node labels of the levels that it names; undefined levels are missing.
    pub keys: BTreeMap<Level, String>,
    /// How rolegate serves its namespace.
    pub stance: Stance,
    /// Whether the loop takes no action: the namespace is not known yet and may be served in any way, or another rolegate
    /// serves it.
    pub rests: bool,
    /// Whether the API server serves PodGroups.
    pub served: bool,
}

impl TreeSnapshot {
    /// Returns the reason to release all its held pods.
    pub fn lets_go(&self) -> Option<LetGo> {
        self.stance.lets_go()
    }

    /// Iterates over the pods with the gate of rolegate.
    pub fn held(&self) -> impl Iterator<Item = &PodRef> {
        self.pods.iter().filter(|pod| pod.held).map(|pod| &pod.pod)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePod {
    /// Name and uid.
    pub pod: PodRef,
    /// The leaf that it names.
    pub leaf: Option<String>,
    /// Whether it has the gate of rolegate.
    pub held: bool,
    /// Whether it has a node.
    pub scheduled: bool,
}

/// The decision on the held pods.
#[derive(Clone, Debug, Default)]
pub struct TreeDecision {
    /// The pods to release, with their places.
    pub plan: Option<TreePlan>,
    /// The reasons why the other pods are held.
    pub held: Vec<TreeHeld>,
    /// The node label and value of the domain with room for most of the pods that do not fit.
    pub best: Option<(String, String)>,
}

/// The pods to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePlan {
    /// Each pod with its node, if known, and its pin.
    pub pods: Vec<(PodRef, Option<Arc<str>>, Pin)>,
    /// The placement to commit before any pod is released.
    pub placement: Placement,
}

/// Pods that are held for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeHeld {
    pub reason: HoldReason,
    pub message: String,
    pub pods: Vec<PodRef>,
}

/// Decides on a PodGroup. Nodes with a label and value of `closed` are kept for others.
pub fn decide(snapshot: &TreeSnapshot, capacity: &Capacity, closed: &[DomainLabel]) -> TreeDecision {
    let Some(tree) = &snapshot.tree else { return TreeDecision::default() };
    let Some(shape) = Shape::of(tree) else {
        let why = if tree.cycles().is_empty() {
            format!("its subgroups are nested deeper than {MOST_LEVELS} levels")
        } else {
            "its subgroups are their own parents".to_owned()
        };
        return held(HoldReason::InvalidCoordination, why, snapshot);
    };
    let unknown: BTreeSet<_> =
        shape.shares.iter().map(|share| &share.level).filter(|level| !snapshot.keys.contains_key(level)).collect();
    if let Some(level) = unknown.first() {
        return held(HoldReason::TopologyMissing, level.missing(), snapshot);
    }
    let decider = Decider::new(snapshot, tree, &shape, capacity, closed);
    let mut decision = TreeDecision::default();
    decision.held.extend(decider.lost());
    if decider.held.iter().all(Vec::is_empty) {
        return decision;
    }
    if decider.is_blind() {
        let message = "it is not known yet what its pods ask for".to_owned();
        decision.held.push(TreeHeld { reason: HoldReason::RoomUnknown, message, pods: decider.left(&[]) });
        return decision;
    }
    let (plan, chosen) = decider.plan();
    let left = decider.left(&chosen);
    if !left.is_empty() {
        let (reason, message, best) = decider.why(&chosen);
        decision.held.push(TreeHeld { reason, message, pods: left });
        decision.best = best;
    }
    decision.plan = plan;
    decision
}

fn held(reason: HoldReason, message: String, snapshot: &TreeSnapshot) -> TreeDecision {
    let pods: Vec<_> = snapshot.held().cloned().collect();
    let held = (!pods.is_empty()).then_some(TreeHeld { reason, message, pods });
    TreeDecision { held: held.into_iter().collect(), ..TreeDecision::default() }
}

impl Level {
    fn missing(&self) -> String {
        match &self.topology {
            Some(topology) => format!("level {:?} is not defined by topology {topology:?}", self.name),
            None => format!("level {:?} is no node label, and no topology is named that defines it", self.name),
        }
    }
}

struct Decider<'a> {
    tree: &'a GangTree,
    shape: &'a Shape,
    capacity: &'a Capacity,
    closed: &'a [DomainLabel],
    /// The node labels of the shares.
    keys: Vec<&'a str>,
    /// Held pods by leaf.
    held: Vec<Vec<&'a TreePod>>,
    /// Released pods by leaf.
    went: Vec<Vec<&'a TreePod>>,
    /// Held pods that name no leaf of the PodGroup.
    lost: Vec<&'a TreePod>,
}

impl<'a> Decider<'a> {
    fn new(
        snapshot: &'a TreeSnapshot,
        tree: &'a GangTree,
        shape: &'a Shape,
        capacity: &'a Capacity,
        closed: &'a [DomainLabel],
    ) -> Self {
        let leaves = shape.leaves.len();
        let keys =
            shape.shares.iter().filter_map(|share| snapshot.keys.get(&share.level).map(String::as_str)).collect();
        let (held, went, lost) = (vec![Vec::new(); leaves], vec![Vec::new(); leaves], Vec::new());
        let mut decider = Self { tree, shape, capacity, closed, keys, held, went, lost };
        for pod in &snapshot.pods {
            let leaf = shape.leaf(pod.leaf.as_deref());
            let of = if pod.held { &mut decider.held } else { &mut decider.went };
            match leaf.and_then(|leaf| of.get_mut(leaf)) {
                Some(pods) => pods.push(pod),
                None if pod.held => decider.lost.push(pod),
                None => {}
            }
        }
        decider.held.iter_mut().for_each(|pods| pods.sort_by(|a, b| a.pod.cmp(&b.pod)));
        decider
    }

    fn lost(&self) -> Option<TreeHeld> {
        let first = self.lost.first()?;
        let leaves = self.shape.leaves.join(", ");
        let message = match &first.leaf {
            Some(leaf) => format!("{leaf:?} is no leaf of it; its leaves are {leaves}"),
            None => format!("pods name no leaf; its leaves are {leaves}"),
        };
        let pods = self.lost.iter().map(|pod| pod.pod.clone()).collect();
        Some(TreeHeld { reason: HoldReason::UnknownRole, message, pods })
    }

    /// Reports whether the watch of all pods has not shown each held pod yet.
    fn is_blind(&self) -> bool {
        self.held.iter().flatten().any(|pod| self.capacity.asked(&pod.pod.uid).is_none())
    }

    /// Returns the needs of the first `chosen` held pods of each leaf.
    fn parts(&self, chosen: &[u32]) -> Vec<Vec<Arc<Needs>>> {
        let first = |(leaf, pods): (usize, &Vec<&TreePod>)| {
            let count = usize::try_from(at(chosen, leaf)).unwrap_or(usize::MAX);
            pods.iter().take(count).filter_map(|pod| self.capacity.asked(&pod.pod.uid)).collect()
        };
        self.held.iter().enumerate().map(first).collect()
    }

    fn shares(&self) -> Vec<Share> {
        let share = |(of, key): (&LeafShare, &&str)| Share {
            key: (*key).to_owned(),
            parts: of.leaves.clone(),
            required: of.required,
            // A preferred domain does not bind later pods.
            fixed: self.domain_of(&of.leaves, key).filter(|_| of.required),
            hint: self.domain_of(&of.leaves, key).or_else(|| self.committed(&of.leaves, key)),
        };
        self.shape.shares.iter().zip(&self.keys).map(share).collect()
    }

    /// Returns the value of a node label in which pods of these leaves run, or will run.
    fn domain_of(&self, leaves: &[usize], key: &str) -> Option<String> {
        let room = self.capacity.room();
        let went = || leaves.iter().filter_map(|leaf| self.went.get(*leaf)).flatten();
        let of = |pod: &&TreePod| Some(room.facts(room.node_of(&pod.pod.uid)?)?.label(key)?.to_owned());
        let runs = went().find_map(of);
        let with_pods =
            || leaves.iter().copied().filter(|leaf| self.went.get(*leaf).is_some_and(|pods| !pods.is_empty()));
        runs.or_else(|| self.committed(&with_pods().collect::<Vec<_>>(), key))
    }

    fn committed(&self, leaves: &[usize], key: &str) -> Option<String> {
        let mut names = leaves.iter().filter_map(|leaf| self.shape.leaves.get(*leaf));
        names.find_map(|leaf| self.tree.placement.of(leaf)?.within.get(key).cloned())
    }

    fn plan(&self) -> (Option<TreePlan>, Counts) {
        let (fixed, held, shares) = (counts(&self.went), counts(&self.held), self.shares());
        let parts = self.parts(&held);
        let mut room = Taken::new(self.capacity.room(), &parts, &shares, self.closed);
        let mut chosen = Growth::new(self.shape, &fixed, &held, &mut room).run();
        let domains: Vec<_> = room.shares().into_iter().map(|share| share.fixed.or(share.hint)).collect();
        let places = Shared { domains, nodes: room.nodes() };
        let several = self.capacity.room().shared_hosts();
        let mut pods = Vec::new();
        let mut placement = self.tree.placement.clone();
        placement.0.retain(|leaf, _| {
            let at = self.shape.leaves.iter().position(|known| known == leaf);
            at.is_some_and(|at| self.went.get(at).is_some_and(|pods| !pods.is_empty()))
        });
        for leaf in 0..self.shape.leaves.len() {
            let of_leaf = |of: &[Vec<&'a TreePod>]| of.get(leaf).cloned().unwrap_or_default();
            let within = within(leaf, &shares, &places);
            let nodes = places.nodes.get(leaf).cloned().unwrap_or_default();
            let mut go: Vec<_> = of_leaf(&self.held).into_iter().zip(nodes.into_iter().map(Some)).collect();
            // A recreated pod stays with the others of its leaf, as it would without a gate.
            let again = self.made_again(leaf, &fixed, at(&chosen, leaf));
            let without = of_leaf(&self.held).into_iter().skip(go.len()).take(again).map(|pod| (pod, None));
            go.extend(without.collect::<Vec<_>>());
            if go.is_empty() {
                continue;
            }
            let count = u32::try_from(go.len()).unwrap_or(u32::MAX);
            chosen.get_mut(leaf).into_iter().for_each(|chosen| *chosen = count);
            let known = placement.0.entry(self.shape.leaves.get(leaf).cloned().unwrap_or_default()).or_default();
            let there = at(&fixed, leaf) + at(&held, leaf);
            *known =
                LeafPlacement { pods: known.pods.min(there).max(at(&fixed, leaf) + count), within: within.clone() };
            pods.extend(go.into_iter().map(|(pod, node)| {
                let host =
                    node.as_ref().and_then(|node| self.host(pod, node)).filter(|host| !several.contains(&**host));
                let pin = within.clone().into_iter().chain(host.map(|host| (HOSTNAME.to_owned(), host))).collect();
                (pod.pod.clone(), node, pin)
            }));
        }
        ((!pods.is_empty()).then_some(TreePlan { pods, placement }), chosen)
    }

    /// Returns how many more held pods of a leaf had a committed place, if others of the leaf run.
    fn made_again(&self, leaf: usize, fixed: &[u32], chosen: u32) -> usize {
        let committed = self.shape.leaves.get(leaf).and_then(|name| self.tree.placement.of(name));
        let went = at(fixed, leaf);
        let more = committed.filter(|_| went > 0).map_or(0, |of| of.pods.saturating_sub(went + chosen));
        usize::try_from(more).unwrap_or(usize::MAX)
    }

    /// Returns the node of a pod as a label, if no unmodelled constraint matters.
    fn host(&self, pod: &TreePod, node: &Arc<str>) -> Option<String> {
        let is_exact =
            self.capacity.needs(&pod.pod.uid).is_some_and(|needs| self.capacity.room().may_name_node_of(needs));
        Some(self.capacity.room().facts(node)?.label(HOSTNAME).filter(|_| is_exact)?.to_owned())
    }

    fn left(&self, chosen: &[u32]) -> Vec<PodRef> {
        let skip = |leaf: usize| usize::try_from(at(chosen, leaf)).unwrap_or(usize::MAX);
        let of = |(leaf, pods): (usize, &Vec<&TreePod>)| {
            pods.iter().skip(skip(leaf)).map(|pod| pod.pod.clone()).collect::<Vec<_>>()
        };
        self.held.iter().enumerate().flat_map(of).collect()
    }

    /// Returns why the remaining pods are held, and the domain with room for most of them.
    fn why(&self, chosen: &[u32]) -> (HoldReason, String, Option<(String, String)>) {
        let (went, held) = (counts(&self.went), counts(&self.held));
        let goes: Counts = went.iter().zip(chosen).map(|(went, chosen)| went + chosen).collect();
        let eligible = eligible(self.shape, &went, &held);
        let waits_for_room = (0..held.len()).find(|leaf| at(&eligible, *leaf) > at(chosen, *leaf));
        if let Some(leaf) = waits_for_room {
            let (message, best) = self.no_room(leaf, &goes, chosen);
            return (HoldReason::NoRoom, message, best);
        }
        let there: Counts = went.iter().zip(&held).map(|(went, held)| went + held).collect();
        (HoldReason::IncompleteBatch, self.incomplete(0, &there), None)
    }

    /// Returns what the minimum lacks, from the whole down to the first leaf that lacks pods.
    fn incomplete(&self, gang: usize, there: &[u32]) -> String {
        let Some(of) = self.shape.gangs.get(gang) else { return String::new() };
        let unmet = of.children.iter().copied().find(|child| !is_met(self.shape, *child, there));
        let pods: u32 = self.shape.leaves_of(gang).iter().map(|leaf| at(there, *leaf)).sum();
        let own = match of.minimum {
            Minimum::Pods(wanted) => format!("{} has {pods} of {} pods", of.what, wanted.max(1)),
            Minimum::Gangs(wanted) => {
                let met = of.children.iter().filter(|child| is_met(self.shape, **child, there)).count();
                format!("{} has {met} of {wanted} gangs", of.what)
            }
        };
        let is_met = is_met(self.shape, gang, there);
        match unmet.map(|child| self.incomplete(child, there)) {
            Some(below) if is_met => below,
            Some(below) => format!("{own}: {below}"),
            None => own,
        }
    }

    fn no_room(&self, leaf: usize, goes: &[u32], chosen: &[u32]) -> (String, Option<(String, String)>) {
        let (all, none) = (self.parts(&vec![u32::MAX; self.held.len()]), BTreeMap::new());
        let starts = is_met(self.shape, 0, goes);
        let covers =
            |share: &&(&LeafShare, Share)| starts.then_some(leaf).is_none_or(|leaf| share.1.parts.contains(&leaf));
        let mut shares: Vec<_> = self.shape.shares.iter().zip(self.shares()).collect();
        shares.sort_by_key(|(_, share)| share.parts.len());
        for (of, share) in shares.iter().filter(|(_, share)| share.required).filter(covers) {
            let skip = |leaf: usize| usize::try_from(at(chosen, leaf)).unwrap_or(usize::MAX);
            let rest =
                |leaf: &usize| all.get(*leaf).into_iter().flatten().skip(skip(*leaf)).cloned().collect::<Vec<_>>();
            let pods: Vec<_> = share.parts.iter().flat_map(rest).collect();
            let question = Question {
                only: share.fixed.as_deref(),
                closed: self.closed,
                ..Question::new(&pods, Some(&share.key), &none)
            };
            if let Fit::Not(why) = place(self.capacity.room(), &question) {
                // Pods beyond a running minimum keep no domain from others.
                let best = why.best.as_ref().filter(|_| !starts);
                let best = best.and_then(|best| Some((share.key.clone(), best.domain.clone()?)));
                return (why.describe(Some(&of.level.name), &of.what), best);
            }
        }
        let name = self.shape.leaves.get(leaf).filter(|name| !name.is_empty());
        let question = Question { closed: self.closed, ..Question::new(&[], None, &none) };
        let pods: Vec<_> = all.into_iter().flatten().collect();
        let what = name.map_or_else(|| "the PodGroup".to_owned(), |name| format!("gang {name}"));
        let message = match place(self.capacity.room(), &Question { pods: &pods, ..question }) {
            Fit::Not(why) => why.describe(None, "the PodGroup"),
            Fit::Fits(_) if starts => format!("{what} does not fit beside what runs"),
            Fit::Fits(_) => "each of its gangs fits by itself, and not all of them together".to_owned(),
        };
        (message, None)
    }
}

/// Returns the node labels that the pods of a leaf are bound to.
fn within(leaf: usize, shares: &[Share], places: &Shared) -> BTreeMap<String, String> {
    let covers = |(_, share): &(usize, &Share)| share.required && share.parts.contains(&leaf);
    let found = shares.iter().enumerate().filter(covers).filter_map(|(at, share)| {
        let domain = places.domains.get(at).cloned().flatten().or_else(|| share.fixed.clone())?;
        Some((share.key.clone(), domain))
    });
    found.collect()
}

/// Returns the number of pods of each leaf.
fn counts(pods: &[Vec<&TreePod>]) -> Counts {
    pods.iter().map(|pods| u32::try_from(pods.len()).unwrap_or(u32::MAX)).collect()
}

impl TreePlan {
    /// Returns the uids of the pods.
    pub fn uids(&self) -> HashSet<&Arc<str>> {
        self.pods.iter().map(|(pod, _, _)| &pod.uid).collect()
    }
}
