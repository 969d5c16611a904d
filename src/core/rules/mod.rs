//! Rules on objects. Every rule is one function and one row of a table; webhook, loop and offline commands run the same
//! tables.

mod almost;
mod carrier;
pub mod catalogue;
mod coordinated;
pub mod decode;
mod facts;
mod group;
mod grove;
mod in_mode;
pub mod judge;
mod judged;
mod kinds;
mod names;
pub mod need;
pub mod options;
mod percent;
mod podgroup;
mod policy;
pub mod question;
pub mod rule;
pub mod rule_setting;
pub mod settings;
mod topology;
mod unknown_fields;
pub mod violation;
pub mod world;

pub use almost::almost_ours;
pub use carrier::read_group;
pub use catalogue::{RuleInfo, catalogue};
pub use decode::{DecodeError, decode_value};
pub use group::needs_of_group;
pub use in_mode::faults_in_mode;
pub use judge::{judge_group, judge_json, needs};
pub use kinds::judged_kinds;
pub use names::label_key_fault;
pub use need::{Known, Need};
pub use options::{KaiDialect, Options};
pub use podgroup::judge_names;
pub use question::{Judged, Operation};
pub use rule::{Change, ChangeRule, Level, Rule};
pub use rule_setting::RuleSetting;
pub use settings::RuleSettings;
pub use topology::is_valid as topology_is_valid;
pub use violation::{Cause, Report, Severity, Violation};
pub use world::{Shortage, World};
