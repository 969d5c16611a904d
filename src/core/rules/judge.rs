//! Judgement of an object: the entry shared by webhook, loop and offline commands.

use super::decode::DecodeError;
use super::judged::judge_read;
use super::kinds::row_of;
use super::question::{Judged, Operation, Question};
use super::unknown_fields::unknown_fields;
use super::{Need, World};
use crate::model::Group;

/// Judges a group, and for an update its old version.
pub fn judge_group(group: &Group, old: Option<&Group>, world: &World) -> Judged {
    judge_read(group, old, world)
}

/// Judges an object of a kind with rules; `None` for other kinds, which are admitted.
///
/// # Errors
///
/// When the object does not have the shape of its kind.
pub fn judge_json(
    api_version: &str,
    kind: &str,
    operation: Operation,
    object: &str,
    old: Option<&str>,
    world: &World,
) -> Option<Result<Judged, DecodeError>> {
    let row = row_of(api_version, kind)?;
    let judged = (row.rules?.judge)(Question { kind: row.object, operation, object, old }, world);
    let unknown = |object: &str| world.options.rules.weigh(unknown_fields(row.object, object));
    Some(judged.map(|judged| {
        let judged = match (operation, old) {
            (Operation::Delete, _) => judged,
            (_, Some(old)) => judged.and(unknown(object)).forgive(&unknown(old)),
            (_, None) => judged.and(unknown(object)),
        };
        judged.in_mode(world.options.mode)
    }))
}

/// Returns the needs of an object that the world does not answer yet. An answer may reveal further needs (the workloads of a
/// referenced group): call again until nothing new is named. An unanswered need is not judged.
///
/// # Errors
///
/// When the object does not have the shape of its kind.
pub fn needs(
    api_version: &str,
    kind: &str,
    operation: Operation,
    object: &str,
    old: Option<&str>,
    world: &World,
) -> Result<Vec<Need>, DecodeError> {
    let row = row_of(api_version, kind);
    let Some((row, rules)) = row.and_then(|row| Some((row, row.rules?))) else { return Ok(Vec::new()) };
    let mut needs = (rules.needs)(Question { kind: row.object, operation, object, old }, world)?;
    needs.retain(|need| !world.is_answered(need));
    Ok(needs)
}
