//! KAI PodGroups that place their pods, on a cluster that changes under them: nothing goes before it is committed that the
//! whole has its minimum, no gang is split over racks, nor what shares a block over blocks; what goes is bound as long as
//! nobody else takes its room; and in the end all of it runs.

use rolegate::api::pod_group::POD_GROUP;
use rolegate::cluster::index::LookedUp;
use rolegate::model::{GangTree, Placement};
use rolegate::plan::placement::Sight;
use rolegate::plan::{Pin, StatusWrite, Target};

use crate::late_room::{LateRoom, Other, left};
use crate::prelude::*;
use crate::tried;

const RACK: &str = "rack";
const BLOCK: &str = "block";
const HOST: &str = "kubernetes.io/hostname";
/// Two replicas, each of leaders and workers in racks of one block.
const LEAVES: [&str; 4] = ["leaders-1", "workers-1", "leaders-2", "workers-2"];

#[derive(Clone, Debug)]
struct Shape {
    /// Rack and processors of each node; two racks are a block.
    nodes: Vec<(u8, u32)>,
    trees: Vec<TreeShape>,
}

#[derive(Clone, Debug)]
struct TreeShape {
    /// Members that leaders and workers need, and how many more there are.
    least: [u32; 2],
    more: [u32; 2],
    /// Replicas that are enough to begin.
    replicas: u32,
    cpu: [u32; 2],
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Make,
    Pass(usize),
    Write(bool),
    Bind(usize, usize),
    Tell(usize),
    Restart,
    Recreate(usize),
    Other(usize, u32),
}

fn shape() -> impl Strategy<Value = Shape> {
    let tree = ([1..2_u32, 1..4_u32], [0..2_u32, 0..2_u32], 1..3_u32, [1..3_u32, 1..4_u32])
        .prop_map(|(least, more, replicas, cpu)| TreeShape { least, more, replicas, cpu });
    (prop::collection::vec((0..4_u8, 2..9_u32), 2..6), prop::collection::vec(tree, 1..3))
        .prop_map(|(nodes, trees)| Shape { nodes, trees })
}

fn calm() -> BoxedStrategy<Step> {
    prop_oneof![
        4 => Just(Step::Make),
        6 => (0..2_usize).prop_map(Step::Pass),
        8 => any::<u8>().prop_map(|luck| Step::Write(luck > 40)),
        6 => (0..9_usize, 0..9_usize).prop_map(|(pod, node)| Step::Bind(pod, node)),
        6 => (1..4_usize).prop_map(Step::Tell),
        1 => Just(Step::Restart),
    ]
    .boxed()
}

fn rough() -> BoxedStrategy<Step> {
    prop_oneof![
        8 => calm(),
        1 => (0..20_usize).prop_map(Step::Recreate),
        1 => (0..6_usize, 1..6_u32).prop_map(|(node, cpu)| Step::Other(node, cpu)),
    ]
    .boxed()
}

#[derive(Clone, Debug)]
struct Pod {
    tree: usize,
    leaf: usize,
    held: bool,
    pin: Pin,
    node: Option<usize>,
}

struct World {
    shape: Shape,
    pods: BTreeMap<String, Pod>,
    /// Pods that are still to be made: tree and leaf.
    unmade: Vec<(usize, usize)>,
    others: Vec<Other>,
    placements: Vec<(u64, Placement)>,
    index: Index,
    reconciler: Reconciler,
    room: LateRoom,
    asked: Vec<(usize, Action)>,
    now: Duration,
    version: u64,
    serial: u32,
}

fn key(tree: usize) -> GroupKey {
    GroupKey::new("ns", &format!("job-{tree}"))
}

fn quiet() -> Reconciler {
    Reconciler::new(LoopOptions { bind_timeout: Duration::from_secs(1 << 20), ..LoopOptions::default() })
}

fn rack(node: (u8, u32)) -> String {
    format!("r{}", node.0)
}

fn block(node: (u8, u32)) -> String {
    format!("b{}", node.0 / 2)
}

impl World {
    fn new(shape: Shape) -> Self {
        let trees = shape.trees.len();
        let mut world = Self {
            shape,
            pods: BTreeMap::new(),
            unmade: Vec::new(),
            others: Vec::new(),
            placements: vec![(0, Placement::default()); trees],
            index: Index::default(),
            reconciler: quiet(),
            room: LateRoom::default(),
            asked: Vec::new(),
            now: Duration::ZERO,
            version: 0,
            serial: 0,
        };
        for tree in 0..trees {
            world.tell_tree(tree);
            for leaf in 0..LEAVES.len() {
                let TreeShape { least, more, .. } = world.shape.trees[tree];
                let count = usize::try_from(least[leaf % 2] + more[leaf % 2]).unwrap();
                world.unmade.extend(vec![(tree, leaf); count]);
            }
        }
        world.restart();
        world
    }

    fn tell_tree(&mut self, tree: usize) {
        self.version += 1;
        self.placements[tree].0 = self.version;
        let shape = &self.shape.trees[tree];
        let replica = |at: u32| {
            let leaf = |name: &str, least: u32| {
                let constraint = json!({ "requiredTopologyLevel": RACK });
                json!({ "name": format!("{name}-{at}"), "parent": format!("replica-{at}"), "minMember": least, "topologyConstraint": constraint })
            };
            let constraint = json!({ "requiredTopologyLevel": BLOCK });
            [
                json!({ "name": format!("replica-{at}"), "minSubGroup": 2, "topologyConstraint": constraint }),
                leaf("leaders", shape.least[0]),
                leaf("workers", shape.least[1]),
            ]
        };
        let annotations =
            BTreeMap::from([(names::PLACE, "enabled".to_owned()), (names::PLACEMENT, self.placements[tree].1.text())]);
        let object = json!({
            "metadata": {
                "name": &*key(tree).name, "namespace": "ns", "uid": format!("job-{tree}"),
                "resourceVersion": self.version.to_string(), "annotations": annotations,
            },
            "spec": { "minSubGroup": shape.replicas, "subGroups": ([1, 2].map(replica).concat()) },
        });
        let read = <GangTree as LookedUp>::of(POD_GROUP, &serde_json::from_value(object).unwrap());
        let name = ("ns".into(), key(tree).name);
        self.index.looked_up_change(0, POD_GROUP, Change::Applied((name, Some(self.version), Some(read))));
    }

    fn node(&self, number: usize) -> Value {
        let node = self.shape.nodes[number];
        let labels = json!({ RACK: rack(node), BLOCK: block(node), HOST: format!("n{number}") });
        json!({
            "metadata": { "name": format!("n{number}"), "labels": labels },
            "status": {
                "allocatable": { "cpu": node.1.to_string(), "pods": "100" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        })
    }

    fn cpu(&self, pod: &Pod) -> u32 {
        self.shape.trees[pod.tree].cpu[pod.leaf % 2]
    }

    fn pod(&self, uid: &str) -> Value {
        let pod = &self.pods[uid];
        let gates = if pod.held { json!([{ "name": names::GATE }]) } else { json!([]) };
        json!({
            "metadata": {
                "name": uid, "namespace": "ns", "uid": uid, "resourceVersion": self.version.to_string(),
                "labels": { (names::PLACED_BY): "any", (names::KAI_SUBGROUP): LEAVES[pod.leaf] },
                "annotations": { (names::KAI_POD_GROUP): &*key(pod.tree).name },
            },
            "spec": {
                "schedulingGates": gates,
                "nodeName": pod.node.map(|node| format!("n{node}")),
                "nodeSelector": pod.pin,
                "containers": [{ "resources": { "requests": { "cpu": self.cpu(pod) } } }],
            },
        })
    }

    fn make(&mut self, tree: usize, leaf: usize) {
        self.serial += 1;
        let uid = format!("{tree}-{leaf}-{}", self.serial);
        self.pods.insert(uid.clone(), Pod { tree, leaf, held: true, pin: Pin::new(), node: None });
        self.tell_pod(&uid);
    }

    /// The watch of the PodGroup's pods hears of a pod at once, that of room later.
    fn tell_pod(&mut self, uid: &str) {
        self.version += 1;
        let pod = self.pod(uid);
        self.index.tree_pod_change(0, Change::Applied(serde_json::from_value(pod.clone()).unwrap()));
        self.room.untold.push(Told::Pod(pod));
    }

    fn tell(&mut self, count: usize) {
        self.room.tell(count);
        self.reconciler.capacity_changed(self.room.capacity.freed(), self.now);
    }

    fn restart(&mut self) {
        self.reconciler = quiet();
        self.asked.clear();
        let nodes = (0..self.shape.nodes.len()).map(|number| Told::Node(self.node(number)));
        let pods = self.pods.keys().map(|uid| Told::Pod(self.pod(uid)));
        let others = self.others.iter().map(|other| Told::Pod(object_of(other)));
        self.room = LateRoom::listed(nodes.chain(pods).chain(others));
        let keys: Vec<_> = (0..self.shape.trees.len()).map(|tree| key(tree).of_pod_group()).collect();
        self.reconciler.sync(keys.clone(), self.now);
        self.reconciler.lead(true, keys, self.now);
        self.tell(usize::MAX);
    }

    fn pass(&mut self, tree: usize) -> bool {
        let key = key(tree);
        self.now += Duration::from_secs(1);
        self.reconciler.changed([key.of_pod_group()], self.now);
        let snapshot = self.index.tree_snapshot(&key);
        let sight = Some(Sight::Known(&mut self.room.capacity));
        let actions = self.reconciler.pass(&key.of_pod_group(), &snapshot, sight, self.now, "");
        let before = self.asked.len();
        let asked = actions.into_iter().filter(|action| !matches!(action, Action::Publish { .. }));
        self.asked.extend(asked.map(|action| (tree, action)));
        self.asked.len() > before
    }

    /// Does the oldest of what was asked for, and says how it ended; false when there is nothing.
    fn write(&mut self, succeeds: bool) -> Result<bool, TestCaseError> {
        if self.asked.is_empty() {
            return Ok(false);
        }
        let failed = !succeeds;
        let (of, action) = self.asked.remove(0);
        let ended = match action {
            Action::Release { pod, pin, .. } => {
                let uid = pod.uid.to_string();
                if let (true, Some(found)) = (succeeds, self.pods.get(&uid).cloned().filter(|found| found.held)) {
                    let committed = self.placements[of].1.of(LEAVES[found.leaf]).cloned().unwrap_or_default();
                    for label in [RACK, BLOCK] {
                        prop_assert!(
                            committed.within.contains_key(label) && pin.get(label) == committed.within.get(label),
                            "{pod:?} goes to {pin:?}, committed {committed:?}"
                        );
                    }
                    self.pods.insert(uid.clone(), Pod { held: false, pin, ..found });
                    self.tell_pod(&uid);
                }
                Ended::Written { target: Target::Object(pod.uid), failure: failed.then(String::new) }
            }
            Action::WriteStatus(StatusWrite::Placement { tree, placement }) => {
                let is_current = tree.resource_version == self.placements[of].0.to_string();
                if succeeds && is_current {
                    let shape = &self.shape.trees[of];
                    let has = |at: usize| placement.of(LEAVES[at]).map_or(0, |leaf| leaf.pods) >= shape.least[at % 2];
                    let replicas = [[0, 1], [2, 3]].iter().filter(|leaves| leaves.iter().all(|at| has(*at))).count();
                    let started = self.pods.values().any(|pod| pod.tree == of && !pod.held);
                    prop_assert!(
                        started || replicas >= usize::try_from(shape.replicas).unwrap(),
                        "{placement:?} is committed, too little to begin"
                    );
                    self.placements[of].1 = placement;
                    self.tell_tree(of);
                }
                let failed = failed || !is_current;
                Ended::Written { target: Target::Status, failure: failed.then(String::new) }
            }
            other => panic!("nobody asks for {other:?} here"),
        };
        self.reconciler.ended(key(of).of_pod_group(), ended, self.now);
        Ok(true)
    }

    fn left(&self, node: usize) -> i64 {
        let ours = self.pods.values().filter(|pod| pod.node == Some(node)).map(|pod| self.cpu(pod));
        left(node, self.shape.nodes[node].1, ours, &self.others)
    }

    /// Binds one of the pods that are not bound; `Some(false)` when no node takes it.
    fn bind(&mut self, which: usize, at: usize) -> Option<bool> {
        let unbound: Vec<_> =
            self.pods.iter().filter(|(_, pod)| !pod.held && pod.node.is_none()).map(|(uid, _)| uid.clone()).collect();
        let uid = unbound.get(which % unbound.len().max(1))?.clone();
        let pod = self.pods[&uid].clone();
        let fits = |node: &usize| {
            let of = self.shape.nodes[*node];
            let labels = [(RACK, rack(of)), (BLOCK, block(of)), (HOST, format!("n{node}"))];
            let selected = labels.iter().all(|(label, value)| pod.pin.get(*label).is_none_or(|pin| pin == value));
            selected && self.left(*node) >= i64::from(self.cpu(&pod))
        };
        let nodes: Vec<_> = (0..self.shape.nodes.len()).filter(fits).collect();
        let Some(node) = nodes.get(at % nodes.len().max(1)) else { return Some(false) };
        self.pods.get_mut(&uid).unwrap().node = Some(*node);
        self.tell_pod(&uid);
        Some(true)
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let (nodes, trees) = (self.shape.nodes.len(), self.shape.trees.len());
        match step {
            Step::Make => {
                if let Some((tree, leaf)) = self.unmade.pop() {
                    self.make(tree, leaf);
                }
            }
            Step::Pass(tree) => _ = self.pass(tree % trees),
            Step::Write(succeeds) => _ = self.write(succeeds)?,
            Step::Bind(which, at) => _ = self.bind(which, at),
            Step::Tell(count) => self.tell(count),
            Step::Restart => self.restart(),
            Step::Recreate(which) => {
                if let Some(uid) = self.pods.keys().nth(which % self.pods.len().max(1)).cloned() {
                    let gone = self.pod(&uid);
                    let Pod { tree, leaf, .. } = self.pods.remove(&uid).unwrap();
                    self.index.tree_pod_change(0, Change::Deleted(serde_json::from_value(gone).unwrap()));
                    self.room.untold.push(Told::PodGone(uid));
                    self.make(tree, leaf);
                }
            }
            Step::Other(node, cpu) => {
                let node = node % nodes;
                if self.left(node) >= i64::from(cpu) {
                    self.serial += 1;
                    self.others.push((format!("other-{}", self.serial), node, cpu));
                    let other = object_of(self.others.last().unwrap());
                    self.room.untold.push(Told::Pod(other));
                }
            }
        }
        self.judge()
    }

    /// Always: pods of a leaf that run are in one rack, those of a replica in one block.
    fn judge(&self) -> Result<(), TestCaseError> {
        let (mut racks, mut blocks) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for pod in self.pods.values() {
            let Some(node) = pod.node.map(|node| self.shape.nodes[node]) else { continue };
            racks.entry((pod.tree, pod.leaf)).or_default().insert(rack(node));
            blocks.entry((pod.tree, pod.leaf / 2)).or_default().insert(block(node));
        }
        let split = racks.values().chain(blocks.values()).find(|domains| domains.len() > 1);
        prop_assert!(split.is_none(), "split over {split:?}: {:?}", self.pods);
        Ok(())
    }

    /// Goes on until nothing changes any more.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        while let Some((tree, leaf)) = self.unmade.pop() {
            self.make(tree, leaf);
        }
        for _ in 0..500 {
            self.tell(usize::MAX);
            let mut moved = false;
            for tree in 0..self.shape.trees.len() {
                moved |= self.pass(tree);
            }
            while self.write(true)? {
                moved = true;
            }
            self.tell(usize::MAX);
            while self.bind(0, 0) == Some(true) {
                moved = true;
            }
            self.judge()?;
            if !moved {
                // What failed is tried again after a pause.
                self.now += Duration::from_secs(600);
                let again = (0..self.shape.trees.len()).map(|tree| self.pass(tree)).fold(false, |all, one| all | one);
                if !again && self.room.untold.is_empty() {
                    return Ok(());
                }
            }
        }
        Err(TestCaseError::fail("it never comes to rest"))
    }

    fn runs(&self) -> bool {
        self.pods.values().all(|pod| pod.node.is_some())
    }
}

proptest! {
    #![proptest_config(tried(300))]

    #[test]
    fn what_goes_undisturbed_is_bound(shape in shape(), steps in prop::collection::vec(calm(), 0..60)) {
        let mut world = World::new(shape);
        for step in steps {
            world.step(step)?;
        }
        world.settle()?;
        let pending: Vec<_> = world.pods.iter().filter(|(_, pod)| !pod.held && pod.node.is_none()).collect();
        prop_assert!(pending.is_empty(), "no node takes {pending:?} of {:?}", world.shape);
    }

    #[test]
    fn no_gang_is_split_and_all_of_it_runs_in_the_end(
        shape in shape(), steps in prop::collection::vec(rough(), 0..80),
    ) {
        let mut world = World::new(shape);
        for step in steps {
            world.step(step)?;
        }
        // Others go, and every rack gets a node with room for everything.
        while let Some((uid, _, _)) = world.others.pop() {
            world.room.untold.push(Told::PodGone(uid));
        }
        for rack in 0..4 {
            world.shape.nodes.push((rack, 1000));
            let node = world.node(world.shape.nodes.len() - 1);
            world.room.untold.push(Told::Node(node));
        }
        // Who was bound to a node that others have filled meanwhile is deleted by its owner.
        world.settle()?;
        let stuck: Vec<_> =
            world.pods.iter().filter(|(_, pod)| !pod.held && pod.node.is_none()).map(|(uid, _)| uid.clone()).collect();
        for uid in stuck {
            let at = world.pods.keys().position(|known| *known == uid).unwrap();
            world.step(Step::Recreate(at))?;
        }
        world.settle()?;
        prop_assert!(world.runs(), "held or without a node: {:?}\n{:?}", world.pods, world.placements);
    }
}
