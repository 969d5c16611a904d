//! Readiness beyond that of pods: the time for which pods are ready, and the objects that segments and steps of rollouts wait for,
//! checked independently of the planner. The objects are those of a controller that rolegate does not know: they get and lose their
//! condition, are deleted and made again, come late or never.

use rolegate::api::{ConditionedObject, ObjectKind};
use rolegate::cluster::index::Change;
use rolegate::model::moment::Moment;

use crate::places::Places;
use crate::prelude::*;
use crate::server::OBJECTS;
use crate::spec::released;
use crate::steps::now;

pub const JOB: ObjectKind = ObjectKind { group: "batch", version: "v1", kind: "Job", plural: "jobs", namespaced: true };

/// What segments, or the steps of a rollout, wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Seconds for which a pod of a segment must be ready before it counts.
    pub seconds: u32,
    pub objects: Objects,
}

/// The objects that segments or steps wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    None,
    /// One for all segments.
    One,
    /// One for each segment.
    Each,
    /// One for each step of a rollout; segments wait for none.
    Steps,
}

/// A change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectStep {
    /// It is there, without its condition.
    Made,
    True,
    False,
    Gone,
}

impl Readiness {
    pub fn random(random: &mut Random) -> Self {
        Self {
            seconds: random.pick(&[0, 0, 20]),
            objects: random.pick(&[Objects::Each, Objects::Each, Objects::Each, Objects::One, Objects::None]),
        }
    }
}

impl ObjectStep {
    pub fn random(random: &mut Random) -> Self {
        random.pick(&[Self::True, Self::True, Self::True, Self::True, Self::False, Self::False, Self::Made, Self::Gone])
    }
}

impl Setup {
    /// Adds what segments wait for, or in a group that is rolled in lockstep the steps.
    pub fn waiting(mut self, random: &mut Random) -> Self {
        if self.rolling.is_some() {
            while self.rolling.is_some_and(|rolling| rolling.steps == Steps::None) {
                self.rolling = Some(Rolling::random(random));
            }
            self.readiness = Some(Readiness { seconds: 0, objects: Objects::Steps });
            return self;
        }
        while !self.wish.coordinations().iter().any(Coordination::goes_by_readiness) {
            self.wish = Wish::random(random);
        }
        self.readiness = Some(Readiness::random(random));
        self.never = random.percent(30);
        self
    }
}

impl Coordination {
    fn goes_by_readiness(&self) -> bool {
        matches!(self.progression, Progression::OrderedReady | Progression::Canary)
    }

    /// Returns the roles that have a size.
    fn roles(&self) -> impl Iterator<Item = usize> {
        (0..ROLES.len()).filter(|role| self.sizes[*role] > 0)
    }
}

impl Stored {
    /// Returns what segments wait for.
    fn of_segments(&self) -> Option<Readiness> {
        self.readiness.filter(|readiness| readiness.objects != Objects::Steps)
    }

    /// Edits what segments wait for, or whether steps do.
    pub fn wait_for(&mut self, readiness: Readiness, of_steps: bool) {
        let Some(known) = &mut self.readiness else { return };
        *known = match (of_steps, readiness.objects) {
            (false, _) => readiness,
            (true, Objects::None) => Readiness { seconds: 0, objects: Objects::None },
            (true, _) => Readiness { seconds: 0, objects: Objects::Steps },
        };
    }

    /// Adds what it waits for to a coordination.
    pub fn add_readiness(&self, coordination: &mut Value) {
        let object =
            |name: &str| json!({ "apiVersion": "batch/v1", "kind": "Job", "name": name, "condition": "Complete" });
        let strategy = &mut coordination["strategy"];
        if let (Some(update), true) = (strategy.get_mut("rollingUpdate"), self.has_steps_that_wait()) {
            update["readyWhen"] = json!({ "object": object("check-$(STEP)") });
        }
        let (Some(segments), Some(readiness)) = (strategy.get_mut("segmentPlacement"), self.of_segments()) else {
            return;
        };
        if !["OrderedReady", "Canary"].map(Value::from).contains(&segments["progression"]) {
            return;
        }
        let object = match readiness.objects {
            Objects::None | Objects::Steps => Value::Null,
            Objects::One => object("warm"),
            Objects::Each => object("warm-$(SEGMENT)"),
        };
        segments["readyWhen"] = json!({ "minReadySeconds": readiness.seconds, "object": object });
    }

    /// Reports whether the steps of the rollout wait for objects.
    pub fn has_steps_that_wait(&self) -> bool {
        let waits = self.readiness.is_some_and(|readiness| readiness.objects == Objects::Steps);
        waits && self.rolling.is_some_and(|rolling| rolling.steps != Steps::None)
    }

    /// Reports whether the object of a step, from 1, has not its condition as a replica sees it.
    pub fn step_lacks(&self, replica: &Replica, step: u32) -> bool {
        self.has_steps_that_wait() && !is_true(&replica.seen.objects, &format!("check-{step}"))
    }

    /// Returns the seconds for which a pod of a role must be ready before it counts.
    fn seconds_of(&self, role: usize) -> u32 {
        let of_role = || self.wish.of_role(role).iter().any(Coordination::goes_by_readiness);
        self.of_segments().filter(|_| of_role()).map_or(0, |readiness| readiness.seconds)
    }

    /// Reports whether a pod of a role counts as ready.
    pub fn counts(&self, pod: &PodFacts, role: usize, at: Duration) -> bool {
        let seconds = self.seconds_of(role);
        let is_over = |since: u32| now(at).0 >= i64::from(since) + i64::from(seconds);
        pod.ready && (seconds == 0 || pod.ready_since.is_none_or(is_over))
    }

    /// Returns the name of the object that a segment waits for.
    fn object_of(&self, one: &Coordination, segment: u32) -> Option<String> {
        match self.of_segments().filter(|_| one.goes_by_readiness())?.objects {
            Objects::None | Objects::Steps => None,
            Objects::One => Some("warm".to_owned()),
            Objects::Each => Some(format!("warm-{segment}")),
        }
    }

    /// Returns the coordinations of which ready pods do not suffice, with their names.
    fn that_ask_acceptance(&self) -> impl Iterator<Item = (String, Coordination)> {
        let all = self.wish.coordinations().into_iter().enumerate();
        let asks = |one: &Coordination| one.progression == Progression::Canary || self.object_of(one, 0).is_some();
        all.filter(move |(_, one)| asks(one)).map(|(index, one)| (format!("c{index}"), one))
    }
}

fn is_true(objects: &BTreeMap<String, bool>, name: &str) -> bool {
    objects.get(name).copied().unwrap_or(false)
}

/// Reports whether the condition of an object is True.
fn holds(object: &ConditionedObject) -> bool {
    object.status.conditions.iter().any(|condition| condition.status == "True")
}

impl Server {
    /// Returns the names of the objects that may be waited for.
    fn object_names(&self) -> Vec<String> {
        match self.setup.readiness {
            None => Vec::new(),
            Some(Readiness { objects: Objects::Steps, .. }) => (1..=3).map(|step| format!("check-{step}")).collect(),
            Some(_) => {
                std::iter::once("warm".to_owned()).chain((0..6).map(|segment| format!("warm-{segment}"))).collect()
            }
        }
    }

    pub fn object_step(&mut self, n: usize, step: ObjectStep) {
        let names = self.object_names();
        let Some(name) = names.get(n % names.len().max(1)) else { return };
        match step {
            ObjectStep::Made => self.put_object(name, None),
            ObjectStep::True => self.put_object(name, Some("True")),
            ObjectStep::False => self.put_object(name, Some("False")),
            ObjectStep::Gone => {
                if let Some(object) = self.objects.remove(name) {
                    self.next_version();
                    self.tell(OBJECTS, Event::ObjectGone(object));
                }
            }
        }
    }

    fn put_object(&mut self, name: &str, status: Option<&str>) {
        let at = now(self.now).text();
        let known = self.objects.get(name);
        let condition = known.and_then(|known| known.status.conditions.first());
        if known.is_some() && condition.map(|condition| condition.status.as_str()) == status {
            return;
        }
        let created = known.and_then(|known| known.metadata.creation_timestamp.clone()).unwrap_or_else(|| at.clone());
        let conditions = status.map(|status| json!({ "type": "Complete", "status": status, "lastTransitionTime": at }));
        let conditions: Vec<_> = conditions.into_iter().collect();
        let object = json!({
            "metadata": { "namespace": NAMESPACE, "name": name, "creationTimestamp": created },
            "status": { "conditions": conditions },
        });
        let object: Arc<ConditionedObject> = Arc::new(serde_json::from_value(object).unwrap());
        self.objects.insert(name.to_owned(), object.clone());
        self.next_version();
        self.tell(OBJECTS, Event::Object(object));
    }

    /// Gives all objects their condition, unless those that are not there never come.
    pub fn fulfil(&mut self) {
        for name in self.object_names() {
            if !self.setup.never || self.objects.contains_key(&name) {
                self.put_object(&name, Some("True"));
            }
        }
    }
}

impl Replica {
    /// Receives the next event of the objects that groups wait for; returns false when there is none.
    pub fn see_object(&mut self, server: &Server) -> bool {
        if server.setup.readiness.is_none() {
            return false;
        }
        let Some(cursor) = self.sees_objects else {
            self.sees_objects = Some(server.log[OBJECTS].len());
            let listed = server.objects.values().map(|object| (**object).clone()).collect();
            self.seen.objects = server.objects.iter().map(|(name, object)| (name.clone(), holds(object))).collect();
            self.index.awaited_change(JOB, None, Change::Listed(listed));
            return true;
        };
        let Some((_, event)) = server.log[OBJECTS].get(cursor) else { return false };
        self.sees_objects = Some(cursor + 1);
        let (change, object) = match event {
            Event::Object(object) => (Change::Applied((**object).clone()), object),
            Event::ObjectGone(object) => (Change::Deleted((**object).clone()), object),
            _ => unreachable!("the log of objects has nothing else"),
        };
        let name = object.metadata.name.clone().unwrap();
        match event {
            Event::Object(_) => _ = self.seen.objects.insert(name, holds(object)),
            _ => _ = self.seen.objects.remove(&name),
        }
        self.index.awaited_change(JOB, None, change);
        true
    }
}

fn accepted(status: &GroupStatus, name: &str) -> u32 {
    status.coordination(name).and_then(|state| state.accepted).unwrap_or(0)
}

/// Reports whether the pods of a group wait for an object that has not its condition, or for pods that do not count yet.
pub fn waits(server: &Server, group: &Stored) -> bool {
    let lacks = |(name, one): (String, Coordination)| {
        let object = group.object_of(&one, accepted(&group.status, &name));
        object.is_some_and(|object| !server.objects.get(&object).is_some_and(|object| holds(object)))
    };
    let is_young = |(name, pod): (&String, &Arc<Pod>)| {
        let seconds = group.seconds_of(crate::places::role_of(name));
        let ready =
            pod.status.conditions.iter().find(|condition| condition.r#type == "Ready" && condition.status == "True");
        let since = ready.and_then(|ready| Moment::parse(ready.last_transition_time.as_deref()?));
        since.is_some_and(|since| now(server.now).0 < since.0 + i64::from(seconds))
    };
    group.that_ask_acceptance().any(lacks) || server.pods.iter().any(is_young)
}

/// C1: checks that a status accepts a segment only when all its pods count, its object has its condition, and a canary was ready for
/// its time, or a person ended the pause. C2: checks that nothing beyond a segment is committed before it is accepted. C3: checks that
/// what was accepted stays so.
pub fn goes_on(
    replica: &Replica,
    status: &GroupStatus,
    stored: &Stored,
    seen: (&Snapshot, &Places),
    (desired, count): (impl Fn(usize) -> u32, impl Fn(usize) -> u32),
    at: Duration,
) -> Result<(), Broken> {
    for (name, one) in stored.that_ask_acceptance() {
        let (before, after) = (accepted(&stored.status, &name), accepted(status, &name));
        let open: Vec<_> = one.roles().filter(|role| count(*role) < desired(*role)).collect();
        let all = one.roles().map(|role| desired(role).div_ceil(one.sizes[role])).max().unwrap_or(0);
        let complete = open.iter().map(|role| count(*role) / one.sizes[*role]).min().unwrap_or(all);
        hold!(
            after >= before.min(complete),
            "C3: {before} of {name} were accepted, {complete} are complete, and {after} are accepted"
        );
        for role in one.roles() {
            let (known, will) = (stored.committed(role).unwrap_or(0), released(status, ROLES[role]).unwrap_or(0));
            hold!(
                will <= (one.sizes[role] * (after + 1)).max(count(role)).max(known),
                "C2: {will} {} are to be released, and {after} of {name} are accepted",
                ROLES[role]
            );
        }
        for segment in before..after {
            // Its replicas may run although it was never accepted, such as those that are older than the coordination.
            let is_begun = |role: usize| count(role) > one.sizes[role] * (segment + 1);
            if !one.roles().any(is_begun) {
                let pods = (segment, &desired);
                is_accepted(replica, stored, seen, (&name, &one), pods, at)?;
            }
        }
    }
    Ok(())
}

fn is_accepted(
    replica: &Replica,
    stored: &Stored,
    (snapshot, places): (&Snapshot, &Places),
    (name, one): (&str, &Coordination),
    (segment, desired): (u32, &impl Fn(usize) -> u32),
    at: Duration,
) -> Result<(), Broken> {
    let mut since = None;
    for role in one.roles() {
        let size = one.sizes[role];
        for ordinal in segment * size..((segment + 1) * size).min(desired(role)) {
            let is_its = |pod: &&Arc<PodFacts>| {
                let place = places[&*pod.pod.name];
                (place.role, place.ordinal) == (role, ordinal)
            };
            let mut pods = snapshot.pods.iter().filter(is_its).peekable();
            let what = format!("segment {segment} of {name} is accepted");
            hold!(pods.peek().is_some(), "C1: {what} without {} {ordinal}", ROLES[role]);
            for pod in pods {
                let ready = pod.ready_since.filter(|_| !pod.held && stored.counts(pod, role, at));
                hold!(ready.is_some(), "C1: {what}, and {} does not count as ready", pod.pod.name);
                since = since.max(ready.map(|ready| i64::from(ready) + i64::from(stored.seconds_of(role))));
            }
        }
    }
    if let Some(object) = stored.object_of(one, segment) {
        let is_true = is_true(&replica.seen.objects, &object);
        hold!(is_true, "C1: segment {segment} of {name} is accepted, and {object} has not its condition");
    }
    let Some(since) = since.map(Moment).filter(|_| one.progression == Progression::Canary && segment == 0) else {
        return Ok(());
    };
    let resumed = stored.meta.annotation(names::ROLLOUT_RESUMED_AT).and_then(Moment::parse);
    let by_time = one.soak().is_some_and(|soak| now(at) >= since.after(soak));
    hold!(
        by_time || resumed.is_some_and(|resumed| resumed >= since),
        "C1: the canary of {name} is accepted at {at:?}, is ready since {since:?}, and nobody ended the pause"
    );
    Ok(())
}
