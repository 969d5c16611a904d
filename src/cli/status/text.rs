//! Text output for groups: a head line per group, a bar of batches per coordination, and the holds.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::batches;
use crate::api::status::Condition;
use crate::cli::draw::{self, BATCH};
use crate::cli::fit::brief;
use crate::cli::terminal::{Style, Table, age, lines, shown};
use crate::model::wording::counted;
use crate::model::{Batching, Coordination, Mode, Queued};
use crate::report::{Awaited, Explanation, Hold, Picture, Story, Would};

/// Maximum number of cells in a bar.
const WIDTH: usize = 50;
/// Maximum number of replicas that are waited for.
const MOST_AWAITED: usize = 8;

/// Optional parts of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    /// Shows the conditions, what fits, and what helps.
    pub(super) of_one: bool,
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
        let story = Story::of(picture);
        text.push_str(&lines(story.lines()));
        text.push_str(&holds(picture, style));
        text.push_str(&lines(story.would().iter().flat_map(Would::lines)));
        if detail.of_one {
            text.push_str(&lines(picture.fitted.iter().flat_map(brief)));
            text.push_str(&conditions(Table::default(), &picture.seen.status.conditions));
            text.push_str(&explained(picture, style));
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

/// Describes why pods are held.
fn holds(picture: &Picture, style: Style) -> String {
    let mut text = String::new();
    for held in Story::of(picture).holds() {
        _ = writeln!(text, "  {}{}{}: {}", style.moving, held.reason, style.end, shown(&Hold::of(held).text()));
    }
    let due = picture.seen.decision.release.len();
    text.push_str(&may_go(due));
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

/// Returns conditions as rows of a table.
pub fn conditions(mut table: Table, all: &[Condition]) -> String {
    for condition in all {
        table.row([&condition.r#type, &condition.status, &condition.reason, &condition.message].map(String::as_str));
    }
    table.text(2)
}

/// Describes pods that may go.
pub(super) fn may_go(due: usize) -> String {
    if due == 0 {
        return String::new();
    }
    format!("  {} may go now: rolegate lifts the gates while it runs\n", counted(due, "pod"))
}

/// Explains why each coordination holds pods, what happens next, and what the user can do.
fn explained(picture: &Picture, style: Style) -> String {
    let mut text = String::new();
    let explanations = Story::of(picture).explanations();
    let pauses = picture.seen.rollouts.stages.iter().any(|stage| stage.pause.is_some());
    if explanations.is_empty() && !pauses {
        text.push_str("  nothing is held back\n");
    }
    for Explanation { hold, waits_for, next, you_can } in explanations {
        let name = hold.coordination.map_or_else(String::new, |name| format!("coordination {name:?}: "));
        _ = writeln!(text, "\n{}{}{}{}", style.strong, shown(&name), hold.reason, style.end);
        _ = writeln!(text, "  {}", shown(&hold.text()));
        if !waits_for.is_empty() {
            _ = write!(text, "  waits for\n{}", replicas(&waits_for, 4));
        }
        _ = writeln!(text, "  next     {next}");
        you_can.iter().for_each(|line| _ = writeln!(text, "  you can  {line}"));
    }
    let in_queue = picture.snapshot.pods.iter().filter(|pod| !pod.held && pod.queued == Queued::Waits).count();
    if in_queue > 0 {
        _ = writeln!(
            text,
            "\n{} held by Kueue only: see `kubectl get workloads.kueue.x-k8s.io -n {}`",
            counted(in_queue, "pod"),
            picture.key.namespace
        );
    }
    text
}

/// Returns the first replicas that are waited for as lines.
pub fn replicas(awaited: &[Awaited], indent: usize) -> String {
    let mut table = Table::default();
    for Awaited { role, ordinal, state, pods } in awaited.iter().take(MOST_AWAITED) {
        table.row([format!("{role} {ordinal}"), (*state).to_owned(), pods.join(" ")]);
    }
    let mut text = table.text(indent);
    if awaited.len() > MOST_AWAITED {
        _ = writeln!(text, "{:indent$}and {} more", "", awaited.len() - MOST_AWAITED);
    }
    text
}
