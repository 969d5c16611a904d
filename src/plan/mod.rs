//! From what is observed to what is decided. Pure: no client, no clock.

pub mod absence;
pub mod agenda;
mod assign;
pub mod batches;
pub mod conditions;
pub mod decide;
pub mod decision;
pub mod facts;
pub mod fate;
pub mod gangs;
mod holds;
pub mod marks;
mod memory;
mod mismatch;
mod missing_pass;
mod moment;
pub mod news;
pub mod observed;
pub mod pass;
pub mod progression;
pub mod role;
mod rolling_pass;
pub mod rollout;
mod rollout_news;
#[cfg(test)]
mod rollout_news_tests;
pub mod segments;
pub mod simulate;
pub mod stamp;
mod stopwatch;
pub mod surge;
#[cfg(test)]
mod test_support;
pub mod view;
pub mod waits;
mod wholes;

pub use absence::{Absence, Found, WhyAbsent};
pub use agenda::{Agenda, Ended};
pub use batches::{Batch, BatchState, batches};
pub use decide::{Circumstances, decide};
pub use decision::Decision;
pub use facts::{HeldPod, PodFacts, PodRef};
pub use fate::{Held, Release};
pub use gangs::BatchGang;
pub use moment::Moment;
pub use observed::Observed;
pub use pass::{Action, Claims, IncompleteBatch, LoopOptions, MissingGroup, Snapshot, Unlabelled};
pub use progression::{CoordinationTarget, State, Targets, targets};
pub use role::{Replica, RoleView};
pub use simulate::{Run, decide_once, simulate};
pub use view::GroupView;
pub use waits::{Missing, waits_for};
pub use wholes::Whole;
