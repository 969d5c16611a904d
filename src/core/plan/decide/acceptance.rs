//! Acceptance of batches beyond the readiness of their replicas: the object that `readyWhen` names, and the time for which a
//! canary is ready. The number of accepted batches is committed: objects such as Jobs go, and a replica that is not ready later
//! takes nothing back.

use crate::model::moment::Moment;
use crate::model::rollout_step::Pause;
use crate::model::{AwaitedObject, BatchKind, Batching, Coordination, Group, RollingBounds};
use crate::plan::rollout::{PauseEnd, Pauses};
use crate::plan::view::{Awaited, Lack, PodFacts, RoleView};

/// The inputs of progressions beside the replicas.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// Coordinations whose layer is missing, by position in the list of the group: they do not proceed.
    pub missing_layers: &'a [usize],
    /// The time, when a person ended pauses, and the objects that batches wait for; not known by default.
    pub pauses: Option<&'a Pauses>,
}

/// The acceptance of the batches of one coordination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// The number of batches that are accepted, from the first on; `None` where ready replicas suffice.
    pub accepted: Option<u32>,
    /// The reason why the last complete batch is not accepted.
    pub wait: Option<AcceptanceWait>,
}

/// The reason why a complete batch is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptanceWait {
    /// It is a canary, which is to be ready for a while: the end of the pause.
    Canary(PauseEnd),
    /// Its object does not have the condition, for which it waits since the time.
    Object(Lack),
}

impl AcceptanceWait {
    /// Returns the end of the pause after a canary.
    pub fn pause(&self) -> Option<PauseEnd> {
        match self {
            Self::Canary(end) => Some(*end),
            Self::Object(_) => None,
        }
    }

    /// Returns a text on the batch of this name, such as `a pause follows the canary, segment 1, until it is resumed`.
    pub fn text(&self, batch: &str) -> String {
        match self {
            Self::Canary(end) => format!("a pause follows the canary, {batch}, {end}"),
            Self::Object(Lack { why, since, .. }) => {
                let since = since.map(|since| format!(", for which it waits since {}", since.text()));
                format!("{batch} is not accepted: {why}{}", since.unwrap_or_default())
            }
        }
    }
}

/// What the batches of a coordination, or the steps of its rollout, wait for beyond ready replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedAcceptance {
    /// The position of the coordination in the list of the group, and its name.
    pub index: usize,
    pub coordination: String,
    /// The batches; `None` for the steps of a rollout.
    pub batches: Option<BatchKind>,
    /// The object of each batch or step.
    pub object: Option<AwaitedObject>,
    /// The end of the pause after the canary.
    pub pause: Option<PauseEnd>,
}

/// Returns what batches and steps of a group wait for beyond ready replicas.
pub fn planned(group: &Group) -> Vec<PlannedAcceptance> {
    let asks = group.batched().filter(|(_, batching)| batching.asks_acceptance());
    let batches = asks.map(|(coordination, batching)| PlannedAcceptance {
        index: coordination.index,
        coordination: coordination.display_name(),
        batches: Some(batching.kind),
        object: batching.awaited_object().cloned(),
        pause: batching.is_canary().then(|| batching.soak.map_or(PauseEnd::Resume, PauseEnd::After)),
    });
    let in_steps = RollingBounds::all_of(group).into_iter().filter(|bounds| !bounds.steps.is_empty());
    let steps = in_steps.filter_map(|bounds| {
        let object = Some(bounds.object?);
        Some(PlannedAcceptance { index: bounds.index, coordination: bounds.name, batches: None, object, pause: None })
    });
    batches.chain(steps).collect()
}

impl PlannedAcceptance {
    /// Returns a line for the object and one for the canary.
    pub fn lines(&self) -> Vec<String> {
        let (name, words) = (&self.coordination, self.batches.map_or("steps of its rollout", BatchKind::words));
        let object = self.object.as_ref().map(|AwaitedObject { kind, name: of, condition, .. }| {
            format!("coordination {name:?}: {words} wait for condition {condition} of {} {of:?}", kind.kind)
        });
        let canary = self.pause.map(|end| format!("coordination {name:?} pauses after its canary {end}"));
        object.into_iter().chain(canary).collect()
    }
}

/// The batched roles of a coordination that have a size.
pub(super) type Sized<'a> = [(&'a str, &'a RoleView)];

impl Acceptance {
    /// Returns the acceptance of the first `full` batches, which are released. `pass` reports whether their replicas pass the
    /// progression.
    ///
    /// Batches count as accepted once that is committed, or once replicas of a later batch may run. Of the others, which is one
    /// at most, the replicas must pass, the object of the batch must have its condition, and a canary must have been ready for its
    /// time, or a person ends the pause.
    pub(super) fn of(
        (group, conditions): (&Group, Conditions<'_>),
        (coordination, batching): (&Coordination, &Batching),
        roles: &Sized<'_>,
        (full, pass): (u32, bool),
    ) -> Self {
        if !batching.asks_acceptance() {
            return Self::default();
        }
        let before = before(group, coordination, batching, roles);
        let Some(last) = full.checked_sub(1).filter(|last| pass && *last >= before) else {
            return Self { accepted: Some(before), wait: None };
        };
        let asked = Asked { group, conditions, batching, roles, last };
        match asked.wait() {
            None => Self { accepted: Some(full), wait: None },
            wait => Self { accepted: Some(before), wait },
        }
    }
}

/// Returns the number of batches that are accepted already.
fn before(group: &Group, coordination: &Coordination, batching: &Batching, roles: &Sized<'_>) -> u32 {
    let stored = group.status.coordination(&coordination.display_name()).and_then(|state| state.accepted);
    let open = || roles.iter().filter(|(_, view)| view.released() < view.desired);
    let total = batching.total(|name| roles.iter().find(|(role, _)| *role == name).map(|(_, view)| view.desired));
    let released = open().filter_map(|(name, view)| batching.batch_of(name, view.released())).min().unwrap_or(total);
    let begun = open().map(|(name, view)| batching.batches_in(name, view.released())).min().unwrap_or(total);
    stored.unwrap_or(0).min(released).max(begun.saturating_sub(1))
}

/// The last complete batch, which is not accepted yet.
struct Asked<'a> {
    group: &'a Group,
    conditions: Conditions<'a>,
    batching: &'a Batching,
    roles: &'a Sized<'a>,
    last: u32,
}

impl Asked<'_> {
    fn wait(&self) -> Option<AcceptanceWait> {
        let ready = self.ready_since();
        let unknown = Pauses::default();
        let pauses = self.conditions.pauses.unwrap_or(&unknown);
        let held = match self.batching.awaited_object().map(|object| pauses.objects.ask(object, self.last)) {
            Some(Awaited::Lacks(lack)) => {
                return Some(AcceptanceWait::Object(Lack { since: lack.since.max(ready), ..lack }));
            }
            Some(Awaited::Holds(since)) => since,
            None => None,
        };
        if !self.batching.is_canary() || self.last > 0 {
            return None;
        }
        // Where no pod tells a time, as without a cluster, the pause began before a person ended it.
        let began = ready.max(held).or(pauses.resumed);
        pauses.lasts(Pause { duration: self.batching.soak }, began).map(AcceptanceWait::Canary)
    }

    /// Returns the time since when all pods of the batch count as ready, as far as they tell.
    fn ready_since(&self) -> Option<Moment> {
        let times = self.roles.iter().flat_map(|(name, view)| {
            let seconds = self.group.role(name).map_or(0, |role| self.group.min_ready_seconds(role));
            let ordinals = self.batching.ordinals(name, self.last, view.desired);
            let pods = ordinals.flat_map(move |ordinal| view.replicas.pods_of(ordinal));
            pods.filter_map(move |pod| since(pod, seconds))
        });
        times.max()
    }
}

/// Returns the time since when a ready pod counts: a pod of a Job that has succeeded counts since it was created.
fn since(pod: &PodFacts, seconds: u32) -> Option<Moment> {
    let ready = pod.ready_since.map(|since| Moment(i64::from(since).saturating_add(seconds.into())));
    ready.or_else(|| Moment::parse(pod.created.as_deref()?))
}

#[cfg(test)]
#[path = "acceptance_tests.rs"]
mod tests;
