//! Groups whose batches must share a rack, on a cluster that changes under them: no batch is split over racks, each goes where
//! its domain was committed, what is released is bound as long as nobody else takes its room, and in the end all of it runs.

mod world;

use self::world::{GroupShape, HOST, Pod, Shape, World};
use crate::prelude::*;
use crate::tried;

#[derive(Clone, Copy, Debug)]
enum Step {
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
    /// All pods of the batch of one are deleted.
    Lose(usize),
    /// One of those that were deleted is made again.
    Make(usize),
    /// Somebody else's pod takes room.
    Other(usize, u32),
    OtherGone,
}

fn shape() -> impl Strategy<Value = Shape> {
    let group = (1..4_u32, [1..4_u32, 1..5_u32], any::<bool>(), 0..2_i32)
        .prop_map(|(batches, cpu, parallel, priority)| GroupShape { batches, cpu, parallel, priority });
    let nodes = prop::collection::vec((0..3_u8, 2..9_u32), 2..6);
    (nodes, prop::collection::vec(group, 1..4)).prop_map(|(nodes, groups)| Shape { nodes, groups })
}

fn calm() -> BoxedStrategy<Step> {
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

/// Batches are lost and come back pod by pod: writes of some are on their way while others come.
fn steady() -> BoxedStrategy<Step> {
    prop_oneof![
        10 => calm(),
        1 => (0..20_usize).prop_map(Step::Lose),
        6 => (0..3_usize).prop_map(Step::Make),
    ]
    .boxed()
}

fn rough() -> BoxedStrategy<Step> {
    prop_oneof![
        8 => calm(),
        1 => (0..6_usize, any::<bool>()).prop_map(|(node, on)| Step::Cordon(node, on)),
        2 => (0..20_usize).prop_map(Step::Recreate),
        1 => (0..6_usize, 1..6_u32).prop_map(|(node, cpu)| Step::Other(node, cpu)),
        1 => Just(Step::OtherGone),
    ]
    .boxed()
}

impl World {
    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let (nodes, groups) = (self.shape.nodes.len(), self.shape.groups.len());
        match step {
            Step::Pass(group) => _ = self.pass(group % groups),
            Step::Write(succeeds) => _ = self.write(succeeds)?,
            Step::Bind(which, at) => _ = self.bind(which, at),
            Step::Ready => self.ready(),
            Step::Tell(count) => self.tell(count),
            Step::Restart => self.restart(),
            Step::Wait => self.now += Duration::from_secs(100),
            Step::Cordon(node, on) => self.cordon(node % nodes, on),
            Step::Recreate(which) => {
                let uid = self.pods.keys().nth(which % self.pods.len()).unwrap().clone();
                self.recreate(&uid);
            }
            Step::Lose(which) => {
                let batch = self.pods.values().nth(which % self.pods.len().max(1)).map(Self::batch);
                let lost = self.pods.iter().filter(|(_, pod)| Some(Self::batch(pod)) == batch);
                for uid in lost.map(|(uid, _)| uid.clone()).collect::<Vec<_>>() {
                    let was = self.delete(&uid);
                    self.unmade.push(was);
                }
                self.tell(usize::MAX);
            }
            Step::Make(which) => {
                if !self.unmade.is_empty() {
                    let (group, role, ordinal) = self.unmade.remove(which % self.unmade.len());
                    self.make(group, role, ordinal);
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
            Step::OtherGone => {
                if let Some((uid, _, _)) = self.others.pop() {
                    self.room.untold.push(Told::PodGone(uid));
                }
            }
        }
        self.judge()
    }
    fn judge(&self) -> Result<(), TestCaseError> {
        let mut racks: BTreeMap<_, BTreeSet<u8>> = BTreeMap::new();
        for pod in self.pods.values() {
            racks.entry(Self::batch(pod)).or_default().extend(pod.node.map(|node| self.shape.nodes[node].0));
        }
        prop_assert!(racks.values().all(|racks| racks.len() < 2), "a batch is split: {racks:?}");
        Ok(())
    }

    /// No node is promised to more pods than it takes.
    fn keeps_promises(&self) -> Result<(), TestCaseError> {
        for node in (0..self.shape.nodes.len()).filter(|_| !self.is_loose) {
            let name = format!("n{node}");
            let is_promised = |pod: &&Pod| !pod.held && pod.node.is_none() && pod.pin.get(HOST) == Some(&name);
            let promised: u32 = self.pods.values().filter(is_promised).map(|pod| self.cpu(pod)).sum();
            let left = self.left(node);
            prop_assert!(i64::from(promised) <= left, "{name} has {left} and promised {promised}: {:?}", self.pods);
        }
        Ok(())
    }

    /// What is released can be bound in whatever order.
    fn bind_all(&mut self, seed: usize) -> Result<(), TestCaseError> {
        for turn in 0.. {
            let Some(bound) = self.bind(seed.wrapping_add(turn), seed.wrapping_mul(turn + 1) >> 3) else {
                return Ok(());
            };
            if !bound && self.unbound().iter().all(|uid| self.feasible(uid).is_empty()) {
                prop_assert!(false, "released and never bound: {:?}\n{:?}", self.unbound(), self.pods);
            }
        }
        Ok(())
    }

    fn settle(&mut self, disturbed: bool) -> Result<(), TestCaseError> {
        (0..self.shape.nodes.len()).for_each(|node| self.cordon(node, false));
        for (group, role, ordinal) in std::mem::take(&mut self.unmade) {
            self.make(group, role, ordinal);
        }
        for rack in 0..3 {
            self.shape.nodes.push((rack, 1000));
            self.room.untold.push(Told::Node(self.node(self.shape.nodes.len() - 1)));
        }
        for _ in 0..100 {
            while self.write(true)? {}
            self.tell(usize::MAX);
            for which in 0..self.unbound().len() {
                _ = self.bind(which, 0);
            }
            // Whoever finds that somebody else has taken the room of a pod deletes it.
            for uid in self.unbound().into_iter().filter(|uid| self.feasible(uid).is_empty()).collect::<Vec<_>>() {
                prop_assert!(disturbed, "released and never bound: {uid} of {:?}", self.pods);
                self.recreate(&uid);
            }
            self.ready();
            self.now += Duration::from_secs(1);
            let asked = (0..self.shape.groups.len()).filter(|group| self.pass(*group)).count() > 0;
            self.judge()?;
            if !asked && self.pods.values().all(|pod| pod.ready) {
                return Ok(());
            }
        }
        prop_assert!(false, "not everything runs: {:?}\n{:?}", self.pods, self.statuses);
        Ok(())
    }
}

proptest! {
    #![proptest_config(tried(300))]

    #[test]
    fn what_is_released_is_bound_where_nobody_else_takes_its_room(
        shape in shape(),
        steps in prop::collection::vec(calm(), 0..80),
        seed in any::<u16>(),
    ) {
        let mut world = World::new(shape);
        for step in steps {
            world.step(step)?;
        }
        world.bind_all(usize::from(seed))?;
        world.settle(false)?;
    }

    #[test]
    fn no_room_is_promised_twice_to_pods_that_come_one_by_one(
        shape in shape(),
        steps in prop::collection::vec(steady(), 0..100),
    ) {
        let mut world = World::new(shape);
        for _ in 0..10 {
            (0..world.shape.groups.len()).for_each(|group| _ = world.pass(group));
            while world.write(true)? {}
            world.bind_all(0)?;
            world.ready();
            world.tell(usize::MAX);
        }
        for step in steps {
            world.step(step)?;
            world.keeps_promises()?;
        }
        world.settle(true)?;
    }

    #[test]
    fn no_batch_is_split_and_all_of_it_runs_in_the_end(
        shape in shape(),
        steps in prop::collection::vec(rough(), 0..100),
    ) {
        let mut world = World::new(shape);
        for step in steps {
            world.step(step)?;
        }
        world.settle(true)?;
    }
}
