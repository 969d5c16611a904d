//! From an object to what is wrong with it. Every rule is one function and one row of a table; webhook, loop and the
//! offline commands run the same tables.

mod group;
pub mod judge;
pub mod violation;

pub use judge::{Judged, World, judge_group, judge_json};
pub use violation::{Cause, Report, Severity, Violation};

/// A rule over objects of type `T`.
pub struct Rule<T: 'static> {
    /// Stable id, used in messages, metrics and tests.
    pub id: &'static str,
    /// Reports what breaks the rule.
    pub check: fn(&T, &World, &mut Report),
}

/// Runs the rules of a table over an object.
pub fn run<T>(rules: &[Rule<T>], object: &T, world: &World) -> Vec<Violation> {
    let mut report = Report::default();
    for rule in rules {
        report.start(rule.id);
        (rule.check)(object, world, &mut report);
    }
    report.finish()
}
