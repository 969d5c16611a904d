//! Passes over a PodGroup whose writes fail, whose pods get no node, or which is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::api::scheduling::SchedulingPod;
use crate::api::{Node, PodGroup};
use crate::build::{self, typed, with};
use crate::model::{GroupKey, Out};
use crate::plan::gangs::TreePod;
use crate::plan::reconcile::action::{Answer, Ended, Question, Target};
use crate::plan::{LoopOptions, PodRef, Reconciler};

const SECOND: Duration = Duration::from_secs(1);
const NOTHING: [&str; 0] = [];

/// Two pods of a PodGroup, and a node with room for both.
struct World {
    reconciler: Reconciler,
    capacity: Capacity,
    snapshot: TreeSnapshot,
    now: Uptime,
}

impl World {
    fn new() -> Self {
        let key = GroupKey::new("ns", "job");
        let group: PodGroup = serde_json::from_value(json!({
            "metadata": {
                "name": "job", "namespace": "ns", "uid": "u", "resourceVersion": "1",
                "annotations": { "rolegate.dev/place": "enabled" },
            },
            "spec": { "minMember": 2 },
        }))
        .unwrap();
        let mut capacity = Capacity::default();
        let node: Node = typed(build::node("n", &json!({ "kubernetes.io/hostname": "n" }), &json!({ "pods": "2" })));
        capacity.apply_node(&node).unwrap();
        let pod = |name: &str| {
            let labels = json!({ "rolegate.dev/pod-group": "job" });
            let more = json!({ "metadata": { "labels": labels, "annotations": { "pod-group-name": "job" } } });
            let object: SchedulingPod = typed(with(build::pod(name, true, &json!({})), &more));
            capacity.apply_pod(&object).unwrap();
            TreePod { pod: PodRef { name: name.into(), uid: name.into() }, leaf: None, held: true, scheduled: false }
        };
        let snapshot = TreeSnapshot {
            pods: ["a", "b"].map(pod).to_vec(),
            tree: Some(Arc::new(GangTree::from_pod_group(&group, None))),
            keys: BTreeMap::new(),
            stance: crate::model::Stance::default(),
            rests: false,
            served: true,
            key,
        };
        let mut reconciler = Reconciler::new(LoopOptions::default());
        reconciler.lead(true, [], Duration::ZERO);
        reconciler.sync([snapshot.key.of_pod_group()], Duration::ZERO);
        Self { reconciler, capacity, snapshot, now: Duration::ZERO }
    }

    /// Returns the kinds of the actions of a pass, some seconds later.
    fn pass(&mut self, after: u32) -> Vec<&'static str> {
        self.now += SECOND * after;
        let key = self.snapshot.key.of_pod_group();
        self.reconciler.changed([key.clone()], self.now);
        let sight = Some(Sight::Known(&mut self.capacity));
        let actions = self.reconciler.pass(&key, &self.snapshot, sight, self.now, "");
        let kind = |action: &Action| match action {
            Action::Release { .. } => "release",
            Action::WriteStatus(StatusWrite::Placement { .. }) => "commit",
            Action::Read(Question::Gone { .. }) => "verify",
            Action::Publish { about: About::PodGroup(_), .. } => "tell",
            Action::Publish { about: About::Pod(_), .. } => "tell a pod",
            _ => "else",
        };
        actions.iter().map(kind).collect()
    }

    fn ended(&mut self, ended: Ended) {
        self.reconciler.ended(self.snapshot.key.of_pod_group(), ended, self.now);
    }

    fn held(&self) -> Vec<(HoldReason, u32)> {
        self.reconciler.held().collect()
    }

    fn released(&mut self) {
        self.snapshot.pods.iter_mut().for_each(|pod| pod.held = false);
    }
}

fn placed(succeeds: bool) -> Ended {
    Ended::Written { target: Target::Status, failure: (!succeeds).then(String::new) }
}

#[test]
fn nothing_goes_before_it_is_noted_and_a_note_that_fails_again_and_again_is_told() {
    let mut world = World::new();
    for _ in 0..3 {
        assert_eq!(world.pass(100), ["commit", "tell"]);
        assert_eq!(world.pass(1), NOTHING, "it is on its way");
        world.ended(placed(false));
        assert!(!world.pass(0).contains(&"release"));
    }
    assert!(world.held().contains(&(HoldReason::PatchFailed, 2)), "{:?}", world.held());
    assert_eq!(world.pass(100)[0], "commit");
    world.ended(placed(true));
    assert_eq!(world.pass(1), ["release", "release", "tell"]);
    assert_eq!(world.pass(1), NOTHING);
}

#[test]
fn a_release_that_fails_is_tried_again_and_told() {
    let mut world = World::new();
    world.pass(1);
    world.ended(placed(true));
    world.pass(1);
    for pod in ["a", "b"] {
        world.ended(Ended::Written { target: Target::Object(pod.into()), failure: Some("no".to_owned()) });
    }
    assert_eq!(world.pass(0), NOTHING, "it may be a moment's");
    assert_eq!(world.held(), [(HoldReason::PatchFailed, 2)]);
    assert_eq!(world.pass(60), ["release", "release", "tell", "tell a pod"]);
}

#[test]
fn pods_that_get_no_node_lose_their_room_after_a_while() {
    let mut world = World::new();
    world.pass(1);
    world.ended(placed(true));
    world.pass(1);
    world.released();
    world.pass(1);
    assert!(world.capacity.assumed("a").is_some());
    world.pass(100);
    assert_eq!(world.held(), [(HoldReason::PlacedNotBound, 0)]);
    assert!(world.capacity.assumed("a").is_none());
}

#[test]
fn pods_of_a_pod_group_that_is_gone_go_when_that_is_certain() {
    let mut world = World::new();
    world.capacity.remove_node("n");
    world.pass(1);
    world.snapshot.tree = None;
    assert_eq!(world.pass(1), NOTHING);
    assert_eq!(world.held(), [(HoldReason::GroupMissing, 2)]);
    assert_eq!(world.pass(40), ["verify"]);
    world.ended(Ended::Read(Answer::Gone(false)));
    assert_eq!(world.pass(1), NOTHING, "its time begins again");
    assert_eq!(world.pass(40), ["verify"]);
    world.ended(Ended::Read(Answer::Gone(true)));
    assert_eq!(world.pass(0), ["release", "release"]);
}

#[test]
fn that_a_pod_group_is_gone_is_verified_again_after_a_pass_over_something_else() {
    type Change = fn(&mut TreeSnapshot);
    let interruptions: [Change; 2] =
        [|snapshot| snapshot.rests = true, |snapshot| snapshot.stance.out = Some(Out::OptedOut)];
    for interruption in interruptions {
        let mut world = World::new();
        world.capacity.remove_node("n");
        world.pass(1);
        world.snapshot.tree = None;
        world.pass(1);
        assert_eq!(world.pass(40), ["verify"]);
        let missing = world.snapshot.clone();
        world.released();
        interruption(&mut world.snapshot);
        world.ended(Ended::Read(Answer::Gone(true)));
        assert_eq!(world.pass(0), NOTHING);
        world.snapshot = missing;
        assert_eq!(world.pass(40), ["verify"], "nobody has looked since these pods came");
    }
}

#[test]
fn a_definition_that_is_gone_opens_no_hold() {
    let mut world = World::new();
    world.capacity.remove_node("n");
    world.pass(1);
    (world.snapshot.tree, world.snapshot.served) = (None, false);
    for _ in 0..5 {
        assert_eq!(world.pass(100), NOTHING);
    }
    world.snapshot.served = true;
    assert_eq!(world.pass(1), NOTHING, "whoever brings the PodGroups needs a moment");
    assert_eq!(world.pass(40), ["verify"]);
}

#[test]
fn a_namespace_that_opts_out_has_its_pods_back_and_who_does_not_lead_does_nothing() {
    let mut world = World::new();
    world.reconciler.lead(false, [], world.now);
    assert_eq!(world.pass(1), NOTHING);
    world.reconciler.lead(true, [], world.now);
    world.snapshot.stance.mode = crate::model::Mode::Observe;
    assert_eq!(world.pass(1), ["release", "release"]);
}

#[test]
fn what_went_without_a_place_is_not_said_to_be_over_while_nodes_are_not_watched() {
    let mut world = World::new();
    let key = world.snapshot.key.of_pod_group();
    let mut tells = |sight: Sight<'_>, snapshot: &TreeSnapshot, at: u32| {
        let actions = world.reconciler.pass(&key, snapshot, Some(sight), SECOND * at, "");
        actions.iter().any(|action| matches!(action, Action::Publish { about: About::PodGroup(_), .. }))
    };
    let (mut snapshot, sight) = (world.snapshot.clone(), "nodes may not be read");
    assert!(!tells(Sight::Refused(sight), &snapshot, 0));
    assert!(tells(Sight::Refused(sight), &snapshot, 2));
    snapshot.pods.iter_mut().for_each(|pod| pod.held = false);
    assert!(!tells(Sight::NotYet, &snapshot, 4));
}
