//! A cluster of nodes in racks and blocks, wholes whose pods need places on them, and the loop beside it, step by step. The watch of
//! its room is behind, and pods of others take some of it.

use std::fmt::Debug;

use rolegate::plan::placement::Capacity;
use rolegate::plan::{Pin, StatusWrite};

use crate::build;
use crate::prelude::*;

pub const RACK: &str = "rack";
/// Two racks are a block.
pub const BLOCK: &str = "block";
pub const HOST: &str = "kubernetes.io/hostname";

/// What has pods that are placed together: groups, or PodGroups that place their pods.
pub trait Whole: Clone + Debug {
    /// What is stored of one.
    type Stored: Clone + Debug + Default;

    fn cpu(&self, part: usize) -> u32;
    fn key(of: usize) -> GroupKey;
    /// What its pods have beside what all have.
    fn pod(&self, pod: &Pod) -> Value;
    /// Its index hears of it as it is stored.
    fn tell(world: &mut World<Self>, of: usize);
    fn tell_pod(index: &mut Index, change: Change<rolegate::api::Pod>);
    fn plan(world: &mut World<Self>, key: &GroupKey) -> Vec<Action>;
    /// A pod goes as it may.
    fn goes(world: &World<Self>, pod: &Pod, pin: &Pin) -> Result<(), TestCaseError>;
    /// Stores what the loop writes; true when it is told that this failed.
    fn store(world: &mut World<Self>, of: usize, write: StatusWrite, succeeds: bool) -> Result<bool, TestCaseError>;
    /// True for what the loop asks for beside releases and statuses.
    fn asks(_: &Action) -> bool {
        false
    }
    /// The pods of one gang are in one rack.
    fn gang(pod: &Pod) -> (usize, u32);
    /// The pods that share this are in one block.
    fn in_block(pod: &Pod) -> Option<(usize, usize)>;
    /// True when the scheduler itself keeps a gang together.
    const IS_NEAR: bool;
}

/// A pod as it is.
#[derive(Clone, Debug)]
pub struct Pod {
    pub of: usize,
    pub part: usize,
    pub ordinal: u32,
    pub held: bool,
    pub pin: Pin,
    pub node: Option<usize>,
    pub ready: bool,
}

/// Something that the watch of room has yet to tell.
enum Told {
    Node(Value),
    Pod(Value),
    PodGone(String),
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Pass(usize),
    /// The oldest of the writes that were asked for is done, or fails.
    Write(bool),
    /// The scheduler binds a pod: which, and to which of the nodes that take it.
    Bind(usize, usize),
    /// What is bound gets ready.
    Ready,
    /// The watch of nodes and pods tells of so many changes.
    Tell(usize),
    /// Another process leads, and lists nodes and pods.
    Restart,
    /// Time passes.
    Wait,
    Cordon(usize, bool),
    /// A pod is deleted and made again.
    Recreate(usize),
    /// All pods of the gang of one are deleted.
    Lose(usize),
    /// One of those that are yet to be made is.
    Make(usize),
    /// Somebody else's pod takes room.
    Other(usize, u32),
    OtherGone,
}

/// What happens where nobody disturbs.
pub fn calm() -> BoxedStrategy<Step> {
    prop_oneof![
        6 => (0..3_usize).prop_map(Step::Pass),
        8 => any::<u8>().prop_map(|luck| Step::Write(luck > 40)),
        6 => (0..9_usize, 0..9_usize).prop_map(|(pod, node)| Step::Bind(pod, node)),
        2 => Just(Step::Ready),
        6 => (1..4_usize).prop_map(Step::Tell),
        1 => Just(Step::Restart),
        1 => Just(Step::Wait),
    ]
    .boxed()
}

/// Pods are made again while others take room.
pub fn rough(calm: BoxedStrategy<Step>) -> BoxedStrategy<Step> {
    prop_oneof![
        8 => calm,
        1 => (0..6_usize, any::<bool>()).prop_map(|(node, on)| Step::Cordon(node, on)),
        2 => (0..20_usize).prop_map(Step::Recreate),
        1 => (0..6_usize, 1..6_u32).prop_map(|(node, cpu)| Step::Other(node, cpu)),
        1 => Just(Step::OtherGone),
    ]
    .boxed()
}

pub fn steps(step: BoxedStrategy<Step>) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step, 0..100)
}

pub struct World<W: Whole> {
    /// Rack and processors of each node.
    pub nodes: Vec<(u8, u32)>,
    pub wholes: Vec<W>,
    /// Version and content of what is stored of each.
    pub stored: Vec<(u64, W::Stored)>,
    cordoned: BTreeSet<usize>,
    /// By unique id.
    pub pods: BTreeMap<String, Pod>,
    /// Pods that are yet to be made: what they are of, their part of it and their number in that.
    pub unmade: Vec<(usize, usize, u32)>,
    /// Pods of others: unique id, node and processors.
    others: Vec<(String, usize, u32)>,
    pub index: Index,
    pub reconciler: Reconciler,
    pub capacity: Capacity,
    untold: Vec<Told>,
    asked: Vec<(usize, Action)>,
    pub now: Duration,
    pub version: u64,
    serial: u32,
    /// Some went to any node of their rack: whether they took what was promised to others is not known.
    pub is_loose: bool,
}

fn quiet() -> Reconciler {
    Reconciler::new(LoopOptions { bind_timeout: Duration::from_secs(1 << 20), ..LoopOptions::default() })
}

impl<W: Whole> World<W> {
    /// A world in which so many pods of a part of each are yet to be made.
    pub fn new((nodes, wholes): (Vec<(u8, u32)>, Vec<W>), parts: usize, pods: impl Fn(&W, usize) -> u32) -> Self {
        let stored = vec![(0, W::Stored::default()); wholes.len()];
        let mut world = Self {
            nodes,
            wholes,
            stored,
            cordoned: BTreeSet::new(),
            pods: BTreeMap::new(),
            unmade: Vec::new(),
            others: Vec::new(),
            index: Index::default(),
            reconciler: quiet(),
            capacity: Capacity::default(),
            untold: Vec::new(),
            asked: Vec::new(),
            now: Duration::ZERO,
            version: 0,
            serial: 0,
            is_loose: false,
        };
        for of in 0..world.wholes.len() {
            W::tell(&mut world, of);
            for part in 0..parts {
                world.unmade.extend((0..pods(&world.wholes[of], part)).map(|ordinal| (of, part, ordinal)));
            }
        }
        world.restart();
        world
    }

    pub fn rack(&self, node: usize) -> String {
        format!("r{}", self.nodes[node].0)
    }

    pub fn block(&self, node: usize) -> String {
        format!("b{}", self.nodes[node].0 / 2)
    }

    fn labels(&self, node: usize) -> [(&'static str, String); 3] {
        [(RACK, self.rack(node)), (BLOCK, self.block(node)), (HOST, format!("n{node}"))]
    }

    fn node(&self, number: usize) -> Value {
        let labels = json!(BTreeMap::from(self.labels(number)));
        let room = json!({ "cpu": self.nodes[number].1.to_string(), "pods": "100" });
        let spec = json!({ "unschedulable": self.cordoned.contains(&number) });
        build::with(build::node(&format!("n{number}"), &labels, &room), &json!({ "spec": spec }))
    }

    pub fn cpu(&self, pod: &Pod) -> u32 {
        self.wholes[pod.of].cpu(pod.part)
    }

    fn pod(&self, uid: &str) -> Value {
        let pod = &self.pods[uid];
        let ready = if pod.ready { "True" } else { "False" };
        let more = json!({
            "metadata": { "resourceVersion": self.version.to_string() },
            "spec": { "nodeName": pod.node.map(|node| format!("n{node}")), "nodeSelector": pod.pin },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        });
        let object = build::with(build::pod(uid, pod.held, &json!({ "cpu": self.cpu(pod) })), &more);
        build::with(object, &self.wholes[pod.of].pod(pod))
    }

    pub fn make(&mut self, (of, part, ordinal): (usize, usize, u32)) {
        self.serial += 1;
        let uid = format!("{of}-{part}-{ordinal}-{}", self.serial);
        let pod = Pod { of, part, ordinal, held: true, pin: Pin::new(), node: None, ready: false };
        self.pods.insert(uid.clone(), pod);
        self.tell_pod(&uid);
    }

    pub fn make_all(&mut self) {
        std::mem::take(&mut self.unmade).into_iter().for_each(|pod| self.make(pod));
    }

    /// The watch of the loop hears of a pod at once, that of room later.
    fn tell_pod(&mut self, uid: &str) {
        self.version += 1;
        let pod = self.pod(uid);
        W::tell_pod(&mut self.index, Change::Applied(serde_json::from_value(pod.clone()).unwrap()));
        self.untold.push(Told::Pod(pod));
    }

    /// Tells the watch of room of so many changes, the oldest first.
    pub fn tell(&mut self, count: usize) {
        for told in self.untold.drain(..count.min(self.untold.len())) {
            match told {
                Told::Node(node) => self.capacity.apply_node(&serde_json::from_value(node).unwrap()).unwrap(),
                Told::Pod(pod) => self.capacity.apply_pod(&serde_json::from_value(pod).unwrap()).unwrap(),
                Told::PodGone(uid) => self.capacity.remove_pod(&uid),
            }
        }
        self.reconciler.capacity_changed(self.capacity.freed(), self.now);
    }

    pub fn tells_all(&self) -> bool {
        self.untold.is_empty()
    }

    fn restart(&mut self) {
        self.reconciler = quiet();
        self.asked.clear();
        let nodes = (0..self.nodes.len()).map(|number| Told::Node(self.node(number)));
        let pods = self.pods.keys().map(|uid| Told::Pod(self.pod(uid)));
        let others = self.others.iter().map(|other| Told::Pod(Self::object_of(other)));
        (self.capacity, self.untold) = (Capacity::default(), nodes.chain(pods).chain(others).collect());
        let keys: Vec<_> = (0..self.wholes.len()).map(W::key).collect();
        self.reconciler.sync(keys.clone(), self.now);
        self.reconciler.lead(true, keys, self.now);
        self.tell(usize::MAX);
    }

    fn object_of((uid, node, cpu): &(String, usize, u32)) -> Value {
        let more = json!({ "metadata": { "namespace": "else" }, "spec": { "nodeName": format!("n{node}") } });
        build::with(build::pod(uid, false, &json!({ "cpu": cpu })), &more)
    }

    /// True when the loop asks for anything.
    pub fn pass(&mut self, of: usize) -> bool {
        let key = W::key(of);
        self.now += Duration::from_secs(1);
        self.reconciler.changed([key.clone()], self.now);
        let actions = W::plan(self, &key);
        let before = self.asked.len();
        let asked = actions.into_iter().filter(|action| !matches!(action, Action::Publish { .. }));
        self.asked.extend(asked.map(|action| (of, action)));
        self.asked.len() > before
    }

    /// The same for all.
    pub fn pass_all(&mut self) -> bool {
        (0..self.wholes.len()).filter(|of| self.pass(*of)).count() > 0
    }

    /// Does the oldest of what was asked for, and says how it ended; false when there is nothing.
    pub fn write(&mut self, succeeds: bool) -> Result<bool, TestCaseError> {
        if self.asked.is_empty() {
            return Ok(false);
        }
        let (of, action) = self.asked.remove(0);
        let mut failed = !succeeds;
        match &action {
            Action::Release { pod, pin, .. } => {
                let uid = pod.uid.to_string();
                if let (true, Some(found)) = (succeeds, self.pods.get(&uid).cloned()) {
                    W::goes(self, &found, pin)?;
                    self.is_loose |= !pin.contains_key(HOST);
                    if found.held {
                        self.pods.insert(uid.clone(), Pod { held: false, pin: pin.clone(), ..found });
                        self.tell_pod(&uid);
                    }
                }
            }
            Action::WriteStatus(write) => failed = W::store(self, of, write.clone(), succeeds)?,
            other => assert!(W::asks(other), "nobody asks for {other:?} here"),
        }
        self.reconciler.ended(W::key(of), action.ended(failed.then_some("")).unwrap(), self.now);
        Ok(true)
    }

    /// Does all that was asked for; true when there was anything.
    pub fn write_all(&mut self) -> Result<bool, TestCaseError> {
        let any = self.write(true)?;
        while self.write(true)? {}
        Ok(any)
    }

    /// What a node has left of its processors.
    pub fn left(&self, node: usize) -> i64 {
        let ours = self.pods.values().filter(|pod| pod.node == Some(node)).map(|pod| self.cpu(pod));
        let theirs = self.others.iter().filter(|(_, at, _)| *at == node).map(|(_, _, cpu)| *cpu);
        i64::from(self.nodes[node].1) - ours.chain(theirs).map(i64::from).sum::<i64>()
    }

    /// The nodes that the scheduler would bind a pod to.
    pub fn feasible(&self, uid: &str) -> Vec<usize> {
        let pod = &self.pods[uid];
        let beside = self.pods.values().filter(|other| W::gang(other) == W::gang(pod));
        let racks: BTreeSet<_> = beside.filter_map(|other| Some(self.nodes[other.node?].0)).collect();
        let selects = |(label, value): (&str, String)| pod.pin.get(label).is_none_or(|pinned| *pinned == value);
        let fits = |node: &usize| {
            !self.cordoned.contains(node)
                && self.labels(*node).into_iter().all(selects)
                && (!W::IS_NEAR || racks.is_empty() || racks.contains(&self.nodes[*node].0))
                && self.left(*node) >= i64::from(self.cpu(pod))
        };
        (0..self.nodes.len()).filter(fits).collect()
    }

    pub fn unbound(&self) -> Vec<String> {
        self.pods.iter().filter(|(_, pod)| !pod.held && pod.node.is_none()).map(|(uid, _)| uid.clone()).collect()
    }

    /// Binds one of the pods that are not bound; `Some(false)` when no node takes it, and nothing when all are bound.
    pub fn bind(&mut self, which: usize, at: usize) -> Option<bool> {
        let unbound = self.unbound();
        let uid = unbound.get(which % unbound.len().max(1))?.clone();
        let nodes = self.feasible(&uid);
        let Some(node) = nodes.get(at % nodes.len().max(1)) else { return Some(false) };
        self.pods.get_mut(&uid).unwrap().node = Some(*node);
        self.tell_pod(&uid);
        Some(true)
    }

    pub fn ready(&mut self) {
        let is_new = |(uid, pod): (&String, &Pod)| (pod.node.is_some() && !pod.ready).then(|| uid.clone());
        for uid in self.pods.iter().filter_map(is_new).collect::<Vec<_>>() {
            self.pods.get_mut(&uid).unwrap().ready = true;
            self.tell_pod(&uid);
        }
    }

    pub fn recreate(&mut self, uid: &str) {
        let was = self.delete(uid);
        self.make(was);
    }

    /// Deletes a pod: what it was.
    fn delete(&mut self, uid: &str) -> (usize, usize, u32) {
        self.version += 1;
        let gone = self.pod(uid);
        let pod = self.pods.remove(uid).unwrap();
        W::tell_pod(&mut self.index, Change::Deleted(serde_json::from_value(gone).unwrap()));
        self.untold.push(Told::PodGone(uid.to_owned()));
        (pod.of, pod.part, pod.ordinal)
    }

    fn lose(&mut self, is_lost: impl Fn(&Pod) -> bool) {
        let lost = self.pods.iter().filter(|(_, pod)| is_lost(pod)).map(|(uid, _)| uid.clone());
        for uid in lost.collect::<Vec<_>>() {
            let was = self.delete(&uid);
            self.unmade.push(was);
        }
        self.tell(usize::MAX);
    }

    fn cordon(&mut self, node: usize, on: bool) {
        if on {
            self.cordoned.insert(node)
        } else {
            self.cordoned.remove(&node)
        };
        self.untold.push(Told::Node(self.node(node)));
    }

    fn other_goes(&mut self) -> bool {
        let gone = self.others.pop().map(|(uid, ..)| Told::PodGone(uid));
        let any = gone.is_some();
        self.untold.extend(gone);
        any
    }

    /// All pods are made, nodes are open, others go if they are to, and each rack gets a node with room for everything.
    pub fn heal(&mut self, others_go: bool) {
        self.make_all();
        (0..self.nodes.len()).for_each(|node| self.cordon(node, false));
        while others_go && self.other_goes() {}
        for rack in 0..4 {
            self.nodes.push((rack, 1000));
            self.untold.push(Told::Node(self.node(self.nodes.len() - 1)));
        }
    }

    pub fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let nth = |which: usize, of: usize| which % of.max(1);
        match step {
            Step::Pass(of) => _ = self.pass(of % self.wholes.len()),
            Step::Write(succeeds) => _ = self.write(succeeds)?,
            Step::Bind(which, at) => _ = self.bind(which, at),
            Step::Ready => self.ready(),
            Step::Tell(count) => self.tell(count),
            Step::Restart => self.restart(),
            Step::Wait => self.now += Duration::from_secs(100),
            Step::Cordon(node, on) => self.cordon(node % self.nodes.len(), on),
            Step::Recreate(which) => {
                if let Some(uid) = self.pods.keys().nth(nth(which, self.pods.len())).cloned() {
                    self.recreate(&uid);
                }
            }
            Step::Lose(which) => {
                if let Some(one) = self.pods.values().nth(nth(which, self.pods.len())).cloned() {
                    self.lose(|pod| W::gang(pod) == W::gang(&one));
                }
            }
            Step::Make(which) => {
                if !self.unmade.is_empty() {
                    let pod = self.unmade.remove(nth(which, self.unmade.len()));
                    self.make(pod);
                }
            }
            Step::Other(node, cpu) => {
                let node = node % self.nodes.len();
                if self.left(node) >= i64::from(cpu) {
                    self.serial += 1;
                    let other = (format!("other-{}", self.serial), node, cpu);
                    self.untold.push(Told::Pod(Self::object_of(&other)));
                    self.others.push(other);
                }
            }
            Step::OtherGone => _ = self.other_goes(),
        }
        self.judge()
    }

    /// No gang is split over racks, nor what shares a block over blocks.
    pub fn judge(&self) -> Result<(), TestCaseError> {
        let (mut racks, mut blocks) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for pod in self.pods.values() {
            let Some(node) = pod.node else { continue };
            racks.entry(W::gang(pod)).or_default().insert(self.rack(node));
            blocks.entry(W::in_block(pod)).or_default().insert(self.block(node));
        }
        blocks.remove(&None);
        let split = racks.values().chain(blocks.values()).find(|domains| domains.len() > 1);
        prop_assert!(split.is_none(), "split over {split:?}: {:?}", self.pods);
        Ok(())
    }

    pub fn take(&mut self, steps: Vec<Step>) -> Result<(), TestCaseError> {
        steps.into_iter().try_for_each(|step| self.step(step))
    }
}
