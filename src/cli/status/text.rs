//! Text output for groups: a head line per group, a bar of batches per coordination, and the holds.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::batches;
use crate::cli::draw::{self, BATCH};
use crate::cli::fit::brief;
use crate::cli::terminal::{Style, Table, age, shown};
use crate::model::wording::counted;
use crate::model::{Batching, Coordination, Group, Mode};
use crate::plan::elastic::segments_line;
use crate::plan::provision::text::requests;
use crate::plan::recovery::text::recoveries;
use crate::plan::rollout::rollouts;
use crate::report::{InPart, OutdatedEngine, Picture, Would};

/// Maximum number of cells in a bar.
const WIDTH: usize = 50;

/// Optional parts of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    /// Shows the conditions, and what fits.
    pub(super) conditions: bool,
    /// Shows a row for each batch.
    pub(super) batches: bool,
}

pub(super) fn render(pictures: &[Picture], detail: Detail, now: Timestamp) -> String {
    let style = Style::of_stdout();
    let mut text = String::new();
    for (position, picture) in pictures.iter().enumerate() {
        if position > 0 {
            text.push('\n');
        }
        text.push_str(&head(picture, now, style));
        text.push_str(&bars(picture, detail, style));
        if let Some(line) = picture.group().and_then(|group| segments(group, picture)) {
            _ = writeln!(text, "  {}", shown(&line));
        }
        for line in rollouts(&picture.seen.decision.rollout, &picture.seen.rollouts) {
            _ = writeln!(text, "  {}", shown(&line));
        }
        for line in picture.group().into_iter().flat_map(|group| recoveries(group, &picture.seen.decision.recovery)) {
            _ = writeln!(text, "  {}", shown(&line));
        }
        for outdated in OutdatedEngine::all_of(picture) {
            _ = writeln!(text, "  {}", shown(outdated.sentence()));
        }
        for part in InPart::all_of(picture) {
            _ = writeln!(text, "  {}", shown(part.sentence()));
        }
        for line in picture.group().into_iter().flat_map(|group| requests(group, &group.status.provisioning)) {
            _ = writeln!(text, "  {}", shown(&line));
        }
        text.push_str(&holds(picture, style));
        for line in Would::of(picture).iter().flat_map(Would::lines) {
            _ = writeln!(text, "  {}", shown(&line));
        }
        if detail.conditions {
            for line in picture.fitted.iter().flat_map(brief) {
                _ = writeln!(text, "  {}", shown(&line));
            }
            text.push_str(&conditions(picture));
        }
    }
    text
}

/// Returns the head line: `prod/pd  RoleBasedGroup  3/10 segments  45/150 pods ready  105 pods held  4m12s`.
fn head(picture: &Picture, now: Timestamp, style: Style) -> String {
    let mut parts = vec![format!("{}{}{}", style.strong, shown(&picture.key.to_string()), style.end)];
    match picture.carrier() {
        Some((kind, name)) if *name == *picture.key.name => parts.push(kind.to_owned()),
        Some((kind, name)) => parts.push(format!("{kind} {name}")),
        None => parts.push(format!("{}not there{}", style.bad, style.end)),
    }
    if let Some(summary) = &picture.seen.status.summary {
        if !summary.segments.is_empty() {
            parts.push(format!("{} segments", summary.segments));
        }
        parts.push(format!("{} pods ready", summary.ready));
    }
    if picture.held_pods() > 0 {
        parts.push(format!("{} held", counted(picture.held_pods(), "pod")));
    }
    parts.extend(picture.snapshot.lets_go().map(|why| why.words().to_owned()));
    if picture.snapshot.stance.is_of_other() {
        parts.push("another rolegate serves its namespace".to_owned());
    }
    if picture.snapshot.stance.mode == Mode::Warn {
        parts.push("in mode warn".to_owned());
    }
    let created = picture.group().and_then(|group| group.carrier.created.parse().ok());
    parts.extend(created.map(|created| age(seconds_since(created, now))));
    parts.join("  ") + "\n"
}

/// Returns the seconds between two times; 0 when the order is reversed.
pub fn seconds_since(then: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.as_second() - then.as_second()).unwrap_or(0)
}

/// Returns a bar for each coordination with batches.
fn bars(picture: &Picture, detail: Detail, style: Style) -> String {
    let Some(group) = picture.group() else { return String::new() };
    let bar = |(coordination, batching): (&Coordination, &Batching)| {
        let bar = bar(picture, coordination, batching, style);
        if detail.batches { bar + &batches::table(picture, coordination, batching) } else { bar }
    };
    group.batched().map(bar).collect()
}

fn bar(picture: &Picture, coordination: &Coordination, batching: &Batching, style: Style) -> String {
    let cells: Vec<_> = batches::own(picture, coordination).map(batches::cell).collect();
    let counts = BATCH.iter().enumerate().filter_map(|(sort, cell)| {
        let count = cells.iter().filter(|cell| **cell == sort).count();
        (count > 0).then(|| format!("{count} {}", cell.word()))
    });
    let counts: Vec<_> = counts.collect();
    let target = picture.seen.decision.targets.coordination(coordination.index);
    let mut line = format!(
        "  {} {}  {}s: {}",
        shown(&coordination.display_name()),
        draw::bar(&style, BATCH, &cells, WIDTH),
        batching.kind.word(),
        counts.join(", "),
    );
    _ = write!(line, "  {}{}", style.faint, batching.progression());
    if let Some(target) = target {
        _ = write!(line, ", {}", target.state.as_str());
    }
    line + style.end + "\n"
}

/// Returns the legend of the bars; empty without bars.
pub(super) fn legend(pictures: &[Picture]) -> String {
    let seen = |sort| pictures.iter().flat_map(|picture| &picture.batches).any(|batch| batches::cell(batch) == sort);
    let legend = draw::legend(&Style::of_stdout(), BATCH, seen);
    let most = pictures.iter().filter_map(|picture| {
        let coordinations = picture.group()?.batched();
        coordinations.map(|(coordination, _)| batches::own(picture, coordination).count()).max()
    });
    match most.max() {
        None | Some(0) => String::new(),
        Some(most) if most > WIDTH => {
            format!(
                "{legend}; of more than {WIDTH} batches several share a cell, which shows the last state of these\n"
            )
        }
        Some(_) => legend + "\n",
    }
}

/// Describes the progress of an elastic group's segments.
fn segments(group: &Group, picture: &Picture) -> Option<String> {
    segments_line(group.elastic.as_ref()?, picture.seen.decision.elastic.as_ref())
}

/// Describes why pods are held.
fn holds(picture: &Picture, style: Style) -> String {
    let mut text = String::new();
    for held in picture.seen.decision.held.iter().filter(|held| held.is_told()) {
        let pods = if held.pods.is_empty() { String::new() } else { format!(" ({})", counted(held.count(), "pod")) };
        _ = writeln!(text, "  {}{}{}: {}{pods}", style.moving, held.reason, style.end, shown(&held.message));
    }
    let due = picture.seen.decision.release.len();
    if due > 0 {
        _ = writeln!(text, "  {} may go now: rolegate lifts the gates while it runs", counted(due, "pod"));
    }
    for other in picture.snapshot.claims.iter().flat_map(|claims| &claims.others) {
        let (kind, name) = (other.carrier.kind.kind, shown(&other.carrier.name));
        _ = writeln!(
            text,
            "  {}Conflicted{}: {kind} {name} claims the group too and controls nothing",
            style.bad, style.end
        );
    }
    text
}

/// Returns the conditions that the loop would write now.
fn conditions(picture: &Picture) -> String {
    let mut table = Table::default();
    for condition in &picture.seen.status.conditions {
        table.row([&condition.r#type, &condition.status, &condition.reason, &condition.message].map(String::as_str));
    }
    table.text(2)
}
