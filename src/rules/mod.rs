//! From an object to what is wrong with it. Every rule is one function and one row of a table; webhook, loop and the
//! offline commands run the same tables.

pub mod catalogue;
mod group;
mod grove;
mod hint;
pub mod judge;
mod podgroup;
pub mod rule;
pub mod violation;
pub mod world;

pub use catalogue::{RuleInfo, catalogue};
pub use judge::{DecodeError, Judged, Operation, judge_group, judge_json};
pub use rule::{Level, Rule};
pub use violation::{Cause, Report, Severity, Violation};
pub use world::{KaiDialect, Options, World};
