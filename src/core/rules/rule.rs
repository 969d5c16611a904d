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

/// A rule with a check function of type `C`.
pub struct RuleOf<C: 'static> {
    /// Stable id, used in messages, metrics and tests.
    pub id: &'static str,
    pub level: Level,
    /// The rule in one phrase, for lists of rules.
    pub summary: &'static str,
    /// Reports the violations of the rule.
    pub check: C,
}

/// A rule on objects of type `T`.
pub type Rule<T> = RuleOf<fn(&T, &World, &mut Report)>;

/// A rule on updates of objects of type `T`.
pub type ChangeRule<T> = RuleOf<fn(&Change<'_, T>, &World, &mut Report)>;

pub(super) const fn error<C>(id: &'static str, summary: &'static str, check: C) -> RuleOf<C> {
    RuleOf { id, level: Level::Error, summary, check }
}

pub(super) const fn warning<C>(id: &'static str, summary: &'static str, check: C) -> RuleOf<C> {
    RuleOf { id, level: Level::Warning, summary, check }
}

pub(super) const fn either<C>(id: &'static str, summary: &'static str, check: C) -> RuleOf<C> {
    RuleOf { id, level: Level::Either, summary, check }
}

impl<C> RuleOf<C> {
    pub(super) fn run_all(rules: &[Self], check: impl Fn(&C, &mut Report)) -> Vec<Violation> {
        let mut report = Report::default();
        for rule in rules {
            report.start(rule.id);
            check(&rule.check, &mut report);
        }
        report.finish()
    }
}

/// A rule of which all faults are found when the object is read.
pub(super) const fn of_reading<T>(id: &'static str, summary: &'static str) -> Rule<T> {
    error(id, summary, |_, _, _| {})
}

/// An update, for rules on changed fields.
#[derive(Debug)]
pub struct Change<'a, T> {
    pub old: &'a T,
    pub new: &'a T,
}

pub fn run_changes<T>(rules: &[ChangeRule<T>], change: &Change<'_, T>, world: &World) -> Vec<Violation> {
    RuleOf::run_all(rules, |check, report| check(change, world, report))
}
