//! KAI PodGroups that place their pods, on a cluster that changes under them: nothing goes before it is committed that the
//! whole has its minimum, no gang is split over racks, nor what shares a block over blocks; what goes is bound as long as
//! nobody else takes its room; and in the end all of it runs.

use rolegate::api::pod_group::POD_GROUP;
use rolegate::cluster::index::LookedUp;
use rolegate::model::{GangTree, Placement};
use rolegate::plan::placement::Sight;
use rolegate::plan::{Pin, StatusWrite};

use crate::cluster::{BLOCK, Pod, RACK, Step, Whole, World, calm, rough, steps};
use crate::prelude::*;
use crate::tried;

/// Two replicas, each of leaders and workers in racks of one block.
const LEAVES: [&str; 4] = ["leaders-1", "workers-1", "leaders-2", "workers-2"];

#[derive(Clone, Debug)]
struct Tree {
    /// Members that leaders and workers need, and how many more there are.
    least: [u32; 2],
    more: [u32; 2],
    /// Replicas that are enough to begin.
    replicas: u32,
    cpu: [u32; 2],
}

fn world() -> impl Strategy<Value = (Vec<(u8, u32)>, Vec<Tree>)> {
    let tree = ([1..2_u32, 1..4_u32], [0..2_u32, 0..2_u32], 1..3_u32, [1..3_u32, 1..4_u32])
        .prop_map(|(least, more, replicas, cpu)| Tree { least, more, replicas, cpu });
    (prop::collection::vec((0..4_u8, 2..9_u32), 2..6), prop::collection::vec(tree, 1..3))
}

fn made() -> BoxedStrategy<Step> {
    prop_oneof![7 => calm(), 1 => (0..40_usize).prop_map(Step::Make)].boxed()
}

fn name(of: usize) -> GroupKey {
    GroupKey::new("ns", &format!("job-{of}"))
}

impl Whole for Tree {
    type Stored = Placement;

    const IS_NEAR: bool = false;

    fn cpu(&self, part: usize) -> u32 {
        self.cpu[part % 2]
    }

    fn key(of: usize) -> GroupKey {
        name(of).of_pod_group()
    }

    fn pod(&self, pod: &Pod) -> Value {
        json!({ "metadata": {
            "labels": { (names::PLACED_BY): "any", (names::KAI_SUBGROUP): LEAVES[pod.part] },
            "annotations": { (names::KAI_POD_GROUP): &*name(pod.of).name },
        } })
    }

    fn tell(world: &mut World<Self>, of: usize) {
        world.version += 1;
        world.stored[of].0 = world.version;
        let shape = &world.wholes[of];
        let replica = |at: u32| {
            let within = |level: &str| json!({ "requiredTopologyLevel": level });
            let leaf = |name: &str, least: u32| json!({ "name": format!("{name}-{at}"), "parent": format!("replica-{at}"), "minMember": least, "topologyConstraint": within(RACK) });
            [
                json!({ "name": format!("replica-{at}"), "minSubGroup": 2, "topologyConstraint": within(BLOCK) }),
                leaf("leaders", shape.least[0]),
                leaf("workers", shape.least[1]),
            ]
        };
        let annotations = json!({ (names::PLACE): "enabled", (names::PLACEMENT): world.stored[of].1.text() });
        let key = name(of);
        let object = json!({
            "metadata": {
                "name": &*key.name, "namespace": "ns", "uid": &*key.name, "annotations": annotations,
                "resourceVersion": world.version.to_string(),
            },
            "spec": { "minSubGroup": shape.replicas, "subGroups": ([1, 2].map(replica).concat()) },
        });
        let read = <GangTree as LookedUp>::OF(POD_GROUP, &serde_json::from_value(object).unwrap());
        let change = Change::Applied((("ns".into(), key.name), Some(world.version), Some(read)));
        world.index.looked_up_change(0, POD_GROUP, change);
    }

    fn tell_pod(index: &mut Index, change: Change<rolegate::api::Pod>) {
        index.tree_pod_change(0, change);
    }

    fn plan(world: &mut World<Self>, key: &GroupKey) -> Vec<Action> {
        let of = (0..world.wholes.len()).find(|of| Self::key(*of) == *key).unwrap();
        let snapshot = world.index.tree_snapshot(&name(of));
        world.reconciler.pass(key, &snapshot, Some(Sight::Known(&mut world.capacity)), world.now, "")
    }

    fn goes(world: &World<Self>, pod: &Pod, pin: &Pin) -> Result<(), TestCaseError> {
        let committed = world.stored[pod.of].1.of(LEAVES[pod.part]).cloned().unwrap_or_default();
        for label in [RACK, BLOCK].into_iter().filter(|_| pod.held) {
            prop_assert!(
                committed.within.contains_key(label) && pin.get(label) == committed.within.get(label),
                "{pod:?} goes to {pin:?}, committed {committed:?}"
            );
        }
        Ok(())
    }

    fn store(world: &mut World<Self>, of: usize, write: StatusWrite, succeeds: bool) -> Result<bool, TestCaseError> {
        let StatusWrite::Placement { tree, placement } = write else { panic!("nobody writes {write:?} here") };
        let is_current = tree.resource_version == world.stored[of].0.to_string();
        if succeeds && is_current {
            let shape = &world.wholes[of];
            let has = |at: usize| placement.of(LEAVES[at]).map_or(0, |leaf| leaf.pods) >= shape.least[at % 2];
            let replicas = [[0, 1], [2, 3]].iter().filter(|leaves| leaves.iter().all(|at| has(*at))).count();
            let started = world.pods.values().any(|pod| pod.of == of && !pod.held);
            prop_assert!(
                started || replicas >= usize::try_from(shape.replicas).unwrap(),
                "{placement:?} is committed, too little to begin"
            );
            world.stored[of].1 = placement;
            Self::tell(world, of);
        }
        Ok(!(succeeds && is_current))
    }

    fn gang(pod: &Pod) -> (usize, u32) {
        (pod.of, u32::try_from(pod.part).unwrap())
    }

    fn in_block(pod: &Pod) -> Option<(usize, usize)> {
        Some((pod.of, pod.part / 2))
    }
}

impl World<Tree> {
    fn of((nodes, trees): (Vec<(u8, u32)>, Vec<Tree>)) -> Self {
        Self::new((nodes, trees), LEAVES.len(), |tree, part| tree.least[part % 2] + tree.more[part % 2])
    }

    /// Goes on until nothing changes any more.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.make_all();
        for _ in 0..500 {
            self.tell(usize::MAX);
            let mut moved = self.pass_all();
            moved |= self.write_all()?;
            self.tell(usize::MAX);
            while self.bind(0, 0) == Some(true) {
                moved = true;
            }
            self.judge()?;
            if !moved {
                // What failed is tried again after a pause.
                self.now += Duration::from_secs(600);
                if !self.pass_all() && self.tells_all() {
                    return Ok(());
                }
            }
        }
        Err(TestCaseError::fail("it never comes to rest"))
    }
}

proptest! {
    #![proptest_config(tried(300))]

    #[test]
    fn what_goes_undisturbed_is_bound(world in world(), steps in steps(made())) {
        let mut world = World::of(world);
        world.take(steps)?;
        world.settle()?;
        let pending = world.unbound();
        prop_assert!(pending.is_empty(), "no node takes {pending:?} of {:?}", world.wholes);
    }

    #[test]
    fn no_gang_is_split_and_all_of_it_runs_in_the_end(world in world(), steps in steps(rough(made()))) {
        let mut world = World::of(world);
        world.take(steps)?;
        world.heal(true);
        world.settle()?;
        // Who was bound to a node that others have filled meanwhile is deleted by its owner.
        world.unbound().iter().for_each(|uid| world.recreate(uid));
        world.settle()?;
        let runs = world.pods.values().all(|pod| pod.node.is_some());
        prop_assert!(runs, "held or without a node: {:?}\n{:?}", world.pods, world.stored);
    }
}
