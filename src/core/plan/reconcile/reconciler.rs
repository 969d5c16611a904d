//! The reconciler: takes changes and the results of writes, and returns the next group to reconcile and the actions for it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::model::{GroupKey, HoldReason};
use crate::plan::placement::{Line, Placer, Sight};
use crate::plan::reconcile::action::{Action, Ended, Target};
use crate::plan::reconcile::braking::Braking;
use crate::plan::reconcile::decided::Decided;
use crate::plan::reconcile::lasting::Timed;
use crate::plan::reconcile::memory::Memory;
use crate::plan::reconcile::movement::Movement;
use crate::plan::reconcile::options::LoopOptions;
use crate::plan::reconcile::pass::Pass;
use crate::plan::reconcile::queue::Queue;
use crate::plan::reconcile::request_events::RequestNews;
use crate::plan::reconcile::subject::Subject;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::recovery::Tally;

/// Events of one group within this time are planned together; the first is planned at once.
const COALESCE: Duration = Duration::from_millis(10);
/// The minimum interval between looks at a group that waits for room, however often pods come and go.
const ROOM_EVERY: Duration = Duration::from_millis(50);

/// The memory of every group, and when each is due.
#[derive(Debug, Default)]
pub struct Reconciler {
    options: LoopOptions,
    /// Groups, and PodGroups that place their pods by their keys beside groups.
    groups: HashMap<GroupKey, Memory>,
    queue: Queue,
    leads: bool,
    /// How long nobody led before this replica; `None` if that is not known.
    unled: Option<Duration>,
    synced: bool,
    /// When a definition of a carrier kind was last changed.
    redefined: Option<Uptime>,
    /// Groups that may have batches which were released in part before this process led: they were not looked at since.
    unkept: HashSet<GroupKey>,
    /// Groups that wait for nodes, or the needs of their pods, to be known.
    blind: HashSet<GroupKey>,
    /// Groups that wait for room.
    line: Line,
    /// The value of [`crate::plan::placement::Capacity::freed`] when these groups were last scheduled.
    freed: u64,
    /// The recoveries of all groups.
    braking: Braking,
    /// The durations of releases since they were last taken.
    released: Vec<Duration>,
    /// Changes of requests for nodes since they were last taken.
    requests: Vec<RequestNews>,
}

impl Reconciler {
    /// Returns the reconciler of a replica that does not lead and knows nothing.
    pub fn new(options: LoopOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Reports whether all objects were listed.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Notes how long nobody had led when this replica began to.
    pub fn nobody_led(&mut self, unled: Option<Duration>) {
        self.unled = unled;
    }

    /// Notes whether this replica leads, and plans a pass over every group: the plan itself first finishes what the old leader
    /// had committed.
    pub fn lead(&mut self, leads: bool, keys: impl IntoIterator<Item = GroupKey>, now: Uptime) {
        self.leads = leads;
        self.line.clear();
        self.blind.clear();
        self.unkept.clear();
        self.braking.lead();
        // Nobody has looked meanwhile: a rollout fails by what lasts from now on, and a batch waits to grow anew.
        for memory in self.groups.values_mut() {
            (memory.waits.late, memory.waits.cut) = (Timed::default(), Timed::default());
            memory.movement = Movement::since(now);
        }
        self.schedule_unkept(keys, now);
    }

    /// Notes that all objects were listed once: passes decide from now on.
    pub fn sync(&mut self, keys: impl IntoIterator<Item = GroupKey>, now: Uptime) {
        self.synced = true;
        self.schedule_unkept(keys, now);
    }

    /// Notes a change of a definition of a carrier kind: dropped fields of a status may be kept now.
    pub fn redefined(&mut self, now: Uptime) {
        self.redefined = Some(now);
        let told = self
            .groups
            .iter_mut()
            .filter_map(|(key, memory)| memory.status.dropped.redefined(now).then(|| key.clone()));
        let told: Vec<_> = told.collect();
        self.schedule_all(told, now);
    }

    fn schedule_unkept(&mut self, keys: impl IntoIterator<Item = GroupKey>, now: Uptime) {
        let keys: Vec<_> = keys.into_iter().collect();
        self.unkept.extend(keys.iter().cloned());
        self.braking.see_first(&keys);
        self.schedule_all(keys, now);
    }

    fn schedule_all(&mut self, keys: impl IntoIterator<Item = GroupKey>, now: Uptime) {
        keys.into_iter().for_each(|key| self.schedule(key, now, now));
    }

    pub fn changed(&mut self, keys: impl IntoIterator<Item = GroupKey>, now: Uptime) {
        for key in keys {
            let memory = self.groups.entry(key.clone()).or_insert_with(|| Memory::new(now));
            memory.decided.release_timer.changed(now);
            let at = memory.pass_after(COALESCE, now);
            self.queue.schedule(key, at);
        }
    }

    fn schedule(&mut self, key: GroupKey, at: Uptime, now: Uptime) {
        self.groups.entry(key.clone()).or_insert_with(|| Memory::new(now));
        self.queue.schedule(key, at);
    }

    /// Returns when the next group is due.
    pub fn next(&self) -> Option<Uptime> {
        self.queue.next()
    }

    /// Returns the next group that is due by now.
    pub fn take_due(&mut self, now: Uptime) -> Option<GroupKey> {
        self.queue.take(now)
    }

    /// Notes a change of nodes or pods, with the new value of [`crate::plan::placement::Capacity::freed`]: groups that wait for
    /// room are looked at in their order, groups that wait for nodes to be known at once.
    pub fn capacity_changed(&mut self, freed: u64, now: Uptime) {
        let blind: Vec<_> = self.blind.iter().chain(&self.unkept).cloned().collect();
        let waiting = if freed == self.freed { Vec::new() } else { self.line.in_order() };
        self.freed = freed;
        for key in blind.into_iter().chain(waiting) {
            let at = self.groups.get(&key).map_or(now, |memory| memory.pass_after(ROOM_EVERY, now));
            self.schedule(key, at, now);
        }
    }

    /// Reports whether pods of any group are to be placed: nodes need not be watched before.
    pub fn needs_room(&self) -> bool {
        self.leads && self.decided().any(|(_, decided)| decided.needs_room)
    }

    /// Reconciles a group, or a PodGroup that places its pods, by its key beside groups. The returned actions are under way
    /// until `ended` reports their results. `sight` is `None` if nothing is placed; `now_text` is RFC 3339.
    pub fn pass<'a>(
        &mut self,
        key: &GroupKey,
        subject: impl Into<Subject<'a>>,
        sight: Option<Sight<'_>>,
        now: Uptime,
        now_text: &str,
    ) -> Vec<Action> {
        let subject = subject.into();
        let Some(memory) = self.groups.get_mut(key) else { return Vec::new() };
        memory.last_pass = Some(now);
        let was = memory.recovery.tally;
        if subject.is_empty() && memory.is_idle() {
            // Room may have been kept for pods that will not be created.
            let gone = sight.map(|sight| Placer::new(key.clone(), sight, &mut self.line, false, now));
            let freed = gone.and_then(|placer| placer.finish(HashSet::new));
            self.groups.remove(key);
            self.line.leaves(key);
            self.unkept.remove(key);
            self.blind.remove(key);
            let go_on = self.braking.note(key, was, (Tally::default(), false));
            self.schedule_all(go_on, now);
            self.freed_by_pass(freed, now);
            return Vec::new();
        }
        memory.note(subject, now);
        if !self.leads || !self.synced {
            memory.decided_nothing();
            return Vec::new();
        }
        let others_first = self.unkept.iter().any(|other| other != key);
        let sees = matches!(sight, Some(Sight::Known(_)));
        let mut pass = Pass {
            key,
            brake: self.braking.context(key, was, self.options.max_recoveries),
            memory,
            options: self.options,
            now,
            now_text,
            actions: Vec::new(),
            again: None,
            placer: sight.map(|sight| Placer::new(key.clone(), sight, &mut self.line, others_first, now)),
            unled: self.unled,
            released: None,
            freed: None,
            requests: Vec::new(),
        };
        pass.run(subject);
        let Pass { actions, again, released, freed, requests, .. } = pass;
        if sees || !memory.decided.needs_room {
            self.unkept.remove(key);
        }
        if memory.decided.waits_to_see() {
            self.blind.insert(key.clone());
        } else {
            self.blind.remove(key);
        }
        self.released.extend(released);
        self.requests.extend(requests);
        let go_on = self.braking.note(key, was, (memory.recovery.tally, memory.recovery.braked));
        self.schedule_all(go_on, now);
        if let Some(at) = again {
            self.schedule(key.clone(), at, now);
        }
        self.freed_by_pass(freed, now);
        actions
    }

    /// Notes the room that a pass has freed: no watch tells of it.
    fn freed_by_pass(&mut self, freed: Option<u64>, now: Uptime) {
        if let Some(freed) = freed.filter(|freed| *freed != self.freed) {
            self.capacity_changed(freed, now);
        }
    }

    /// Notes a result, and plans another pass if one is due.
    pub fn ended(&mut self, key: GroupKey, ended: Ended, now: Uptime) {
        let Some(memory) = self.groups.get_mut(&key) else { return };
        let at = ended.key().map_or(now, |key| memory.tries.end(key, ended.failure(), now));
        let again = match ended {
            Ended::Written { target: Target::Object(uid), failure } => {
                let is_unmarked = memory.pods.unmarked.remove(&uid);
                if failure.is_some() {
                    memory.pods.deleted.remove(&uid);
                    memory.pods.placed.remove(&uid);
                    Some(at)
                } else {
                    self.released.extend(memory.decided.release_timer.released(&uid, now));
                    // The watch may show no further change of it.
                    (is_unmarked || memory.tree.plan.is_some()).then(|| memory.pass_after(COALESCE, now))
                }
            }
            Ended::Written { target: Target::Status, failure } => {
                let seen = memory.status.end();
                if failure.is_none() {
                    // Also after a conflict: the group was read again.
                    memory.looks.show_group(seen);
                }
                memory.status.note(failure);
                memory.tree.committed(memory.status.again_after_failure(now));
                Some(now)
            }
            Ended::StatusLate { why } => {
                memory.status.end();
                memory.status.note_late(why, now);
                Some(now)
            }
            Ended::Written { target: Target::Owned { id, members }, failure } => {
                memory.owned.ended(id, members, failure);
                // Also after a failure: the waiting pods are told.
                Some(if members.is_some() { now } else { at })
            }
            Ended::Written { target: Target::Replicas { role, replicas, .. }, failure } => {
                memory.elastic.ended(role, replicas, failure.as_deref());
                Some(at)
            }
            Ended::StatusDropped { target, object, fields } => {
                if target == Target::Status {
                    // The write was based on the current version.
                    let seen = memory.status.end();
                    memory.looks.show_group(seen);
                }
                memory.status.dropped.note(object, fields, self.redefined, now);
                Some(now)
            }
            Ended::Read(answer) => {
                memory.answered(answer, now);
                Some(at)
            }
        };
        if let Some(at) = again {
            self.schedule(key, at, now);
        }
    }

    /// Returns the last decisions on all groups and PodGroups.
    pub fn decided(&self) -> impl Iterator<Item = (&GroupKey, &Decided)> {
        self.groups.iter().map(|(key, memory)| (key, &memory.decided))
    }

    /// Returns the durations of the batches released since the last call: from the first change that no pass had seen when the
    /// batch was found to be next, to the end of the last release of those of its pods that existed by then.
    pub fn take_released(&mut self) -> Vec<Duration> {
        std::mem::take(&mut self.released)
    }

    /// Returns the changes of requests for nodes since the last call.
    pub fn take_requests(&mut self) -> Vec<RequestNews> {
        std::mem::take(&mut self.requests)
    }

    /// Returns the last decided number of held pods of all groups by reason.
    pub fn held(&self) -> impl Iterator<Item = (HoldReason, u32)> {
        self.decided().flat_map(|(_, decided)| decided.held.iter().copied())
    }

    /// Returns the number of entries of each map; entries for single objects are counted together.
    pub fn sizes(&self) -> [(&'static str, usize); 7] {
        let trees = self.groups.keys().filter(|key| key.pod_group().is_some()).count();
        [
            ("groups", self.groups.len() - trees),
            ("pod_groups", trees),
            ("objects", self.groups.values().map(Memory::len).sum()),
            ("planned", self.queue.len()),
            ("waiting_for_room", self.line.len()),
            ("blind", self.blind.len()),
            ("unkept", self.unkept.len()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::Stance;
    use crate::plan::gangs::{TreePod, TreeSnapshot};
    use crate::plan::rollout::{Late, LateWhat};
    use crate::plan::view::PodRef;

    #[test]
    fn recoveries_do_not_wait_for_a_pod_group_that_was_looked_at() {
        let (group, name) = (GroupKey::new("ns", "pd"), GroupKey::new("ns", "job"));
        let tree = name.of_pod_group();
        let pod = PodRef { name: "a".into(), uid: "a".into() };
        let snapshot = TreeSnapshot {
            key: name,
            tree: None,
            pods: vec![TreePod { pod, leaf: None, held: true, scheduled: false }],
            keys: BTreeMap::new(),
            stance: Stance::default(),
            rests: false,
            served: true,
        };
        let mut reconciler = Reconciler::new(LoopOptions::default());
        reconciler.lead(true, [group.clone(), tree.clone()], Uptime::ZERO);
        reconciler.sync([], Uptime::ZERO);
        let waits = |reconciler: &Reconciler| reconciler.braking.context(&group, Tally::default(), None).unseen;
        assert!(waits(&reconciler));
        reconciler.pass(&tree, &snapshot, None, Uptime::ZERO, "");
        assert!(!waits(&reconciler));
    }

    #[test]
    fn what_lasted_before_it_led_again_fails_no_rollout() {
        let (group, second) = (GroupKey::new("ns", "pd"), Duration::from_secs(1));
        let mut reconciler = Reconciler::new(LoopOptions::default());
        let late = || Late { index: 0, since: None, what: LateWhat::Object { step: 1 } };
        let overdue = |reconciler: &mut Reconciler, now| {
            let late_of =
                &mut reconciler.groups.entry(group.clone()).or_insert_with(|| Memory::new(Uptime::ZERO)).waits.late;
            late_of.note([late()], Duration::ZERO, now);
            !late_of.overdue(second, now).is_empty()
        };
        assert!(!overdue(&mut reconciler, Uptime::ZERO));
        assert!(overdue(&mut reconciler, second * 2));
        reconciler.lead(false, [], second * 2);
        reconciler.lead(true, [], second * 9);
        assert!(!overdue(&mut reconciler, second * 9));
        assert!(overdue(&mut reconciler, second * 11));
    }
}
