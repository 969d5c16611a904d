//! Text output of `plan`: the verdict, the releases, and the batches.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Plan, Planned};
use crate::cli::fit::details;
use crate::cli::status::conditions;
use crate::cli::terminal::{Style, Table, lines, shown};
use crate::fit::Fitted;
use crate::model::wording::{counted, ordinals};
use crate::model::{BatchKind, Batching, Coordination, GangLevel, Group, names};
use crate::plan::decide::acceptance::planned;
use crate::plan::elastic::{ineffective, segments_line};
use crate::plan::recovery::text::{policy_text, recoveries};
use crate::plan::rollout::{planned_steps, rollouts};
use crate::plan::{Batch, Decision, ReplicaIs, Run};
use crate::rules::Violation;

/// The level of detail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    /// Shows a single decision from observed counts.
    pub(super) single: bool,
    /// Shows the share of each role after each release.
    pub(super) shares: bool,
}

pub(super) fn print(out: &mut impl Write, planned: &[Planned<'_>], detail: Detail) -> io::Result<()> {
    let style = Style::of_stdout();
    for (position, planned) in planned.iter().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        head(out, planned, detail.single, style)?;
        all_findings(out, planned, style)?;
        // A refused group is not planned.
        if let (true, Ok(Plan { group, run: Ok(run), fitted })) = (planned.judged.is_allowed(), &planned.plan) {
            body(out, group, run, detail)?;
            write!(out, "{}", lines(fitted.iter().flat_map(placed)))?;
        }
    }
    Ok(())
}

/// Returns a heading, `coordination "pd" goes to`, and a line for each batch.
pub(super) fn placed(fitted: &Fitted) -> Vec<String> {
    let why = fitted.answer.as_ref().err().map(|error| format!("  {error}"));
    std::iter::once(format!("coordination {:?} goes to", fitted.name)).chain(why).chain(details(fitted)).collect()
}

/// Returns kind and name: `RoleBasedGroup prod/pd`.
pub(super) fn title(planned: &Planned<'_>) -> String {
    let document = planned.document;
    let name = match document.namespace.as_str() {
        "" => document.name.clone(),
        namespace => format!("{namespace}/{}", document.name),
    };
    shown(&format!("{} {name}", document.kind))
}

/// Prints `RoleBasedGroup prod/pd: admitted, complete after 3 releases`.
pub(super) fn head(out: &mut impl Write, planned: &Planned<'_>, single: bool, style: Style) -> io::Result<()> {
    writeln!(out, "{}{}{}: {}", style.strong, title(planned), style.end, outcome(planned, single, style))
}

/// Describes the outcome of a group.
pub(super) fn outcome(planned: &Planned<'_>, single: bool, style: Style) -> String {
    let errors = planned.judged.errors.len();
    match planned.run() {
        _ if errors > 0 => format!("{}refused{}, {}", style.bad, style.end, counted(errors, "error")),
        None => planned.error().map(ToString::to_string).unwrap_or_default(),
        Some(run) if single && run.steps.is_empty() => "releases nothing now".to_owned(),
        Some(_) if single => "releases more now".to_owned(),
        Some(run) if planned.is_complete() => {
            format!("admitted, {}complete{} after {}", style.good, style.end, counted(run.steps.len(), "release"))
        }
        Some(run) => {
            format!("admitted, {}not complete{} after {}", style.bad, style.end, counted(run.steps.len(), "release"))
        }
    }
}

/// Prints the errors and warnings of a group.
pub(super) fn all_findings(out: &mut impl Write, planned: &Planned<'_>, style: Style) -> io::Result<()> {
    findings(out, style.bad, "error", &planned.judged.errors, style)?;
    findings(out, style.moving, "warning", &planned.judged.warnings, style)
}

fn findings(out: &mut impl Write, paint: &str, label: &str, list: &[Violation], style: Style) -> io::Result<()> {
    for violation in list {
        writeln!(out, "  {paint}{label}{}: {} [{}]", style.end, shown(&violation.to_string()), violation.rule)?;
    }
    Ok(())
}

fn body(out: &mut impl Write, group: &Group, run: &Run, detail: Detail) -> io::Result<()> {
    let batches = group.batched().map(|(coordination, batching)| {
        format!("{}; each pod is created with the gate {}", batches_of(coordination, batching), names::GATE)
    });
    let policies = group
        .batched()
        .filter_map(|(coordination, batching)| Some(policy_text(&coordination.display_name(), batching.recovers()?)));
    let free = group.roles.iter().filter(|role| group.batch_size(&role.name).is_none());
    let free = free.map(|role| in_no_batch(&role.name));
    let without_room = run.occupied.iter().flat_map(|occupied| &occupied.without_batch);
    let without_room = without_room.map(|(role, no_fit)| no_fit.describe(None, &format!("role {role:?}")));
    let unknown = group.roles.iter().filter(|role| role.workload.desired_is_unknown).map(|role| {
        let missing = role.workload.key.as_ref().map_or_else(|| "its workload".to_owned(), ToString::to_string);
        format!("role {:?} has no replicas: {missing} is not in the files, add it by --with", role.name)
    });
    let of_batches = batches.chain(elastic(group, run, detail)).chain(policies);
    write!(out, "{}", lines(of_batches.chain(free).chain(without_room).chain(unknown)))?;
    if detail.single {
        now(out, group, run)?;
    } else {
        steps(out, group, run, detail.shares)?;
        let waits = planned(group).into_iter().flat_map(|planned| planned.lines());
        write!(out, "{}", lines(waits.chain(planned_steps(group).iter().map(ToString::to_string))))?;
    }
    let Decision { rollout, recovery, held, .. } = &run.seen.decision;
    let held = held.iter().map(|held| format!("{} ({}, {})", held.message, held.reason, counted(held.count(), "pod")));
    write!(
        out,
        "{}",
        lines(rollouts(rollout, &run.seen.rollouts).into_iter().chain(recoveries(group, recovery)).chain(held))
    )?;
    let heading = [if detail.single { "CONDITION" } else { "AT THE END" }, "STATUS", "REASON", "MESSAGE"];
    write!(out, "{}", conditions(Table::with_heading(heading), &run.seen.status.conditions))
}

/// Describes the desired segments of a group, and, in a single decision, the progress of its workloads.
fn elastic(group: &Group, run: &Run, detail: Detail) -> Vec<String> {
    let Some(elastic) = &group.elastic else { return Vec::new() };
    let far = segments_line(elastic, run.seen.decision.elastic.as_ref());
    if ineffective(&elastic.standing).is_some() {
        return far.into_iter().collect();
    }
    let wanted = counted(elastic.wanted(), "segment");
    let wanted = format!("{wanted} wanted: their workloads are scaled together, one segment at a time");
    std::iter::once(wanted).chain(far.filter(|_| detail.single)).collect()
}

/// Describes a role that is in no batch.
pub(super) fn in_no_batch(role: &str) -> String {
    format!("role {role:?} is in no batch: its pods get no gate")
}

/// Describes batches: `coordination "pd": segments of 10 prefill and 5 decode, OrderedReady`, and their PodGroups.
pub(super) fn batches_of(coordination: &Coordination, batching: &Batching) -> String {
    let sizes: Vec<_> = batching.sizes.iter().map(|(role, size)| format!("{size} {role}")).collect();
    let (name, words) = (coordination.display_name(), batching.kind.words());
    let gangs =
        batching.gangs.as_ref().map(|gangs| format!(", one PodGroup for each {}", unit(gangs.level, batching.kind)));
    let gangs = gangs.unwrap_or_default();
    format!("coordination {name:?}: {words} of {}, {}{gangs}", sizes.join(" and "), batching.progression())
}

/// Describes the pods that share a PodGroup.
fn unit(level: GangLevel, kind: BatchKind) -> String {
    match level {
        GangLevel::Batch => kind.word().to_owned(),
        GangLevel::Role => format!("role of a {}", kind.word()),
        GangLevel::Replica => "replica of several pods".to_owned(),
    }
}

/// Prints a row per release: the released replicas, and the running ones.
fn steps(out: &mut impl Write, group: &Group, run: &Run, shares: bool) -> io::Result<()> {
    let batched: Vec<_> = group.roles.iter().filter(|role| group.batch_size(&role.name).is_some()).collect();
    if run.steps.is_empty() || batched.is_empty() {
        return Ok(());
    }
    let heading = ["RELEASE".to_owned()].into_iter().chain(batched.iter().map(|role| role.name.to_uppercase()));
    let share = batched.iter().filter(|_| shares).map(|role| format!("{} SHARE", role.name.to_uppercase()));
    let mut table = Table::with_heading(heading.chain(["REPLICAS".to_owned()]).chain(share));
    let desired: u64 = batched.iter().map(|role| u64::from(role.desired)).sum();
    let before = std::iter::once(&run.begun).chain(&run.steps);
    for (number, (before, after)) in before.zip(&run.steps).enumerate() {
        let cells = batched.iter().map(|role| added(before, after, &role.name).unwrap_or_else(|| "-".to_owned()));
        let running: u64 = after.values().map(|count| u64::from(*count)).sum();
        let row = [(number + 1).to_string()].into_iter().chain(cells);
        let share = batched.iter().filter(|_| shares).map(|role| {
            let released = u64::from(after.get(&role.name).copied().unwrap_or(0));
            format!("{} %", (released * 100).checked_div(u64::from(role.desired)).unwrap_or(100))
        });
        table.row(row.chain([format!("{running}/{desired}")]).chain(share));
    }
    write!(out, "{}", table.text(2))
}

/// Returns the ordinals that a step adds to a role.
fn added(before: &BTreeMap<String, u32>, after: &BTreeMap<String, u32>, role: &str) -> Option<String> {
    let from = before.get(role).copied().unwrap_or(0);
    let to = after.get(role).copied().unwrap_or(0).checked_sub(1).filter(|to| *to >= from)?;
    Some(ordinals(&(from..=to)))
}

/// Prints a single decision: the counts of each role, and the batches.
fn now(out: &mut impl Write, group: &Group, run: &Run) -> io::Result<()> {
    let mut table = Table::with_heading(["ROLE", "DESIRED", "RELEASED", "READY", "TARGET", "RELEASES NOW"]);
    for role in &group.roles {
        let Some(view) = run.seen.view.roles.get(&role.name) else { continue };
        let ready = view.replicas.count_in(..view.desired, ReplicaIs::Ready);
        let target = run.seen.decision.released.get(&role.name).copied().unwrap_or(view.desired);
        let before = view.released();
        let batched = group.batch_size(&role.name).is_some();
        let new = target.checked_sub(1).filter(|to| batched && *to >= before).map(|to| ordinals(&(before..=to)));
        table.row([
            role.name.clone(),
            view.desired.to_string(),
            before.to_string(),
            ready.to_string(),
            target.to_string(),
            new.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    write!(out, "{}", table.text(2))?;
    let all = run.seen.batches(group);
    let mut table = Table::with_heading(["COORDINATION", "BATCH", "STATE", "REASON"]);
    for alike in all.chunk_by(|a, b| (a.coordination, a.state, a.reason) == (b.coordination, b.state, b.reason)) {
        let (Some(first), Some(last)) = (alike.first(), alike.last()) else { continue };
        let name = group.coordination(first.coordination).map(Coordination::display_name);
        // Users count from 1.
        let numbers = ordinals(&(first.index + 1..=last.index + 1));
        table.row([name.unwrap_or_default(), numbers, first.state.as_str().to_owned(), why(first)]);
    }
    write!(out, "{}", table.text(2))
}

fn why(batch: &Batch) -> String {
    match (batch.reason, batch.state) {
        (Some(reason), _) => reason.to_string(),
        (None, crate::plan::BatchState::Held) => "may go now".to_owned(),
        (None, _) => "-".to_owned(),
    }
}
