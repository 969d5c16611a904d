//! What it takes to judge a kind of object: one implementation for each type, and one way of judging for all.

use super::decode::DecodeError;
use super::question::{Judged, Operation, Question};
use super::rule::{Change, ChangeRule, Rule, run, run_changes};
use super::{Need, Violation, World};

/// A type of object that rules judge.
pub(super) trait JudgedObject: Sized + 'static {
    /// What its rules are listed under: name of the folder of their golden cases.
    const TITLE: &'static str;
    /// Rules over the size of objects. Where one finds something no other rule is run, and nothing is looked up.
    const SIZE_RULES: &'static [Rule<Self>] = &[];
    /// Rules over objects.
    const RULES: &'static [Rule<Self>];
    /// Rules over updates.
    const CHANGE_RULES: &'static [ChangeRule<Self>] = &[];
    /// Rules over deletes.
    const DELETE_RULES: &'static [Rule<Self>] = &[];

    /// Reads an object, with the others that it is read with.
    fn read(question: Question<'_>, json: &str, world: &World) -> Result<Self, DecodeError>;

    /// True for what is judged at all.
    fn is_judged_at(operation: Operation) -> bool {
        operation != Operation::Delete || !Self::DELETE_RULES.is_empty()
    }

    /// True for one that passes untouched: it is being deleted, or none of our business.
    fn passes(&self) -> bool;

    /// What the rules look up, where it is not being deleted.
    fn needs(&self, _old: Option<&Self>, _world: &World) -> Vec<Need> {
        Vec::new()
    }

    /// What the rules over deletes look up.
    fn delete_needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// What the findings weigh in this object.
    fn weigh(&self, found: Vec<Violation>) -> Vec<Violation> {
        found
    }
}

/// Reads an object and judges it.
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

/// Judges an object, and where it is an update, what it was before.
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
            // A fault that weighed less in the old object is an old fault all the same.
            judged.forgive(&weighed(run(T::RULES, old, world), world)).and(changes)
        }
        None => judged,
    }
}

/// What findings weigh where single rules are set to weigh something.
fn weighed(found: Vec<Violation>, world: &World) -> Vec<Violation> {
    world.options.rules.weigh(found)
}

/// What the rules of an object look up.
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

/// The object before. One that cannot be read forgives nothing.
fn old<T: JudgedObject>(question: Question<'_>, world: &World) -> Option<T> {
    question.old.and_then(|old| T::read(question, old, world).ok())
}
