//! Groups whose batches must share a rack, on a cluster that changes under them: no batch is split over racks, each goes where
//! its domain was committed, what is released is bound as long as nobody else takes its room, and in the end all of it runs.

use rolegate::api::status::GroupStatus;
use rolegate::cluster::index::CarrierObject;
use rolegate::plan::placement::Sight;
use rolegate::plan::{Pin, StatusWrite};

use crate::build;
use crate::cluster::{HOST, Pod, RACK, Step, Whole, World, calm, rough, steps};
use crate::prelude::*;
use crate::tried;

const NOW: &str = "2026-01-01T00:00:00Z";
/// Replicas in one batch.
const SIZES: [(&str, u32); 2] = [("prefill", 2), ("decode", 1)];

#[derive(Clone, Debug)]
struct Batches {
    count: u32,
    /// Processors that a prefill and a decode ask for.
    cpu: [u32; 2],
    parallel: bool,
    priority: i32,
}

fn world() -> impl Strategy<Value = (Vec<(u8, u32)>, Vec<Batches>)> {
    let group = (1..4_u32, [1..4_u32, 1..5_u32], any::<bool>(), 0..2_i32)
        .prop_map(|(count, cpu, parallel, priority)| Batches { count, cpu, parallel, priority });
    (prop::collection::vec((0..3_u8, 2..9_u32), 2..6), prop::collection::vec(group, 1..4))
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

impl Whole for Batches {
    type Stored = GroupStatus;

    const IS_NEAR: bool = true;

    fn cpu(&self, part: usize) -> u32 {
        self.cpu[part]
    }

    fn key(of: usize) -> GroupKey {
        GroupKey::new("ns", &format!("g{of}"))
    }

    fn pod(&self, pod: &Pod) -> Value {
        let (group, role) = (Self::key(pod.of).name, SIZES[pod.part].0);
        let set = format!("{group}-{role}");
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": "s", "controller": true });
        json!({
            "metadata": {
                "name": format!("{set}-{}", pod.ordinal), "labels": build::labels(&group, role), "ownerReferences": [owner],
            },
            "spec": { "priority": self.priority },
        })
    }

    fn tell(world: &mut World<Self>, of: usize) {
        world.version += 1;
        world.stored[of].0 = world.version;
        let Batches { count, parallel, .. } = world.wholes[of];
        let mode = if parallel { "Parallel" } else { "Sequential" };
        let affinity = json!({ "topologyKey": RACK, "ratios": BTreeMap::from(SIZES), "batchMode": mode });
        let pair = build::coordination("pair", &json!({ "affinityScheduling": affinity }));
        let name = Self::key(of).name;
        let group = build::group(&name, &SIZES.map(|(role, size)| (role, count * size)), &json!([pair]));
        let metadata = json!({ "namespace": "ns", "uid": &*name, "resourceVersion": world.version.to_string() });
        let group = build::with(group, &json!({ "metadata": metadata, "status": world.stored[of].1 }));
        world.index.apply_carrier(None, CarrierObject::rbg(ROLE_BASED_GROUP, &build::typed(group)));
    }

    fn tell_pod(index: &mut Index, change: Change<rolegate::api::Pod>) {
        index.pod_change(0, change);
    }

    fn plan(world: &mut World<Self>, key: &GroupKey) -> Vec<Action> {
        let snapshot = world.index.snapshot(key);
        world.reconciler.pass(key, &snapshot, Some(Sight::Known(&mut world.capacity)), world.now, NOW)
    }

    fn goes(world: &World<Self>, pod: &Pod, pin: &Pin) -> Result<(), TestCaseError> {
        let state = &world.stored[pod.of].1.coordination_state[0];
        let committed = state.domains.get(&Self::gang(pod).1.to_string());
        let is_there = committed.is_some() && pin.get(RACK) == committed;
        prop_assert!(is_there, "{pod:?} goes to {pin:?}, committed {committed:?}");
        let released = state.progress[SIZES[pod.part].0].released.unwrap_or(0);
        prop_assert!(pod.ordinal < released, "{pod:?} goes, of {released}");
        Ok(())
    }

    fn store(world: &mut World<Self>, of: usize, write: StatusWrite, succeeds: bool) -> Result<bool, TestCaseError> {
        let StatusWrite::Group { group, status, .. } = write else { panic!("nobody writes {write:?} here") };
        if succeeds && group.carrier.resource_version == world.stored[of].0.to_string() {
            world.stored[of].1 = *status;
            Self::tell(world, of);
        }
        Ok(!succeeds)
    }

    /// Its pods came without labels of their place.
    fn asks(action: &Action) -> bool {
        matches!(action, Action::Read(_) | Action::Mark(_))
    }

    fn gang(pod: &Pod) -> (usize, u32) {
        (pod.of, pod.ordinal / SIZES[pod.part].1)
    }

    fn in_block(_: &Pod) -> Option<(usize, usize)> {
        None
    }
}

impl World<Batches> {
    /// A world in which all pods are made.
    fn of((nodes, groups): (Vec<(u8, u32)>, Vec<Batches>)) -> Self {
        let mut world = Self::new((nodes, groups), SIZES.len(), |group, part| group.count * SIZES[part].1);
        world.make_all();
        world.tell(usize::MAX);
        world
    }

    /// No node is promised to more pods than it takes.
    fn keeps_promises(&self) -> Result<(), TestCaseError> {
        for node in (0..self.nodes.len()).filter(|_| !self.is_loose) {
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
            let Some(bound) = self.bind(seed.wrapping_add(turn), seed.wrapping_mul(turn + 1) >> 3) else { break };
            let is_stuck = !bound && self.unbound().iter().all(|uid| self.feasible(uid).is_empty());
            prop_assert!(!is_stuck, "released and never bound: {:?}\n{:?}", self.unbound(), self.pods);
        }
        Ok(())
    }

    fn settle(&mut self, disturbed: bool) -> Result<(), TestCaseError> {
        self.heal(false);
        for _ in 0..100 {
            self.write_all()?;
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
            let asked = self.pass_all();
            self.judge()?;
            if !asked && self.pods.values().all(|pod| pod.ready) {
                return Ok(());
            }
        }
        prop_assert!(false, "not everything runs: {:?}\n{:?}", self.pods, self.stored);
        Ok(())
    }
}

proptest! {
    #![proptest_config(tried(300))]

    #[test]
    fn what_is_released_is_bound_where_nobody_else_takes_its_room(
        world in world(), steps in steps(calm()), seed in any::<u16>(),
    ) {
        let mut world = World::of(world);
        world.take(steps)?;
        world.bind_all(usize::from(seed))?;
        world.settle(false)?;
    }

    #[test]
    fn no_room_is_promised_twice_to_pods_that_come_one_by_one(world in world(), steps in steps(steady())) {
        let mut world = World::of(world);
        for _ in 0..10 {
            world.pass_all();
            world.write_all()?;
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
    fn no_batch_is_split_and_all_of_it_runs_in_the_end(world in world(), steps in steps(rough(calm()))) {
        let mut world = World::of(world);
        world.take(steps)?;
        world.settle(true)?;
    }
}
