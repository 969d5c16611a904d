//! The brake on recoveries: so many are under way at once, and none begins while so many batches look broken at once that one
//! cause is likely. Pure.

use std::time::Duration;

use crate::api::status::{Condition, RecoveryState};
use crate::model::moment::Moment;
use crate::model::{Group, Recovery};
use crate::plan::recovery::entry::Phase;

/// `RecoveryPaused`: so many batches look broken at once that one cause is likely; none is made anew. A condition, and the reason
/// of an Event.
pub const PAUSED: &str = "RecoveryPaused";
/// Reason of the condition while one cause is likely.
pub const MANY_BROKEN: &str = "ManyBatchesBroken";
/// Reason of the condition when a person has said that recoveries go on.
pub const RESUMED: &str = "Resumed";
/// From so many batches on that are not ready, and more than a third of all, one cause is taken for all of them.
const MANY: u32 = 3;
/// A recovery that takes longer holds no other up: its new pods have no room, or do not get ready.
const COUNTS_FOR: Duration = Duration::from_secs(600);

/// What is counted of batches that are recovered, of one group or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
    pub batches: u32,
    /// Those that were complete and have pods that are there and not ready, and count as lost when that lasts.
    pub unready: u32,
    /// Those whose recovery is under way.
    pub under_way: u32,
}

impl Tally {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            batches: self.batches.saturating_add(other.batches),
            unready: self.unready.saturating_add(other.unready),
            under_way: self.under_way.saturating_add(other.under_way),
        }
    }

    /// These without some of them.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            batches: self.batches.saturating_sub(other.batches),
            unready: self.unready.saturating_sub(other.unready),
            under_way: self.under_way.saturating_sub(other.under_way),
        }
    }

    /// True when one cause is likely.
    pub fn has_one_cause(self) -> bool {
        self.unready >= MANY && self.unready.saturating_mul(3) > self.batches
    }

    /// True when there is more room for recoveries than there was.
    pub fn eases(self, before: Self) -> bool {
        self.under_way < before.under_way || self.unready < before.unready || self.batches > before.batches
    }
}

/// What is known beside the group.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrakeContext {
    /// Batches of all other groups.
    pub others: Tally,
    /// Some of them were not looked at since this process leads: nothing begins.
    pub unseen: bool,
    /// So many recoveries of all groups are under way at once; a tenth of all batches, and at least one, when not given.
    pub most: Option<u32>,
}

/// What keeps recoveries of a group back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brake {
    /// Batches of the group.
    pub own: Tally,
    others: Tally,
    unseen: bool,
    most: Option<u32>,
    /// A person has said that recoveries go on.
    pub resumed: bool,
    /// It was told that one cause is likely, and that has just ended: what is not ready yet has its time anew.
    pub cleared: bool,
    /// A batch is to be made anew, and is not for this.
    pub stop: Option<Stop>,
}

/// Why a batch is not made anew that is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// One cause is likely.
    OneCause,
    /// It waits until fewer are.
    Others,
}

impl Brake {
    /// Before anything is decided.
    pub(super) fn of(group: &Group, own: Tally, context: BrakeContext) -> Self {
        let BrakeContext { others, unseen, most } = context;
        let said = group.status.condition(PAUSED);
        let is_later = |said: &Condition| group.carrier.is_resumed_since(said.last_transition_time.as_deref());
        let resumed = said.is_some_and(|said| said.reason == RESUMED || is_later(said));
        let was_on = said.is_some_and(|said| said.status == "True" && said.reason == MANY_BROKEN);
        let cleared = was_on && !resumed && !own.plus(others).has_one_cause();
        Self { own, others, unseen, most, resumed, cleared, stop: None }
    }

    /// True when a batch is not made anew, for one cause is likely.
    pub fn is_paused(&self) -> bool {
        self.stop == Some(Stop::OneCause)
    }

    /// Batches of all groups.
    pub fn all(&self) -> Tally {
        self.own.plus(self.others)
    }

    /// True while one cause is likely, and nobody has said that recoveries go on all the same.
    pub(super) fn is_on(&self) -> bool {
        self.all().has_one_cause() && !self.resumed
    }

    /// Lets a recovery begin, or says until when it waits.
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

/// Until when a recovery that is under way holds up others; `None` for one that does not.
pub(super) fn counts_until(phase: Phase, entry: &RecoveryState, now: Option<Moment>) -> Option<Moment> {
    let is_under_way = matches!(phase, Phase::Recreating | Phase::Releasing);
    let began = entry.attempts.last().and_then(|at| Moment::parse(at)).filter(|_| is_under_way)?;
    Some(began.after(COUNTS_FOR)).filter(|until| now.is_none_or(|now| *until > now))
}
