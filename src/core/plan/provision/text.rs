//! Texts on requests for nodes.

use std::time::Duration;

use crate::api::ObjectKind;
use crate::api::status::ProvisioningState;
use crate::model::wording::{answer, counted, time};
use crate::model::{Group, HoldReason};
use crate::plan::provision::NoRoom;
use crate::plan::provision::entry::{Phase, by, objects_of};
use crate::plan::view::SeenCondition;

/// What is told of a batch without room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct Told {
    pub(in crate::plan) reason: HoldReason,
    pub(in crate::plan) message: String,
}

/// Returns the reason and text for a batch with a request, and the conditions of that, or why there are none.
pub(super) fn of(
    group: &Group,
    entry: &ProvisioningState,
    lacks: &NoRoom,
    seen: Result<Vec<SeenCondition>, String>,
) -> Option<Told> {
    Some(match Phase::of(entry)? {
        Phase::Requested => {
            let explained = match seen {
                Ok(conditions) => conditions.iter().map(condition).collect::<Vec<_>>().join(", "),
                Err(why) => why,
            };
            let explained = Some(explained).filter(|text| !text.is_empty()).map(|text| format!("; {text}"));
            let message = format!("{}; {}{}", lacks.why, asked(group, entry), explained.unwrap_or_default());
            Told { reason: HoldReason::NodesRequested, message }
        }
        Phase::GivenUp => Told { reason: HoldReason::NoRoom, message: format!("{}; {}", lacks.why, gave_up(entry)) },
        Phase::Placed | Phase::Withdrawn => return None,
    })
}

/// Returns one line for each batch for which nodes are requested, or were in vain.
pub fn requests<'a>(group: &'a Group, entries: &'a [ProvisioningState]) -> impl Iterator<Item = String> + 'a {
    entries.iter().filter_map(|entry| {
        let what = match Phase::of(entry)? {
            Phase::Requested => asked(group, entry),
            Phase::Placed => format!("its pods take the nodes of request {}", entry.attempt),
            Phase::GivenUp => gave_up(entry),
            Phase::Withdrawn => {
                format!("request {} for nodes is withdrawn with the spec that asked for it", entry.attempt)
            }
        };
        Some(format!("{}: {what}", group.batch_name(&entry.coordination, entry.batch)))
    })
}

fn gave_up(entry: &ProvisioningState) -> String {
    let ProvisioningState { attempt, message, not_before, .. } = entry;
    let again = not_before.as_deref().unwrap_or_default();
    format!("request {attempt} for nodes was given up: {message}; nodes are requested again at {again}")
}

/// Returns what was requested, by which object, and since when.
pub fn asked(group: &Group, entry: &ProvisioningState) -> String {
    let kind = by(entry).kind();
    let names = objects_of(group, entry).into_iter().filter(|(of, _)| *of == kind).map(|(_, name)| name);
    let pods = entry.pod_sets.iter().map(|set| set.count).fold(0, u32::saturating_add);
    let since = entry.since.as_deref().unwrap_or_default();
    let avoided =
        if entry.avoided.is_empty() { String::new() } else { format!(", not in {}", entry.avoided.join(", ")) };
    format!(
        "nodes for {} are requested since {since} by {} {}{avoided} (request {})",
        counted(pods, "pod"),
        kind.kind,
        names.collect::<Vec<_>>().join(" and "),
        entry.attempt
    )
}

/// Returns why a request was given up that has lasted for its whole time.
pub(super) fn overdue(deadline: Duration, missing: &str) -> String {
    let missing = Some(missing).filter(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default();
    format!("not all nodes came within {}{missing}", time(deadline))
}

/// Returns the text for a batch whose nodes rolegate may not request, or cannot by a kind that is not served.
pub(super) fn off(lacks: &NoRoom, unserved: Option<ObjectKind>) -> String {
    let why = unserved.map_or_else(
        || "rolegate runs without `--allow provision`".to_owned(),
        |kind| {
            let (version, definition) = (kind.api_version(), kind.crd_name());
            format!(
                "the API server serves no {} of {version}: {definition} is not there, or lacks that version",
                kind.kind
            )
        },
    );
    format!("{}; no nodes are requested, since {why}", lacks.why)
}

/// Returns the text for a batch for whose pods Kueue has requested nodes.
pub(super) fn by_kueue(lacks: &NoRoom) -> String {
    format!("{}; rolegate requests no nodes, since an admission check of Kueue has requested them", lacks.why)
}

/// Returns a condition as text.
pub(super) fn condition(condition: &SeenCondition) -> String {
    let SeenCondition { kind, is_true, reason, message, .. } = condition;
    let status = if *is_true { "True" } else { "False" };
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    let message = if message.is_empty() { String::new() } else { format!(": {}", answer(message)) };
    format!("{kind}={status}{reason}{message}")
}
