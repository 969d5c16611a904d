//! A rule: an id, a level, and a check function; and the run of a table of rules.

use super::{Report, Violation, World};

/// The severity of a rule's findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Refuses the object.
    Error,
    /// Warns about a legal but surprising setting.
    Warning,
    /// Refuses or warns, depending on the case.
    Either,
}

pub struct Rule<T: 'static> {
    /// Stable id, used in messages, metrics and tests.
    pub id: &'static str,
    pub level: Level,
    /// The rule in one phrase, for lists of rules.
    pub summary: &'static str,
    /// Reports the violations of the rule.
    pub check: fn(&T, &World, &mut Report),
}

impl<T> Rule<T> {
    pub(super) const fn error(id: &'static str, summary: &'static str, check: fn(&T, &World, &mut Report)) -> Self {
        Self { id, level: Level::Error, summary, check }
    }

    pub(super) const fn warning(id: &'static str, summary: &'static str, check: fn(&T, &World, &mut Report)) -> Self {
        Self { id, level: Level::Warning, summary, check }
    }

    pub(super) const fn either(id: &'static str, summary: &'static str, check: fn(&T, &World, &mut Report)) -> Self {
        Self { id, level: Level::Either, summary, check }
    }
}

/// An update, for rules on changed fields.
#[derive(Debug)]
pub struct Change<'a, T> {
    pub old: &'a T,
    pub new: &'a T,
}

/// A rule on updates of objects of type `T`.
pub struct ChangeRule<T: 'static> {
    pub id: &'static str,
    pub level: Level,
    /// The rule in one phrase.
    pub summary: &'static str,
    /// Reports the violations of the rule.
    pub check: fn(&Change<'_, T>, &World, &mut Report),
}

impl<T> ChangeRule<T> {
    pub(super) const fn error(
        id: &'static str,
        summary: &'static str,
        check: fn(&Change<'_, T>, &World, &mut Report),
    ) -> Self {
        Self { id, level: Level::Error, summary, check }
    }

    pub(super) const fn warning(
        id: &'static str,
        summary: &'static str,
        check: fn(&Change<'_, T>, &World, &mut Report),
    ) -> Self {
        Self { id, level: Level::Warning, summary, check }
    }
}

pub fn run<T>(rules: &[Rule<T>], object: &T, world: &World) -> Vec<Violation> {
    let mut report = Report::default();
    for rule in rules {
        report.start(rule.id);
        (rule.check)(object, world, &mut report);
    }
    report.finish()
}

pub fn run_changes<T>(rules: &[ChangeRule<T>], change: &Change<'_, T>, world: &World) -> Vec<Violation> {
    let mut report = Report::default();
    for rule in rules {
        report.start(rule.id);
        (rule.check)(change, world, &mut report);
    }
    report.finish()
}
