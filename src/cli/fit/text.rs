//! Text output of `fit`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{FittedBatches, FittedGroup, Found, rooms, sizes};
use crate::cli::draw::{self, ROOM};
use crate::cli::terminal::{Style, shown};
use crate::fit::{Fitted, Missing};
use crate::model::Batching;
use crate::plan::placement::{NotModelled, Placement, Remedy};

pub(super) fn print(out: &mut impl Write, groups: &[FittedGroup], wide: bool) -> io::Result<()> {
    let style = Style::of_stdout();
    let mut drawn = false;
    for fitted in groups {
        let key = &fitted.group.key;
        let title = shown(&format!("{}/{}", key.namespace, key.name));
        for fault in &fitted.faults {
            let fault = shown(&format!("{}: {fault}", fault.rule));
            writeln!(out, "{title} breaks a rule, so that nothing new of it is released: {fault}")?;
        }
        let coordinations = match &fitted.found {
            Found::Batches(coordinations) => coordinations,
            Found::Sizes(suggestions) => {
                sizes::print(out, &title, suggestions, wide)?;
                continue;
            }
        };
        if coordinations.is_empty() && fitted.faults.is_empty() {
            writeln!(out, "{title}: no coordination makes batches of it")?;
        }
        for FittedBatches { fitted: coordination, rooms, missing } in coordinations {
            let summary = shown(&format!("coordination {:?}: {}", coordination.name, summary(coordination)));
            writeln!(out, "{title}, {summary}")?;
            if let Some(rooms) = rooms {
                drawn = true;
                write!(out, "{}", rooms::drawn(rooms, coordination, &style, wide))?;
            }
            for line in details(coordination) {
                writeln!(out, "{}", shown(&line))?;
            }
            for missing in missing {
                writeln!(out, "{}", shown(&lacks(coordination, missing)))?;
            }
        }
    }
    if drawn { writeln!(out, "{}", draw::legend(&style, ROOM, |_| true)) } else { Ok(()) }
}

/// Returns a summary, `2 run, 1 of 3 segments fit`, the place of the next batch, and the shortage of the first that
/// does not fit.
pub fn brief(fitted: &Fitted) -> Vec<String> {
    let head = format!("{}: {}", fitted.name, summary(fitted));
    let all = details(fitted);
    let fits = fitted.answer.as_ref().map_or(0, |answer| answer.outlook.fits.len());
    // Of the batches that fit, the next one is enough.
    let shown = all.iter().enumerate().filter(|(line, _)| *line == 0 || *line >= fits).map(|(_, text)| text.clone());
    std::iter::once(head).chain(shown).collect()
}

fn summary(coordination: &Fitted) -> String {
    let Fitted { bound, total, answer, .. } = coordination;
    let bound = if *bound > 0 { format!("{bound} of {total} run") } else { String::new() };
    match answer {
        Err(error) => error.to_string(),
        Ok(answer) => {
            let fits = answer.outlook.fits.len();
            let fit = match total - coordination.bound {
                0 => "nothing is left to be placed".to_owned(),
                left => format!("{fits} of {left} {} fit", coordination.batching.kind.words()),
            };
            [bound, fit].iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns a line for each batch that fits, and the shortage of the next one.
pub fn details(coordination: &Fitted) -> Vec<String> {
    let Ok(answer) = &coordination.answer else { return Vec::new() };
    let fits = answer.outlook.fits.iter();
    let mut lines: Vec<_> =
        fits.map(|(index, placement)| format!("  {}: {}", named(coordination, *index), place(placement))).collect();
    if let Some(stop) = &answer.outlook.stop {
        lines.push(format!("  {}: {}", named(coordination, stop.index), coordination.why(stop)));
        lines.extend(stop.remedies.iter().map(|remedy| format!("    it would fit if {}", would(remedy))));
    }
    lines.extend(NotModelled::beyond(&answer.not_modelled).map(|beyond| format!("  {beyond}")));
    lines
}

/// Returns a line on the nodes that a batch lacks.
fn lacks(coordination: &Fitted, missing: &Missing) -> String {
    let name = coordination.batching.batch_name(missing.index);
    let Some(nodes) = &missing.nodes else { return format!("  {name} fits with no number of the new nodes") };
    let each: Vec<_> = nodes.shapes.iter().map(|(shape, count)| format!("{count} × {shape}")).collect();
    let within = nodes.domain.as_ref().map(|domain| format!(" in {domain}")).unwrap_or_default();
    format!("  {name} lacks {}{within}", each.join(" and "))
}

/// Names a batch with its replicas: `step 2 (10 prefill and 5 decode)`.
fn named(coordination: &Fitted, index: u32) -> String {
    let batching: &Batching = &coordination.batching;
    let roles = coordination.desired.iter().filter_map(|(role, desired)| {
        let count = batching.ordinals(role, index, *desired).len();
        (count > 0).then(|| format!("{count} {role}"))
    });
    format!("{} ({})", batching.batch_name(index), roles.collect::<Vec<_>>().join(" and "))
}

/// Names the domain of a placement, `rack-2`, or its nodes with their numbers of pods.
fn place(placement: &Placement) -> String {
    let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
    placement.nodes.iter().for_each(|node| *nodes.entry(node).or_default() += 1);
    let on = match nodes.len() {
        0..=MOST_NODES => {
            let each: Vec<_> = nodes.iter().map(|(node, pods)| format!("{node} × {pods}")).collect();
            each.join(", ")
        }
        many => format!("{many} nodes"),
    };
    match &placement.domain {
        Some(domain) => format!("{domain} ({on})"),
        None => on,
    }
}

/// Maximum number of nodes to name.
const MOST_NODES: usize = 4;

fn would(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Uncordon(nodes) => format!("these were not cordoned: {}", nodes.join(", ")),
        Remedy::Preempt(priority) => format!("pods of a priority below {priority} gave way"),
    }
}
