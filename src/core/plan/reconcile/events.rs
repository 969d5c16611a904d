//! Events of a group: a batch is held and that lasts, a hold is over, a batch is released, or nothing moves any more. One Event
//! for each batch, never one for each pod; `pod_events` selects a pod that gets an Event as well.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::status::{Condition, CoordinationState, Draining, GroupStatus};
use crate::model::batching::PlacedIn;
use crate::model::wording::{counted, ordinals};
use crate::model::{Batching, Coordination, Fact, Group, HoldReason, names};
use crate::plan::decide::decision::Decision;
use crate::plan::decide::held::Held;
use crate::plan::decide::missing_pods::WhyMissing;
use crate::plan::decide::placed::Moved;
use crate::plan::elastic::{ineffective, taken_away};
use crate::plan::evaluate::Evaluation;
use crate::plan::reconcile::lasting::{LASTS, Ledger, News, Timed};
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::status::conditions;
use crate::plan::view::RoleView;

/// The reason of the Event on a released batch.
pub const RELEASED: &str = "Released";
/// The reason of the Event on a batch that leaves its committed domain.
pub const DOMAIN_LOST: &str = "DomainLost";
/// The reason of the Event on a hold that ends without a release.
pub const CLEARED: &str = "HoldCleared";
/// The reason of the Event on segments that are taken away.
pub const DRAINING: &str = "Draining";
/// The reason of the Event on wanted segments without effect.
pub const SEGMENTS_IGNORED: &str = "SegmentsIgnored";
/// The reason of the Event on a group that moves again.
pub const RESUMED: &str = "ProgressResumed";

/// The key of a hold: the coordination, the reason, and the lowest batch.
pub(super) type What = (Option<String>, HoldReason, Option<u32>);

/// The last Event on a hold, and its roles.
#[derive(Debug)]
struct Told {
    message: String,
    roles: BTreeSet<String>,
}

/// Released counts by coordination and role.
type Counts = BTreeMap<String, BTreeMap<String, u32>>;
/// Domains by coordination and batch.
type Domains = BTreeMap<String, BTreeMap<String, String>>;

/// The last reported state of a group, so that no Event is repeated.
#[derive(Debug, Default)]
pub struct Reported {
    held: BTreeMap<What, Told>,
    waiting: Timed<What>,
    /// The last text on missing pods of a role.
    missing_pods: Ledger<(String, WhyMissing), String>,
    /// `None` before the first pass: releases before the start of this process are not reported.
    released: Option<(Counts, Domains)>,
    stalled: bool,
    /// The last reported scale-in.
    draining: Option<Draining>,
    /// Why wanted segments have no effect.
    ignored: Ledger<String>,
}

impl Reported {
    /// Returns new Events in order, and when to look again. While it is not known whether a rollout created the surplus pods,
    /// nothing is reported on them.
    pub fn events(
        &mut self,
        group: &Group,
        seen: &Evaluation,
        surplus_is_open: bool,
        now: Uptime,
    ) -> (Vec<EventNote>, Option<Uptime>) {
        let mut events = self.releases(group, seen);
        events.extend(self.holds(group, seen, surplus_is_open, now));
        events.extend(self.missing_pods(&seen.decision));
        events.extend(self.stall(&seen.status));
        events.extend(self.elastic(group, now));
        (events, self.waiting.next(LASTS, Uptime::ZERO).into_iter().chain(self.ignored.again()).min())
    }

    /// Returns Events on stored releases: a release is certain only then. A status that takes in running replicas releases
    /// nothing, and so does one that counts pods without labels, which were never held.
    fn releases(&mut self, group: &Group, seen: &Evaluation) -> Vec<EventNote> {
        let by_domain = seen.decision.placed.by_domain;
        let states = || group.status.coordination_state.iter();
        let counts: Counts = states().map(|state| (state.name.clone(), counts(state))).collect();
        let domains: Domains = states().map(|state| (state.name.clone(), state.domains.clone())).collect();
        let mut events = Vec::new();
        let runs_unlabelled = |role: &str, ordinal: u32| {
            seen.view.roles.get(role).is_some_and(|role| role.replicas.runs_unlabelled(ordinal))
        };
        if let Some((before, domains_before)) = &self.released {
            for (coordination, batching) in group.batched() {
                let name = coordination.display_name();
                let Some(now) = counts.get(&name) else { continue };
                if by_domain && batching.placed_in().is_some() {
                    let known =
                        |index: &String| domains_before.get(&name).is_some_and(|known| known.contains_key(index));
                    let new = domains.get(&name).into_iter().flatten();
                    let new = new.filter(|(index, domain)| !known(index) && !domain.is_empty());
                    let placed = |(index, domain): (&String, &String)| {
                        let at = (index.parse().ok()?, domain.as_str());
                        EventNote::placed(group, coordination, batching, at, runs_unlabelled)
                    };
                    events.extend(new.filter_map(placed));
                } else {
                    let none = BTreeMap::new();
                    let before = before.get(&name).unwrap_or(&none);
                    events.extend(EventNote::released(&name, batching, (before, now), runs_unlabelled));
                }
            }
        }
        let mut counts = counts;
        for (role, count) in counts.values_mut().flatten() {
            let running = seen.view.roles.get(role).and_then(RoleView::running_beyond_commit);
            *count = running.unwrap_or(0).max(*count);
        }
        self.released = Some((counts, domains));
        events
    }

    fn holds(&mut self, group: &Group, seen: &Evaluation, surplus_is_open: bool, now: Uptime) -> Vec<EventNote> {
        // While a surplus is examined, no hold of it is reported, and none is withdrawn. Unknown room is known in a moment; if
        // nodes may not be read, no pod is held for it.
        let in_a_moment = |held: &Held| held.reason == HoldReason::RoomUnknown && !held.pods.is_empty();
        let is_known = |(what, held): &(What, &Held)| {
            !(in_a_moment(held) || surplus_is_open && what.1 == HoldReason::BeyondDesired)
                || self.held.contains_key(what)
        };
        let held: BTreeMap<What, &Held> = seen
            .decision
            .held
            .iter()
            .map(|held| ((held.coordination_name().map(str::to_owned), held.reason, held.batch), held))
            .filter(is_known)
            .collect();
        // A batch whose release is being committed will be reported as released.
        let commits = seen.needs_commit(group);
        // That nodes are requested makes no room yet.
        let goes_on = |what: &What| {
            let requested = (what.0.clone(), HoldReason::NodesRequested, what.2);
            held.contains_key(what) || what.1 == HoldReason::NoRoom && held.contains_key(&requested)
        };
        // What goes without a look at nodes still does so once it has gone.
        let has_gone = |what: &What| what.1.is(Fact::IsTurn) || what.1 == HoldReason::RoomUnknown;
        let is_over = |what: &What| !(goes_on(what) || has_gone(what) || (commits && what.2.is_some()));
        let cleared = |(what, told): (&What, &Told)| {
            EventNote::over(format!("{} {}", what.1, subject(what)), &told.message, told.roles.clone())
        };
        let mut events: Vec<_> = self.held.iter().filter(|(what, _)| is_over(what)).map(cleared).collect();
        let mut told_before = std::mem::take(&mut self.held);
        let is_new = |(what, held): &(&What, &&Held)| told_before.get(*what).is_none_or(|told| lacks_more(told, held));
        let lasted = self.waiting.lasted(held.iter().filter(is_new).map(|(what, _)| what.clone()), now);
        // A batch that goes without a place, since nodes may not be read, waits for nothing: it is reported at once.
        let goes =
            |held: &Held| held.reason == HoldReason::RoomUnknown && held.pods.is_empty() && group.scaled().is_none();
        for (what, held) in held {
            let told = told_before.remove(&what);
            let told = match told {
                Some(told) if !lasted.contains(&what) => {
                    let message = if lacks_more(&told, held) { told.message } else { held.message.clone() };
                    Told { message, roles: told.roles }
                }
                None if !(lasted.contains(&what) || goes(held)) => continue,
                _ => {
                    let roles = roles_of(group, held);
                    events.push(EventNote::held(group, &what, held, roles.clone()));
                    Told { message: held.message.clone(), roles }
                }
            };
            self.held.insert(what, told);
        }
        events
    }

    fn missing_pods(&mut self, decision: &Decision) -> Vec<EventNote> {
        let now: BTreeMap<_, _> =
            decision.diagnosis_texts().map(|(of, note)| ((of.role.clone(), of.why), note)).collect();
        let News { begun, over } = self.missing_pods.at_once(now);
        let over = over.into_iter().map(|((role, why), note)| {
            EventNote::over(format!("{} {role}", why.as_str()), &note, BTreeSet::from([role]))
        });
        let begun = begun
            .into_iter()
            .map(|((role, why), note)| EventNote::new(why.as_str(), &role, note, true).of_roles([&role]));
        over.chain(begun).collect()
    }

    /// Returns Events on a scale-in, and on wanted segments without effect.
    fn elastic(&mut self, group: &Group, now: Uptime) -> Vec<EventNote> {
        let mut events = Vec::new();
        let draining = group.status.draining.filter(|_| group.scaled().is_some());
        let before = std::mem::replace(&mut self.draining, draining);
        if let Some(draining) = draining.filter(|draining| before.is_none_or(|before| before.to != draining.to)) {
            let (subject, note) = (format!("{} {}", draining.from, draining.to), taken_away(draining));
            events.push(EventNote::of_elastic(group, DRAINING, subject, format!("{note} taken away"), false));
        }
        let told = group.elastic.as_ref().and_then(|elastic| ineffective(&elastic.standing));
        for (note, ()) in self.ignored.note(told.map(|(_, note)| (note, ())), now).begun {
            events.push(EventNote::of_elastic(group, SEGMENTS_IGNORED, note.clone(), note, true));
        }
        events
    }

    fn stall(&mut self, status: &GroupStatus) -> Option<EventNote> {
        let found = status.conditions.iter().find(|condition| condition.reason == conditions::DEADLINE_EXCEEDED);
        let was = std::mem::replace(&mut self.stalled, found.is_some());
        match found {
            Some(Condition { reason, message, .. }) if !was => {
                Some(EventNote::new(reason, message, format!("nothing moves: {message}"), true))
            }
            None if was => Some(EventNote::new(RESUMED, "", "the group moves again", false)),
            _ => None,
        }
    }
}

/// Returns the stored released counts.
fn counts(state: &CoordinationState) -> BTreeMap<String, u32> {
    state.progress.iter().filter_map(|(role, progress)| Some((role.clone(), progress.released?))).collect()
}

/// An Event to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    pub reason: String,
    /// The subject: Events of one group with the same reason and subject count as one repeated Event.
    pub subject: String,
    pub note: String,
    /// Whether a person should look at it.
    pub warning: bool,
    /// Roles whose workloads get the Event as well.
    pub roles: BTreeSet<String>,
}

impl EventNote {
    /// Returns an Event of the object itself.
    pub fn new(reason: &str, subject: impl Into<String>, note: impl Into<String>, warning: bool) -> Self {
        Self { reason: reason.to_owned(), subject: subject.into(), note: note.into(), warning, roles: BTreeSet::new() }
    }

    /// Returns the Event for the workloads of these roles as well.
    #[must_use]
    pub fn of_roles(self, roles: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { roles: roles.into_iter().map(Into::into).collect(), ..self }
    }

    /// Returns an Event such as `segment 2 is held: prefill 3/10 ready (15 pods; segment 2 is rolegate.dev/segment=1)`.
    fn held(group: &Group, what: &What, held: &Held, roles: BTreeSet<String>) -> Self {
        let batching = held.coordination.as_ref().and_then(|of| group.coordination(of.index)?.batching());
        let label = batching.zip(held.batch).map(|(batching, batch)| batching.label_of(batch));
        let pods = Some(counted(held.count(), "pod")).filter(|_| !held.pods.is_empty());
        let more = pods.into_iter().chain(label).collect::<Vec<_>>().join("; ");
        let note = if more.is_empty() { held.message.clone() } else { format!("{} ({more})", held.message) };
        let subject = if is_lack(held) { note.clone() } else { subject(what) };
        Self::new(held.reason.as_str(), subject, note, held.reason.is_warning()).of_roles(roles)
    }

    /// Returns an Event on a pod, with the reason why it is held.
    pub(super) fn of_pod(what: &What, note: String) -> Self {
        Self::new(what.1.as_str(), subject(what), note, what.1.is_warning())
    }

    /// Returns an Event on the wanted segments, also for the roles with segments.
    fn of_elastic(group: &Group, reason: &str, subject: String, note: String, warning: bool) -> Self {
        let roles = group.batched().flat_map(|(_, batching)| batching.sizes.keys());
        Self::new(reason, subject, note, warning).of_roles(roles)
    }

    fn over(subject: String, note: &str, roles: BTreeSet<String>) -> Self {
        Self::new(CLEARED, subject, format!("no longer so: {note}"), false).of_roles(roles)
    }

    /// Returns an Event such as `segment 2 (rolegate.dev/segment=1) is released: decode 5-9, prefill 10-19`; `None` if no count
    /// rose.
    fn released(
        coordination: &str,
        batching: &Batching,
        (before, now): (&BTreeMap<String, u32>, &BTreeMap<String, u32>),
        runs_unlabelled: impl Fn(&str, u32) -> bool,
    ) -> Option<Self> {
        let (mut ranges, mut roles, mut first, mut last) = (Vec::new(), BTreeSet::new(), u32::MAX, 0);
        for (role, count) in now {
            let mut new = before.get(role).copied().unwrap_or(0)..*count;
            let Some(from) = new.find(|ordinal| !runs_unlabelled(role, *ordinal)) else { continue };
            if let (Some(lowest), Some(highest)) = (batching.batch_of(role, from), batching.batch_of(role, count - 1)) {
                ranges.push(format!("{role} {}", ordinals(&(from..=count - 1))));
                roles.insert(role.clone());
                (first, last) = (first.min(lowest), last.max(highest));
            }
        }
        let ranges = ranges.join(", ");
        let note = if last.checked_sub(first)? == 0 {
            format!("{} is released: {ranges}", batching.labelled_name(first))
        } else {
            let (words, label) = (batching.kind.words(), names::SEGMENT);
            format!("{words} {} to {} ({label}={first} to {last}) are released: {ranges}", first + 1, last + 1)
        };
        Some(Self::new(RELEASED, format!("{coordination} {ranges}"), note, false).of_roles(roles))
    }

    /// Returns an Event such as `step 2 (rolegate.dev/segment=1) is released in rack-b: decode 2-3, prefill 4-7`.
    fn placed(
        group: &Group,
        coordination: &Coordination,
        batching: &Batching,
        (index, domain): (u32, &str),
        runs_unlabelled: impl Fn(&str, u32) -> bool,
    ) -> Option<Self> {
        let (mut ranges, mut roles) = (Vec::new(), BTreeSet::new());
        for name in batching.sizes.keys() {
            let places = batching.ordinals(name, index, group.role(name)?.desired);
            if places.clone().all(|ordinal| runs_unlabelled(name, ordinal)) {
                continue;
            }
            if let Some(last) = places.end.checked_sub(1).filter(|last| *last >= places.start) {
                ranges.push(format!("{name} {}", ordinals(&(places.start..=last))));
                roles.insert(name.clone());
            }
        }
        if roles.is_empty() {
            return None;
        }
        let within = match batching.placed_in() {
            Some(PlacedIn::Cluster) => String::new(),
            _ => format!(" in {domain}"),
        };
        let note = format!("{} is released{within}: {}", batching.labelled_name(index), ranges.join(", "));
        Some(Self::new(RELEASED, format!("{} {index}", coordination.display_name()), note, false).of_roles(roles))
    }

    /// Returns an Event on a batch that leaves its committed domain.
    pub(in crate::plan) fn moved(group: &Group, moved: &Moved) -> Self {
        let roles = group.coordination(moved.coordination.index).map(Coordination::role_names).unwrap_or_default();
        let subject = format!("{} {}", moved.coordination.name, moved.index);
        Self::new(DOMAIN_LOST, subject, &moved.message, true).of_roles(roles)
    }
}

/// Reports whether the group lacks a workload, or its labels, that was not reported yet.
fn lacks_more(told: &Told, held: &Held) -> bool {
    is_lack(held) && held.message.split("; ").any(|part| !told.message.contains(part))
}

/// Reports whether the hold has no pods because the workload or its labels are missing.
fn is_lack(held: &Held) -> bool {
    matches!(held.reason, HoldReason::WorkloadMissing | HoldReason::WorkloadNotLabelled) && held.pods.is_empty()
}

/// Returns the roles of the coordination that holds, with or without pods; else the roles of the held pods.
fn roles_of(group: &Group, held: &Held) -> BTreeSet<String> {
    if let Some(coordination) = held.coordination.as_ref().and_then(|own| group.coordination(own.index)) {
        return coordination.role_names().into_iter().map(str::to_owned).collect();
    }
    held.pods.roles()
}

fn subject((coordination, _, batch): &What) -> String {
    format!(
        "{} {}",
        coordination.as_deref().unwrap_or_default(),
        batch.map(|batch| batch.to_string()).unwrap_or_default()
    )
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
