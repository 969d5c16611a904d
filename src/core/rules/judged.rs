//! The trait of judged objects, and their common judgement.

use super::decode::DecodeError;
use super::question::{Judged, Operation, Question};
use super::rule::{Change, ChangeRule, Rule, RuleOf, run_changes};
use super::{Need, Violation, World};
use crate::model::fault::Fault;

pub(super) trait JudgedObject: Sized + 'static {
    /// Title of its rules in lists: name of the folder of their golden cases.
    const TITLE: &'static str;
    /// Rules on the size of objects. Their findings stop the judgement: no other rule runs, and nothing is looked up.
    const SIZE_RULES: &'static [Rule<Self>] = &[];
    const RULES: &'static [Rule<Self>];
    /// Rules on updates.
    const CHANGE_RULES: &'static [ChangeRule<Self>] = &[];
    /// Rules on deletes.
    const DELETE_RULES: &'static [Rule<Self>] = &[];

    /// Reads an object, joined with the objects that it refers to.
    fn read(question: Question<'_>, json: &str, world: &World) -> Result<Self, DecodeError>;

    /// Reports whether objects are judged at this operation.
    fn is_judged_at(operation: Operation) -> bool {
        operation != Operation::Delete || !Self::DELETE_RULES.is_empty()
    }

    /// Reports whether the object passes unjudged: it is being deleted, or out of scope.
    fn passes(&self) -> bool;

    /// Returns what could not be read in the object. The rules that it breaks report it.
    fn faults(&self) -> &[Fault] {
        &[]
    }

    /// Returns the needs of the rules on an object that is not being deleted.
    fn needs(&self, _old: Option<&Self>, _world: &World) -> Vec<Need> {
        Vec::new()
    }

    /// Returns the needs of the rules on deletes.
    fn delete_needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// Reports whether what a missing right guards is as in the old object.
    fn keeps(&self, _old: &Self, _missing: &Violation) -> bool {
        false
    }

    /// Adjusts the severity of the findings to the object.
    fn weigh(&self, found: Vec<Violation>) -> Vec<Violation> {
        found
    }
}

pub(super) fn judge<T: JudgedObject>(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    if !T::is_judged_at(question.operation) {
        return Ok(Judged::default());
    }
    let object = T::read(question, question.object, world)?;
    if question.operation == Operation::Delete {
        return Ok(Judged::of(weighed(run(T::DELETE_RULES, &object, world), world)));
    }
    Ok(judge_read(&object, old(question, world).as_ref(), world))
}

/// Judges an object, and for an update its old version.
pub(super) fn judge_read<T: JudgedObject>(object: &T, old: Option<&T>, world: &World) -> Judged {
    if object.passes() {
        return Judged::default();
    }
    let too_large = weighed(run(T::SIZE_RULES, object, world), world);
    if !too_large.is_empty() {
        return Judged::of(too_large)
            .forgive(&old.map_or_else(Vec::new, |old| weighed(run(T::SIZE_RULES, old, world), world)));
    }
    let judged = Judged::of(weighed(object.weigh(run(T::RULES, object, world)), world));
    match old {
        Some(old) => {
            let changes = weighed(run_changes(T::CHANGE_RULES, &Change { old, new: object }, world), world);
            // A fault with a lower severity in the old object is an old fault too.
            let judged = judged.forgive(&weighed(run(T::RULES, old, world), world));
            judged.forgive_rights(|missing| object.keeps(old, missing)).and(changes)
        }
        None => judged,
    }
}

/// Runs the rules of a table on an object.
pub(super) fn run<T: JudgedObject>(rules: &[Rule<T>], object: &T, world: &World) -> Vec<Violation> {
    RuleOf::run_all(rules, |check, report| {
        check(object, world, report);
        report.read(object.faults());
    })
}

/// Applies the severities set for single rules.
fn weighed(found: Vec<Violation>, world: &World) -> Vec<Violation> {
    world.options.rules.weigh(found)
}

pub(super) fn needs<T: JudgedObject>(question: Question<'_>, world: &World) -> Result<Vec<Need>, DecodeError> {
    if !T::is_judged_at(question.operation) {
        return Ok(Vec::new());
    }
    let object = T::read(question, question.object, world)?;
    Ok(match question.operation {
        Operation::Delete => object.delete_needs(),
        Operation::Create | Operation::Update if object.passes() => Vec::new(),
        Operation::Create | Operation::Update => object.needs(old(question, world).as_ref(), world),
    })
}

/// Returns the old object. An unreadable one forgives nothing.
fn old<T: JudgedObject>(question: Question<'_>, world: &World) -> Option<T> {
    question.old.and_then(|old| T::read(question, old, world).ok())
}
