//! Workloads of several roles with their controllers, as far as a rollout is concerned.

use rolegate::model::{Group, RolledWorkload, RollingBounds, RolloutClaim, WorkloadKey, WorkloadKind};
use rolegate::plan::reconcile::rounds::Rounds;
use rolegate::plan::rollout::{Edit, Ordinal, Pauses, RoleRollout, RolloutPlan, excess, plan_rollout, stages};

use crate::build;
use crate::prelude::*;

/// A pod, or a whole group of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pod {
    pub revision: u8,
    pub ready: bool,
}

/// How a workload replaces pods at or above its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// StatefulSet: from the top, the next one when the one above is ready.
    StatefulSet,
    /// Any old one, any time: the worst there may be.
    Any,
}

#[derive(Clone, Debug)]
pub struct Role {
    pub controller: Controller,
    pub pods: Vec<Option<Pod>>,
    pub partition: u32,
    pub floor: u32,
    /// What recreated pods below the partition come back as.
    pub current: u8,
    pub update: u8,
    /// Updated replicas up to here are excused: they were granted before somebody edited another role.
    pub excused: u32,
    /// How often somebody edited it.
    edits: u32,
    /// The most replicas that were updated and ready at once.
    pub most: u32,
}

#[derive(Clone, Debug, Default)]
pub struct World {
    pub bounds: Vec<RollingBounds>,
    pub roles: BTreeMap<String, Role>,
    /// Revisions whose pods never get ready.
    pub broken: BTreeSet<u8>,
    /// True while nothing has moved for a while.
    pub stuck: bool,
    /// Which roles were edited together, as the loop remembers it.
    rounds: Rounds,
    /// The same in other words: since when, and which roles were edited in the newest round, and the round of each.
    since: Duration,
    edited: BTreeSet<String>,
    round: BTreeMap<String, u32>,
    now: Duration,
}

/// How long an edit waits for those of the other roles; each plan takes a second.
const SETTLE: Duration = Duration::from_secs(5);

pub fn mk_bounds(roles: &[&str], max_skew: u32, max_unavailable: Unavailable, partition: u32) -> RollingBounds {
    let update = json!({ "maxSkew": format!("{max_skew}%"), "partition": format!("{partition}%") });
    let roll = json!({ "name": "roll", "roles": roles, "strategy": { "rollingUpdate": update } });
    let group = build::typed(build::group("pd", &[], &json!([roll])));
    let bounds = RollingBounds::all_of(&Group::from_rbg(ROLE_BASED_GROUP, &group)).remove(0);
    RollingBounds { max_unavailable, ..bounds }
}

impl Role {
    pub fn new(desired: u32, controller: Controller) -> Self {
        let pods = (0..desired).map(|_| Some(Pod { revision: 0, ready: true })).collect();
        Self { controller, pods, partition: FROZEN, floor: 0, current: 0, update: 1, excused: 0, edits: 0, most: 0 }
    }

    pub fn desired(&self) -> u32 {
        u32::try_from(self.pods.len()).unwrap()
    }

    pub fn is_updated(&self, pod: Option<Pod>) -> bool {
        pod.is_some_and(|pod| pod.revision == self.update)
    }

    pub fn updated(&self) -> u32 {
        u32::try_from(self.pods.iter().filter(|pod| self.is_updated(**pod)).count()).unwrap()
    }

    pub fn unavailable(&self) -> u32 {
        u32::try_from(self.pods.iter().filter(|pod| pod.is_none_or(|pod| !pod.ready)).count()).unwrap()
    }

    /// The workload as its watch reports it.
    fn workload(&self, name: &str, edits: u32) -> RolledWorkload {
        let claim = RolloutClaim { group: GroupKey::new("ns", "pd"), role: name.to_owned() };
        RolledWorkload {
            key: WorkloadKey { namespace: "ns".to_owned(), kind: WorkloadKind::StatefulSet, name: name.to_owned() },
            uid: name.into(),
            claim,
            desired: self.desired(),
            observed: true,
            partition: self.partition,
            user_partition: Some(self.floor),
            update_revision: Some(format!("{}-{edits}", self.update)),
            takes_partition: true,
            replica_size: 1,
            ..RolledWorkload::default()
        }
    }

    pub fn view(&self, stuck: bool, edit: &Edit) -> RoleRollout {
        let ordinal = |pod: &Option<Pod>| {
            let missing = Ordinal { updated: self.current == self.update, ..Ordinal::default() };
            pod.map_or(missing, |pod| Ordinal {
                updated: pod.revision == self.update,
                ready: pod.ready,
                given_up: pod.revision != self.update && pod.revision != self.current,
                ..Ordinal::default()
            })
        };
        RoleRollout {
            partition: self.partition,
            floor: self.floor,
            ordinals: self.pods.iter().map(ordinal).collect(),
            judged: true,
            round: edit.round,
            settled: edit.settled,
            stuck,
            may_run: u32::MAX,
            revision: Some(format!("{}", self.update)),
            back: self.current == self.update && self.updated() < self.desired(),
            can_return: self.current != self.update,
            ..RoleRollout::default()
        }
    }

    /// One step of the workload's controller. True when it did anything.
    fn step(&mut self, choice: usize) -> bool {
        if let Some(index) = self.pods.iter().position(Option::is_none) {
            let revision = if (index as u64) < u64::from(self.partition) { self.current } else { self.update };
            self.pods[index] = Some(Pod { revision, ready: false });
            return true;
        }
        let partition = usize::try_from(self.partition).unwrap();
        let old = |pod: &Option<Pod>| pod.is_some_and(|pod| pod.revision != self.update);
        let mut above = (partition..self.pods.len()).rev();
        let next = match self.controller {
            Controller::StatefulSet => above
                .find(|index| old(&self.pods[*index]) || self.pods[*index].is_some_and(|pod| !pod.ready))
                .filter(|index| old(&self.pods[*index])),
            Controller::Any => {
                let open: Vec<_> = above.rev().filter(|index| old(&self.pods[*index])).collect();
                open.get(choice % open.len().max(1)).copied()
            }
        };
        next.inspect(|index| self.pods[*index] = None).is_some()
    }
}

impl World {
    pub fn new(bounds: Vec<RollingBounds>, roles: BTreeMap<String, Role>) -> Self {
        let names: BTreeSet<_> = roles.keys().cloned().collect();
        let mut world = Self {
            bounds,
            round: names.iter().map(|name| (name.clone(), 0)).collect(),
            edited: names,
            roles,
            ..Self::default()
        };
        world.note();
        world
    }

    /// The loop sees all workloads.
    fn note(&mut self) {
        let seen: Vec<_> = self.roles.iter().map(|(name, role)| role.workload(name, role.edits)).collect();
        self.rounds.note(&self.bounds, &seen, self.now);
    }

    /// True while all roles wait for edits of others.
    fn stands_still(&self) -> bool {
        self.edited.len() < self.roles.len() && self.now < self.since + SETTLE
    }

    pub fn names(&self) -> Vec<String> {
        self.roles.keys().cloned().collect()
    }

    pub fn view(&self) -> BTreeMap<String, RoleRollout> {
        let view = |(name, role): (&String, &Role)| {
            let edit = self.rounds.edit(&self.bounds, &role.workload(name, role.edits), SETTLE, self.now);
            (name.clone(), role.view(self.stuck, &edit.unwrap()))
        };
        self.roles.iter().map(view).collect()
    }

    /// Decides, with no pause ended.
    fn decide(&self) -> RolloutPlan {
        let view = self.view();
        plan_rollout(&self.bounds, &view, &stages(&self.bounds, &view, &Pauses::default()))
    }

    /// Plans and sets the partitions. Says what was decided, and whether anything was.
    pub fn plan(&mut self) -> (RolloutPlan, bool) {
        self.now += Duration::from_secs(1);
        let plan = self.decide();
        let still = self.stands_still();
        let mut moved = still;
        for (name, decided) in &plan {
            let role = self.roles.get_mut(name).unwrap();
            assert!(decided.partition <= role.partition, "{name}: a partition may only fall");
            assert!(!still || decided.partition == role.partition, "{name} moves while others are edited");
            moved |= decided.partition < role.partition;
            role.partition = decided.partition;
        }
        let again = self.decide();
        for (name, decided) in &again {
            assert_eq!(decided.partition, plan[name].partition, "{name}: a replan of its own result is not empty");
        }
        (plan, moved)
    }

    /// A step of one role's controller.
    pub fn control(&mut self, name: &str, choice: usize) -> bool {
        let before = self.roles[name].updated();
        let stepped = self.roles.get_mut(name).unwrap().step(choice);
        if self.roles[name].updated() > before {
            self.check_skew(name);
        }
        stepped
    }

    /// A pod gets ready, unless its revision is broken.
    pub fn get_ready(&mut self, name: &str, index: usize) -> bool {
        let role = self.roles.get_mut(name).unwrap();
        let index = index % role.pods.len();
        match &mut role.pods[index] {
            Some(pod) if !pod.ready && !self.broken.contains(&pod.revision) => {
                pod.ready = true;
                let done = role.pods.iter().flatten().filter(|pod| pod.ready && pod.revision == role.update).count();
                role.most = role.most.max(u32::try_from(done).unwrap());
                if role.pods.iter().all(|pod| pod.is_some_and(|pod| pod.ready && pod.revision == role.update)) {
                    role.current = role.update;
                }
                true
            }
            _ => false,
        }
    }

    pub fn fail(&mut self, name: &str, index: usize) {
        let role = self.roles.get_mut(name).unwrap();
        let index = index % role.pods.len();
        role.pods[index].iter_mut().for_each(|pod| pod.ready = false);
    }

    /// Somebody changes the template of one role, and the webhook freezes it.
    pub fn edit(&mut self, name: &str, revision: u8) {
        let newest = *self.round.values().max().unwrap();
        let joins = self.edited.insert(name.to_owned());
        if !joins {
            (self.edited, self.since) = (BTreeSet::from([name.to_owned()]), self.now);
        }
        *self.round.get_mut(name).unwrap() = if joins { newest } else { newest + 1 };
        for (other, role) in &mut self.roles {
            role.excused = role.excused.max(role.view(false, &Edit::default()).reach());
            if other == name {
                (role.update, role.partition) = (revision, FROZEN);
                role.edits += 1;
                // Those that are missing come back as what they were.
                role.excused = role.view(false, &Edit::default()).updated();
            }
        }
        self.note();
    }

    /// Every role is as far ahead of the others as it may be, or less.
    fn check_skew(&self, name: &str) {
        let role = &self.roles[name];
        if role.updated() <= role.excused {
            return;
        }
        // In steps, the skew bounds the way to shares that may differ by more; segments have none.
        let at_one_rate =
            |bounds: &&RollingBounds| bounds.has(name) && bounds.steps.is_empty() && bounds.segments.is_none();
        for bounds in self.bounds.iter().filter(at_one_rate) {
            let compared =
                |other: &&String| *other != name && self.round[*other] == self.round[name] && bounds.has(other);
            for (other, state) in self.roles.iter().filter(|(other, _)| compared(other)) {
                // One replica of a role whose share is less than one goes last.
                let share = (100 - bounds.partition) * role.desired();
                let goal = state.desired() - bounds.kept_old(state.desired());
                if bounds.partition > 0 && share < 100 && role.updated() == 1 && state.updated() >= goal {
                    continue;
                }
                // So does one of which replicas that are to stay old are updated, since its edit was taken back.
                let [ours, theirs] =
                    [role, state].map(|role| role.pods.split_at(bounds.kept_old(role.desired()) as usize));
                if ours.0.iter().any(|pod| role.is_updated(*pod)) && theirs.1.iter().all(|pod| state.is_updated(*pod)) {
                    continue;
                }
                let (ours, theirs) = ((role.updated(), role.desired()), (state.updated(), state.desired()));
                assert!(excess(bounds, ours, theirs) <= 0, "{name} {ours:?} is too far ahead of {other} {theirs:?}");
            }
        }
    }

    pub fn budget(&self, name: &str) -> u32 {
        let shared = self.bounds.iter().filter(|bounds| bounds.has(name));
        shared.map(|bounds| bounds.max_unavailable.of(self.roles[name].desired())).min().unwrap()
    }

    /// Everybody does what he can, until nobody can.
    pub fn settle(&mut self) -> RolloutPlan {
        let steps = 50 + 20 * self.roles.values().map(|role| role.pods.len()).sum::<usize>();
        for _ in 0..steps {
            let (plan, mut moved) = self.plan();
            for name in self.names() {
                moved |= self.control(&name, 0);
                for index in 0..self.roles[&name].pods.len() {
                    moved |= self.get_ready(&name, index);
                }
            }
            if !moved && self.stuck {
                self.stuck = false;
                return plan;
            }
            self.stuck = !moved;
        }
        panic!("no end after {steps} rounds: {self:?}");
    }

    /// A round in which everything that is granted gets updated and ready.
    pub fn round(&mut self) -> bool {
        let (_, moved) = self.plan();
        for role in self.roles.values_mut() {
            let (from, update) = (role.partition as usize, role.update);
            role.pods.iter_mut().skip(from).for_each(|pod| *pod = Some(Pod { revision: update, ready: true }));
        }
        moved
    }

    pub fn all_are(&self, plan: &RolloutPlan, state: ProgressState) -> bool {
        self.roles.keys().all(|name| plan[name].state == state)
    }
}
