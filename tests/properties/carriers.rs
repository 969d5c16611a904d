//! Several objects that claim one group come and go, between any two writes of the loop: the oldest controls, the others are
//! told so and commit nothing, and in the end every pod runs.

use rolegate::api::status::GroupStatus;
use rolegate::cluster::index::CarrierObject;
use rolegate::plan::{MissingGroup, Question, StatusWrite};

use crate::build;
use crate::prelude::*;

const PODS: u32 = 6;
const NOW: &str = "2026-01-01T00:00:00Z";

#[derive(Clone, Debug)]
enum Step {
    /// A RoleCoordination is made, at this second.
    Create(usize, u8),
    Delete(usize),
    /// What is released gets ready.
    Ready,
    Pass,
    /// The oldest of the writes that were asked for is done, or fails.
    Write(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..3_usize, 0..3_u8).prop_map(|(which, second)| Step::Create(which, second)),
        1 => (0..3_usize).prop_map(Step::Delete),
        2 => Just(Step::Ready),
        4 => Just(Step::Pass),
        6 => any::<u8>().prop_map(|luck| Step::Write(luck > 50)),
    ]
}

/// A RoleCoordination as it is stored.
#[derive(Clone)]
struct Stored {
    second: u8,
    uid: String,
    version: u64,
    status: GroupStatus,
}

struct World {
    index: Index,
    reconciler: Reconciler,
    now: Duration,
    version: u64,
    carriers: BTreeMap<usize, Stored>,
    /// Held, ready.
    pods: Vec<(bool, bool)>,
    asked: Vec<Action>,
}

fn key() -> GroupKey {
    GroupKey::new("ns", "pd")
}

fn name(which: usize) -> String {
    format!("c{which}")
}

impl World {
    fn new() -> Self {
        let options = LoopOptions {
            missing_group: MissingGroup::Hold,
            progress_deadline: Duration::from_secs(86_400),
            ..LoopOptions::default()
        };
        let mut reconciler = Reconciler::new(options);
        reconciler.sync([], Duration::ZERO);
        reconciler.lead(true, [key()], Duration::ZERO);
        let mut index = Index::default();
        let more = json!({ "metadata": { "namespace": "ns", "uid": "pd", "resourceVersion": "1" } });
        let group = build::with(build::group("pd", &[("prefill", PODS)], &json!([])), &more);
        index.apply_carrier(None, CarrierObject::rbg(ROLE_BASED_GROUP, &build::typed(group)));
        let pods = vec![(true, false); PODS as usize];
        let (now, carriers, asked) = (Duration::ZERO, BTreeMap::new(), Vec::new());
        let mut world = Self { index, reconciler, now, version: 1, carriers, pods, asked };
        world.create(0, 0);
        (0..PODS).for_each(|ordinal| world.tell_pod(ordinal));
        world
    }

    fn tell_pod(&mut self, ordinal: u32) {
        self.version += 1;
        let (held, ready) = self.pods[ordinal as usize];
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "p", "uid": "p", "controller": true });
        let more = json!({
            "metadata": {
                "resourceVersion": self.version.to_string(), "ownerReferences": [owner],
                "labels": build::labels("pd", "prefill"),
            },
            "status": { "conditions": [{ "type": "Ready", "status": if ready { "True" } else { "False" } }] },
        });
        let pod = build::with(build::pod(&format!("p-{ordinal}"), held, &json!({})), &more);
        self.index.pod_change(0, Change::Applied(build::typed(pod)));
    }

    fn object(&self, which: usize) -> CarrierObject {
        let Stored { second, uid, version, status } = &self.carriers[&which];
        let segments = json!({ "segmentPlacement": { "segmentSize": { "prefill": which + 1 } } });
        let object = json!({
            "metadata": {
                "name": name(which), "namespace": "ns", "uid": uid, "resourceVersion": version.to_string(),
                "generation": which + 1, "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
            },
            "spec": { "groupRef": { "name": "pd" }, "coordination": [{ "name": "s", "strategy": segments }] },
            "status": status,
        });
        CarrierObject::coordination(serde_json::from_value(object).unwrap())
    }

    fn create(&mut self, which: usize, second: u8) {
        if !self.carriers.contains_key(&which) {
            self.version += 1;
            let (uid, version) = (format!("{}-{}", name(which), self.version), self.version);
            self.carriers.insert(which, Stored { second, uid, version, status: GroupStatus::default() });
            self.index.apply_carrier(None, self.object(which));
        }
    }

    fn delete(&mut self, which: usize) {
        if self.carriers.contains_key(&which) {
            let known = self.object(which);
            self.carriers.remove(&which);
            self.index.carrier_gone(&known);
        }
    }

    /// The oldest, of two of one age the first by name.
    fn controlling(&self) -> Option<(&usize, &Stored)> {
        self.carriers.iter().min_by_key(|(which, stored)| (stored.second, **which))
    }

    fn ready(&mut self) {
        for ordinal in 0..PODS {
            let (held, ready) = self.pods[ordinal as usize];
            if !held && !ready {
                self.pods[ordinal as usize] = (false, true);
                self.tell_pod(ordinal);
            }
        }
    }

    fn pass(&mut self) -> Result<bool, TestCaseError> {
        self.now += Duration::from_secs(40);
        self.reconciler.changed([key()], self.now);
        let actions = self.reconciler.pass(&key(), &self.index.snapshot(&key()), None, self.now, NOW);
        let controlling = self.controlling().map(|(which, stored)| (name(*which), stored.status.clone()));
        for action in &actions {
            Self::judge(action, controlling.as_ref())?;
        }
        let asked = actions.into_iter().filter(|action| !matches!(action, Action::Publish { .. }));
        let before = self.asked.len();
        self.asked.extend(asked);
        Ok(self.asked.len() > before)
    }

    fn judge(action: &Action, controlling: Option<&(String, GroupStatus)>) -> Result<(), TestCaseError> {
        let oldest = controlling.map(|(name, _)| name.as_str());
        match action {
            Action::WriteStatus(StatusWrite::Group { group, .. }) => {
                prop_assert!(
                    oldest.is_none_or(|oldest| group.carrier.name == oldest),
                    "{} controls",
                    group.carrier.name
                );
            }
            Action::WriteStatus(StatusWrite::Conflicted { other, status }) => {
                prop_assert!(oldest.is_some_and(|oldest| other.carrier.name != oldest), "{oldest:?} is told so");
                prop_assert_eq!(&status.coordination_state, &other.status.coordination_state);
                prop_assert_eq!(status.observed_generation, other.carrier.generation);
                prop_assert!(says_conflicted(status));
            }
            Action::Release { pod, .. } => {
                let ordinal: u32 = pod.name.trim_start_matches("p-").parse().unwrap();
                // Without any claim nothing batches the pods.
                let Some((name, status)) = controlling else { return Ok(()) };
                let committed = status.coordination_state.first().and_then(|state| state.progress["prefill"].released);
                prop_assert!(
                    committed.is_some_and(|count| ordinal < count),
                    "{name} has {committed:?}, {ordinal} goes"
                );
            }
            _ => {}
        }
        Ok(())
    }

    /// Does the oldest of what was asked for, and says how it ended; false when there is nothing.
    fn write(&mut self, succeeds: bool) -> bool {
        if self.asked.is_empty() {
            return false;
        }
        let action = self.asked.remove(0);
        match &action {
            Action::Release { pod, .. } if succeeds => {
                let ordinal: u32 = pod.name.trim_start_matches("p-").parse().unwrap();
                if std::mem::take(&mut self.pods[ordinal as usize].0) {
                    self.tell_pod(ordinal);
                }
            }
            Action::WriteStatus(
                StatusWrite::Group { group: of, status, .. } | StatusWrite::Conflicted { other: of, status },
            ) if succeeds => self.store(&of.carrier.uid, &of.carrier.resource_version, status),
            Action::Read(Question::Pods) if succeeds => {
                let all = (0..PODS).map(|ordinal| format!("p-{ordinal}")).collect();
                self.index.running_pods_read(&key(), &all, Some(self.version));
            }
            // Its pods came without labels of their place, which are marks.
            Action::Release { .. } | Action::WriteStatus(_) | Action::Read(_) | Action::Mark(_) => {}
            other => panic!("nobody asks for {other:?} here"),
        }
        self.reconciler.ended(key(), action.ended((!succeeds).then_some("")).unwrap(), self.now);
        true
    }

    /// Writes a status unless the object was changed since, or is another one.
    fn store(&mut self, uid: &str, version: &str, status: &GroupStatus) {
        let is_it = |stored: &Stored| stored.uid == uid && stored.version.to_string() == version;
        if let Some((which, stored)) = self.carriers.iter_mut().find(|(_, stored)| is_it(stored)) {
            self.version += 1;
            (stored.version, stored.status) = (self.version, status.clone());
            let which = *which;
            self.index.apply_carrier(None, self.object(which));
        }
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..200 {
            while self.write(true) {}
            self.ready();
            if !self.pass()? {
                return Ok(());
            }
        }
        Err(TestCaseError::fail("it does not come to rest"))
    }
}

fn says_conflicted(status: &GroupStatus) -> bool {
    status.conditions.iter().any(|condition| condition.r#type == "Conflicted" && condition.status == "True")
}

proptest! {
    #![proptest_config(super::tried(300))]

    #[test]
    fn the_oldest_of_those_that_come_and_go_controls(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Create(which, second) => world.create(which, second),
                Step::Delete(which) => world.delete(which),
                Step::Ready => world.ready(),
                Step::Pass => _ = world.pass()?,
                Step::Write(succeeds) => _ = world.write(succeeds),
            }
        }
        world.settle()?;
        prop_assert!(world.pods.iter().all(|(held, _)| !held), "{:?}", world.pods);
        let oldest = world.controlling().map(|(which, _)| *which);
        for (which, stored) in &world.carriers {
            prop_assert_eq!(says_conflicted(&stored.status), Some(*which) != oldest, "{}", name(*which));
        }
    }
}
