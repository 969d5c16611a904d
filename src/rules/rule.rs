//! A rule: an id, what it can find, and the function that checks it; and how a table of rules is run.

use super::{Report, Violation, World};

/// What a rule can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Faults that refuse the object.
    Error,
    /// What is legal and will surprise.
    Warning,
    /// Both, depending on the case.
    Either,
}

/// A rule over objects of type `T`.
pub struct Rule<T: 'static> {
    /// Stable id, used in messages, metrics and tests.
    pub id: &'static str,
    /// What it can find.
    pub level: Level,
    /// The rule in one phrase, for lists of rules.
    pub summary: &'static str,
    /// Reports what breaks the rule.
    pub check: fn(&T, &World, &mut Report),
}

impl<T> Rule<T> {
    /// A rule that refuses objects.
    pub(super) const fn error(id: &'static str, summary: &'static str, check: fn(&T, &World, &mut Report)) -> Self {
        Self { id, level: Level::Error, summary, check }
    }

    /// A rule that warns.
    pub(super) const fn warning(id: &'static str, summary: &'static str, check: fn(&T, &World, &mut Report)) -> Self {
        Self { id, level: Level::Warning, summary, check }
    }

    /// A rule that refuses or warns.
    pub(super) const fn either(id: &'static str, summary: &'static str, check: fn(&T, &World, &mut Report)) -> Self {
        Self { id, level: Level::Either, summary, check }
    }
}

/// An update, for rules over what may not change.
#[derive(Debug)]
pub struct Change<'a, T> {
    /// The object before.
    pub old: &'a T,
    /// The object now.
    pub new: &'a T,
}

/// A rule over updates of objects of type `T`.
pub struct ChangeRule<T: 'static> {
    /// Stable id.
    pub id: &'static str,
    /// The rule in one phrase.
    pub summary: &'static str,
    /// Reports what breaks the rule; always refuses.
    pub check: fn(&Change<'_, T>, &World, &mut Report),
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

/// Runs the rules of a table over an update.
pub fn run_changes<T>(rules: &[ChangeRule<T>], change: &Change<'_, T>, world: &World) -> Vec<Violation> {
    let mut report = Report::default();
    for rule in rules {
        report.start(rule.id);
        (rule.check)(change, world, &mut report);
    }
    report.finish()
}
