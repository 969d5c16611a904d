//! The brake on recoveries: a limit on concurrent recoveries, and a pause while so many batches look broken that one cause is
//! likely. Pure.

use std::time::Duration;

use crate::api::status::{Condition, RecoveryState};
use crate::model::moment::Moment;
use crate::model::{Group, Recovery};
use crate::plan::recovery::entry::Phase;

/// A condition and the reason of an Event: so many batches look broken at once that one cause is likely, and none is recreated.
pub const PAUSED: &str = "RecoveryPaused";
/// The reason of the condition while one cause is likely.
pub const MANY_BROKEN: &str = "ManyBatchesBroken";
/// The reason of the condition after a person has resumed recoveries.
pub const RESUMED: &str = "Resumed";
/// The minimum number of unready batches, which must also be more than a third of all, for one cause to be likely.
const MANY: u32 = 3;
/// The time after which a recovery no longer holds up others: its new pods have no room, or do not become ready.
const COUNTS_FOR: Duration = Duration::from_secs(600);

/// Counts of batches with a recovery policy, of one group or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All such batches.
    pub batches: u32,
    /// Batches that look broken by pods that are not ready: these exist, or are being recreated.
    pub unready: u32,
    /// Batches whose recovery is under way.
    pub under_way: u32,
}

impl Tally {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            batches: self.batches.saturating_add(other.batches),
            unready: self.unready.saturating_add(other.unready),
            under_way: self.under_way.saturating_add(other.under_way),
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            batches: self.batches.saturating_sub(other.batches),
            unready: self.unready.saturating_sub(other.unready),
            under_way: self.under_way.saturating_sub(other.under_way),
        }
    }

    /// Reports whether one cause is likely.
    pub fn has_one_cause(self) -> bool {
        self.unready >= MANY && self.unready.saturating_mul(3) > self.batches
    }

    /// Reports whether there is more room for recoveries than before.
    pub fn eases(self, before: Self) -> bool {
        self.under_way < before.under_way || self.unready < before.unready || self.batches > before.batches
    }
}

/// The inputs of the brake beside the group.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrakeContext {
    /// The counts of all other groups.
    pub others: Tally,
    /// Whether a group was not looked at since this process leads: no recovery begins.
    pub unseen: bool,
    /// The maximum number of concurrent recoveries of all groups; the default is a tenth of all batches, and at least one.
    pub most: Option<u32>,
}

/// The brake on the recoveries of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brake {
    /// The counts of the group.
    pub own: Tally,
    others: Tally,
    unseen: bool,
    most: Option<u32>,
    /// Whether a person has resumed recoveries.
    pub resumed: bool,
    /// Whether a pause for one cause has just ended: unready batches get their time anew.
    pub cleared: bool,
    /// The reason why a batch is not recreated now, if there is one.
    pub stop: Option<Stop>,
}

/// The reason why a batch is not recreated now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// One cause is likely.
    OneCause,
    /// It waits for another recovery, or for a look at all groups.
    Others,
}

impl Brake {
    /// Returns the brake before any decision.
    pub(super) fn of(group: &Group, own: Tally, context: BrakeContext) -> Self {
        let BrakeContext { others, unseen, most } = context;
        let said = group.status.condition(PAUSED);
        let is_later = |said: &Condition| group.carrier.is_resumed_since(said.last_transition_time.as_deref());
        let resumed = said.is_some_and(|said| said.reason == RESUMED || is_later(said));
        let was_on = said.is_some_and(|said| said.status == "True" && said.reason == MANY_BROKEN);
        let brake = Self { own, others, unseen, most, resumed, cleared: false, stop: None };
        let cleared = was_on && !resumed && brake.one_cause().is_none();
        Self { cleared, ..brake }
    }

    /// Reports whether a batch is not recreated because one cause is likely.
    pub fn is_paused(&self) -> bool {
        self.stop == Some(Stop::OneCause)
    }

    /// Returns the counts of all groups.
    pub fn all(&self) -> Tally {
        self.own.plus(self.others)
    }

    /// Returns the counts by which one cause is likely: those of all groups, else those of the group alone, whose own cause does
    /// not show among many other batches.
    pub(super) fn one_cause(&self) -> Option<Tally> {
        [self.all(), self.own].into_iter().find(|tally| tally.has_one_cause())
    }

    /// Reports whether one cause is likely and no person has resumed recoveries.
    pub(super) fn is_on(&self) -> bool {
        self.one_cause().is_some() && !self.resumed
    }

    /// Admits a recovery, or returns the event that it waits for.
    pub(super) fn begin(&mut self, recovery: &Recovery) -> Result<(), String> {
        let all = self.all();
        let most = self.most.unwrap_or(all.batches / 10).max(1);
        let why = if self.is_on() {
            self.stop = Some(Stop::OneCause);
            return Err("until fewer batches look broken at once".to_owned());
        } else if self.unseen {
            "until all groups were looked at".to_owned()
        } else if self.own.under_way >= recovery.max_concurrent {
            format!("until another recovery of the group is over (`maxConcurrent: {}`)", recovery.max_concurrent)
        } else if all.under_way >= most {
            format!("until a recovery of another group is over (`--max-recoveries`, {most} here)")
        } else {
            self.own.under_way += 1;
            return Ok(());
        };
        self.stop = Some(Stop::Others);
        Err(why)
    }
}

/// Returns the time until which a recovery holds up others; `None` if it does not.
pub(super) fn counts_until(phase: Phase, entry: &RecoveryState, now: Option<Moment>) -> Option<Moment> {
    let is_under_way = matches!(phase, Phase::Recreating | Phase::Releasing);
    let began = entry.attempts.last().and_then(|at| Moment::parse(at)).filter(|_| is_under_way)?;
    Some(began.after(COUNTS_FOR)).filter(|until| now.is_none_or(|now| *until > now))
}
