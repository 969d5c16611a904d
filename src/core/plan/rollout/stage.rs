//! The state of each open rollout: the step under way, derived from the replicas that are updated and ready, and what the status
//! keeps: pauses, the acceptance of steps, and that the rollout goes back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::standing::{OBJECT_NOT_READY, REPLICAS_NOT_READY, REQUESTED};
use super::{RoleRollout, floor};
use crate::api::status::{RolledBack, RolloutState};
use crate::model::moment::Moment;
use crate::model::rollout_step::Pause;
use crate::model::{Carrier, Group, RollingBounds, RolloutStep, wording};
use crate::plan::view::{Awaited, AwaitedObjects, Lack};

/// The inputs on pauses and acceptance: the time, what the status keeps, and the objects that are waited for.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    /// The current time; without it, no pause ends by itself.
    pub now: Option<Moment>,
    /// Time at which a person ended the pauses of the group.
    pub resumed: Option<Moment>,
    /// The stored state by position of the coordination in the list of the group.
    pub past: BTreeMap<usize, RolloutState>,
    /// The objects that steps and batches wait for.
    pub objects: AwaitedObjects,
    /// Time at which a person asked for the rollouts of the group to go back.
    pub rolled_back: Option<Moment>,
    /// What did not get ready in time.
    pub late: Vec<Late>,
    /// Whether no pod may be deleted: nothing goes back.
    pub off: bool,
}

/// What a rollout waits for, and fails by if it lasts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Late {
    /// The position of the coordination in the list of the group.
    pub index: usize,
    /// The time of the last edit: another one begins the time anew.
    pub since: Option<String>,
    pub what: LateWhat,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LateWhat {
    /// A replica that is updated to this revision, or may be at any moment, and is not ready.
    Replica { role: String, ordinal: u32, revision: Option<String> },
    /// The object after this step does not have its condition.
    Object { step: u32 },
}

impl LateWhat {
    /// Returns the role of the replica.
    pub fn role(&self) -> Option<&str> {
        match self {
            Self::Replica { role, .. } => Some(role),
            Self::Object { .. } => None,
        }
    }
}

/// The state of one coordination's rollout: the step under way, or the pause after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The position of the coordination in the list of the group, and its name.
    pub index: usize,
    pub name: String,
    pub number: StepNumber,
    /// The updated replicas that each role may have, of the roles that follow the steps.
    pub limits: BTreeMap<String, u32>,
    /// The roles that the next step waits for.
    pub behind: Vec<String>,
    /// The end of the pause after the step, during which nothing moves.
    pub pause: Option<PauseEnd>,
    /// Why the object of the step does not have its condition, before which nothing moves.
    pub lacks: Option<Lack>,
    /// What the rollout fails by if it lasts.
    pub late: Vec<Late>,
    /// Why the rollout does not go back although it failed, or a person asked for it.
    pub stays: Option<String>,
    /// The state to store.
    pub state: RolloutState,
}

/// The number of a step from 1, and the number of all steps; both are 0 without steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StepNumber {
    pub step: u32,
    pub steps: u32,
    /// Whether the edit was taken back, and the steps are walked back.
    pub back: bool,
}

/// The end of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PauseEnd {
    /// A person ends it.
    Resume,
    /// It ends at this time.
    At(Moment),
    /// It ends after this time, and the current time is not known.
    After(Duration),
}

impl Pauses {
    /// Returns the inputs for a group. `now` is the current time.
    pub fn of(group: &Group, bounds: &[RollingBounds], now: Option<Moment>) -> Self {
        let stored =
            |bounds: &RollingBounds| Some((bounds.index, group.status.coordination(&bounds.name)?.rollout.clone()?));
        let past = bounds.iter().filter_map(stored).collect();
        let Carrier { rollout_resumed: resumed, rolled_back, .. } = group.carrier;
        Self { now, resumed, past, rolled_back, ..Self::default() }
    }

    /// Returns the current time, or one later than this request of a person: it does not apply to what begins now.
    fn later_than(&self, asked: Option<Moment>) -> Option<Moment> {
        let after = asked.map(|asked| asked.after(Duration::from_secs(1)));
        self.now.map(|now| after.map_or(now, |after| now.max(after)))
    }

    /// Returns the end of a pause that began at this time; `None` if it has ended.
    pub(in crate::plan) fn lasts(&self, pause: Pause, began: Option<Moment>) -> Option<PauseEnd> {
        let Self { now, resumed, .. } = *self;
        if resumed.zip(began).is_some_and(|(resumed, began)| resumed >= began) {
            return None;
        }
        let end = match (pause.duration, began) {
            (None, _) => PauseEnd::Resume,
            (Some(time), None) => PauseEnd::After(time),
            (Some(time), Some(began)) => PauseEnd::At(began.after(time)),
        };
        let is_over = matches!(end, PauseEnd::At(end) if now.is_some_and(|now| now >= end));
        (!is_over).then_some(end)
    }
}

impl Stage {
    /// Reports whether there is more to tell than what its roles do.
    pub fn is_told(&self) -> bool {
        self.number.steps > 0 || self.state.rolled_back.is_some() || self.stays.is_some()
    }

    /// Reports whether a role has all updated replicas that the step asks for, or is not held back by it: it then holds back no
    /// other role.
    pub(super) fn is_reached(&self, role: &str) -> bool {
        self.limits.contains_key(role) && !self.behind.iter().any(|behind| behind == role)
    }
}

/// Returns the state of each coordination with an open rollout.
///
/// With `S(i)` the share of a role in step `i`, and `D` its desired replicas, the role may have `G(i) = S(i) * D` updated replicas
/// during step `i`, rounded down and at least one if `S(i)` is not 0. The step under way is the first with a role that has fewer
/// than `G(i)` updated and ready replicas. So with steps of prefill 30 %, decode 100 %, prefill 100 %, of ten prefill and four
/// decode three prefill go first, then four decode, then seven prefill.
///
/// A role without an open rollout holds back no other. An edit that was taken back walks the steps back: with `n` steps, the
/// role may have `D - G(n - i)` replicas of the old revision in step `i`. While other roles go on, it goes back at once.
///
/// With an object in `readyWhen`, a step before the last ends when its object has the condition, and the pause after it begins
/// then.
///
/// Of steps, only pauses are remembered: since when the rollout has been at the step of the pause, and the shares at which the last
/// pause ended, or the last step was accepted. Another edit of a role forgets the latter. A pause counts only when a role that takes
/// part has moved since the pause before.
///
/// A rollout goes back when a replica or an object did not get ready in time, or a person asks for it, unless one of its roles could
/// not: then nothing goes back. It stays so until another edit of a role. On its way back, the steps are walked back.
pub fn stages(bounds: &[RollingBounds], roles: &BTreeMap<String, RoleRollout>, pauses: &Pauses) -> Vec<Stage> {
    bounds.iter().filter_map(|one| Course { all: bounds, bounds: one, roles, pauses }.stage()).collect()
}

/// The rollout of one coordination.
struct Course<'a> {
    all: &'a [RollingBounds],
    bounds: &'a RollingBounds,
    roles: &'a BTreeMap<String, RoleRollout>,
    pauses: &'a Pauses,
}

/// The step under way in one direction.
struct Leg<'a> {
    /// The number of the step from 1.
    step: u32,
    limits: BTreeMap<&'a str, u32>,
    behind: Vec<&'a str>,
    pause: Option<PauseEnd>,
    lacks: Option<Lack>,
}

impl Leg<'_> {
    /// Returns a step that holds nothing back.
    fn free(step: u32) -> Self {
        Self { step, limits: BTreeMap::new(), behind: Vec::new(), pause: None, lacks: None }
    }
}

type Open<'a> = Vec<(&'a str, &'a RoleRollout)>;

impl<'a> Course<'a> {
    fn stage(&self) -> Option<Stage> {
        let open = self.bounds.roles.iter().filter_map(|name| Some((name.as_str(), self.roles.get(name)?)));
        let open: Open<'a> = open.collect();
        let past = self.pauses.past.get(&self.bounds.index).filter(|_| !open.is_empty());
        // Before the controllers have observed the edits, nothing moves, and the replicas are not known to be old.
        if open.is_empty() || open.iter().any(|(_, role)| !role.judged) {
            let state = past?.clone();
            let RolloutState { step, steps, .. } = state;
            return Some(self.told(Leg::free(step), StepNumber { step, steps, back: false }, state));
        }
        let mut state = self.remembered(past, &open);
        let forth: Open<'a> = open.iter().filter(|(_, role)| !role.back).copied().collect();
        let back = forth.is_empty();
        let leg = match self.count() {
            0 => Leg::free(0),
            _ if back => self.back(&open),
            _ => self.forth(&forth, &mut state),
        };
        state.paused_since = state.paused_since.filter(|_| leg.pause.is_some());
        (state.step, state.steps) = (leg.step, self.count());
        let number = StepNumber { step: state.step, steps: state.steps, back };
        let late = self.late(&forth, &leg, &state);
        let failed = self.failure(&late, &leg, &state).filter(|_| !back && state.rolled_back.is_none());
        let stays = failed.as_ref().and_then(|failed| self.no_way_back(failed, &state));
        state.rolled_back = state.rolled_back.or_else(|| failed.filter(|_| stays.is_none()));
        Some(Stage { late, stays, ..self.told(leg, number, state) })
    }

    fn told(&self, leg: Leg<'_>, number: StepNumber, state: RolloutState) -> Stage {
        let Leg { limits, behind, pause, lacks, .. } = leg;
        Stage {
            index: self.bounds.index,
            name: self.bounds.name.clone(),
            number,
            limits: limits.into_iter().map(|(role, limit)| (role.to_owned(), limit)).collect(),
            behind: behind.into_iter().map(str::to_owned).collect(),
            pause,
            lacks,
            late: Vec::new(),
            stays: None,
            state,
        }
    }

    /// Returns what the rollout fails by if it lasts, where it goes back then.
    fn late(&self, forth: &Open<'a>, leg: &Leg<'a>, state: &RolloutState) -> Vec<Late> {
        let index = self.bounds.index;
        let replica = |(name, role): &(&str, &RoleRollout), ordinal| LateWhat::Replica {
            role: (*name).to_owned(),
            ordinal,
            revision: role.revision.clone(),
        };
        let replicas = forth.iter().flat_map(|one| one.1.unready().map(move |ordinal| replica(one, ordinal)));
        // Only what the object says itself may fail the rollout.
        let lacks = leg.lacks.as_ref().filter(|lacks| lacks.since.is_some());
        let object = lacks.map(|_| LateWhat::Object { step: leg.step });
        let all = replicas.chain(object).filter(|_| self.bounds.fail_after.is_some());
        all.map(|what| Late { index, since: state.since.clone(), what }).collect()
    }

    /// Returns why the rollout is to go back, if it is.
    fn failure(&self, late: &[Late], leg: &Leg<'a>, state: &RolloutState) -> Option<RolledBack> {
        let began = state.since.as_deref().and_then(Moment::parse);
        let is_asked = self.pauses.rolled_back.zip(began).is_some_and(|(asked, began)| asked >= began);
        let (reason, message) = if is_asked {
            (REQUESTED, "a person asked for it".to_owned())
        } else {
            let what = &late.iter().find(|late| self.pauses.late.contains(late))?.what;
            let in_time = wording::time(self.bounds.fails_after(what.role())?);
            match what {
                LateWhat::Replica { role, ordinal, .. } => {
                    (REPLICAS_NOT_READY, format!("{role}-{ordinal} did not get ready within {in_time}"))
                }
                LateWhat::Object { .. } => {
                    let why = leg.lacks.as_ref().map(|lacks| lacks.why.as_str()).unwrap_or_default();
                    (OBJECT_NOT_READY, format!("the step was not accepted within {in_time}: {why}"))
                }
            }
        };
        let since = self.pauses.now.map(Moment::text).unwrap_or_default();
        Some(RolledBack { since, reason: reason.to_owned(), message })
    }

    /// Returns why not all roles of a rollout that failed can go back.
    fn no_way_back(&self, failed: &RolledBack, state: &RolloutState) -> Option<String> {
        let taken_back = |name: &String| {
            let is_back = self.roles.get(name).is_some_and(RoleRollout::is_taken_back);
            is_back.then(|| format!("the edit of role {name:?} was taken back"))
        };
        let missing = |name: &String| match self.roles.get(name) {
            None => Some(format!("the rollout of role {name:?} is over")),
            Some(role) if role.resized => {
                Some(format!("role {name:?} changes its size, which all its revisions share"))
            }
            Some(role) => (!role.can_return).then(|| format!("role {name:?} has no old replica")),
        };
        let off = || "rolegate runs without `--allow recovery`".to_owned();
        let all = || self.bounds.roles.iter().find_map(taken_back).or_else(|| state.revisions.keys().find_map(missing));
        let why = if self.pauses.off { Some(off()) } else { all() };
        why.map(|why| {
            format!(
                "{}, and the rollout cannot go back: {why}; undo the edits of all its templates instead",
                failed.message
            )
        })
    }

    /// Returns what is remembered of the rollout. Another edit of a role begins the pauses anew, and a rollout that went back; a role
    /// whose rollout is over by now still takes part, but not one whose edit was taken back.
    fn remembered(&self, past: Option<&RolloutState>, open: &Open<'a>) -> RolloutState {
        let mut state = past.cloned().unwrap_or_default();
        state.revisions.retain(|role, _| self.bounds.has(role));
        for (name, role) in open {
            let revision = role.revision.clone().unwrap_or_default();
            let known = state.revisions.remove(*name);
            let takes_part = !role.is_taken_back() && (known.as_ref() == Some(&revision) || role.has_old());
            let goes_to = takes_part.then(|| state.revisions.entry((*name).to_owned()).or_insert(revision).clone());
            if known != goes_to {
                state.passed.clear();
                (state.paused_since, state.rolled_back) = (None, None);
                state.since = self.pauses.later_than(self.pauses.rolled_back).map(Moment::text);
            }
        }
        state
    }

    fn count(&self) -> u32 {
        crate::plan::view::count(self.bounds.steps.len())
    }

    /// Walks the steps for roles that go to a new revision, up to the first that is not complete or pauses.
    fn forth(&self, open: &Open<'a>, state: &mut RolloutState) -> Leg<'a> {
        let mut since = state.paused_since.take().as_deref().and_then(Moment::parse);
        let mut before: Option<&RolloutStep> = None;
        for (number, step) in (1..).zip(&self.bounds.steps) {
            let leg = self.leg(number, open, |name, role| self.bounds.goal((number, step), name, role.shared()));
            if !leg.behind.is_empty() {
                return leg;
            }
            if step.pause.is_none() && self.bounds.object.is_none() {
                continue;
            }
            let since_before = before.replace(step);
            if !self.counts(step, since_before, (open, state)) {
                continue;
            }
            if let Some(lacks) = self.lacks(number) {
                return Leg { lacks: Some(lacks), ..leg };
            }
            let began = since.take().or_else(|| self.pauses.later_than(self.pauses.resumed));
            if let Some(pause) = step.pause.and_then(|pause| self.pauses.lasts(pause, began)) {
                state.paused_since = began.map(Moment::text);
                return Leg { pause: Some(pause), ..leg };
            }
            state.passed.clone_from(&step.shares);
        }
        Leg::free(self.count())
    }

    /// Returns why the object of a step does not have its condition.
    fn lacks(&self, step: u32) -> Option<Lack> {
        let Awaited::Lacks(lack) = self.pauses.objects.ask(self.bounds.object.as_ref()?, step) else { return None };
        let since = lack.since.map(|since| format!(", since {}", since.text())).unwrap_or_default();
        Some(Lack { why: lack.why + &since, ..lack })
    }

    /// Walks the steps back for roles whose edits were taken back. Nothing pauses.
    fn back(&self, open: &Open<'a>) -> Leg<'a> {
        let ends = (1..).zip(&self.bounds.steps).collect::<Vec<_>>();
        let ends = ends.into_iter().rev().skip(1).map(Some).chain([None]);
        let mut legs = (1..).zip(ends).map(|(number, end)| {
            let stays =
                |name: &str, role: &RoleRollout| end.map_or(0, |end| self.bounds.goal(end, name, role.shared()));
            self.leg(number, open, |name, role| role.shared() - stays(name, role))
        });
        legs.find(|leg| !leg.behind.is_empty()).unwrap_or(Leg::free(self.count()))
    }

    /// Returns a step with these numbers of updated replicas.
    fn leg(&self, step: u32, open: &Open<'a>, goal: impl Fn(&str, &RoleRollout) -> u32) -> Leg<'a> {
        let limits: BTreeMap<_, _> = open.iter().map(|(name, role)| (*name, goal(name, role))).collect();
        let is_behind = |(name, role): &&(&'a str, &'a RoleRollout)| {
            limits.get(name).is_some_and(|limit| role.done() < (*limit).min(self.last(name, role)))
        };
        let behind = open.iter().filter(is_behind).map(|(name, _)| *name).collect();
        Leg { step, limits, behind, pause: None, lacks: None }
    }

    /// Returns the number of updated replicas when all steps are over: `partition` keeps the others old.
    fn last(&self, name: &str, role: &RoleRollout) -> u32 {
        role.last(floor(self.all, name, role))
    }

    /// Reports whether the pause after a step counts: replicas are still to be updated, a role that takes part was updated since
    /// the pause before, and the pause has not ended.
    fn counts(
        &self,
        step: &RolloutStep,
        before: Option<&RolloutStep>,
        (open, state): (&Open<'a>, &RolloutState),
    ) -> bool {
        let share = |step: Option<&RolloutStep>, role: &str| step.and_then(|step| step.shares.get(role)).copied();
        let has_moved = |role: &String| share(Some(step), role) > Some(share(before, role).unwrap_or(0));
        let updated = |role: &RoleRollout| role.count(|ordinal, replica| role.shares(ordinal) && replica.updated);
        let is_left = open.iter().any(|(name, role)| updated(role) < self.last(name, role));
        let ended = step.shares.iter().all(|(role, share)| *share <= state.passed.get(role).copied().unwrap_or(0));
        is_left && !ended && state.revisions.keys().any(has_moved)
    }
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
