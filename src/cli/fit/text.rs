//! For people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Fitted, FittedCoordination};
use crate::model::Batching;
use crate::plan::placement::{Placement, Remedy, Stop};

pub(super) fn print(out: &mut impl Write, groups: &[Fitted]) -> io::Result<()> {
    for fitted in groups {
        let key = &fitted.group.key;
        if fitted.coordinations.is_empty() {
            writeln!(out, "{}/{}: no coordination makes batches of it", key.namespace, key.name)?;
        }
        for coordination in &fitted.coordinations {
            writeln!(
                out,
                "{}/{}, coordination {:?}: {}",
                key.namespace,
                key.name,
                coordination.name,
                summary(coordination)
            )?;
            details(out, coordination)?;
        }
    }
    Ok(())
}

fn summary(coordination: &FittedCoordination) -> String {
    let FittedCoordination { bound, total, answer, .. } = coordination;
    let bound = if *bound > 0 { format!("{bound} of {total} run") } else { String::new() };
    match answer {
        Err(error) => error.to_string(),
        Ok(answer) => {
            let fits = answer.outlook.fits.len();
            let fit = match total - coordination.bound {
                0 => "nothing is left to be placed".to_owned(),
                left => format!("{fits} of {left} {}s fit", coordination.batching.kind.word()),
            };
            [bound, fit].iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
        }
    }
}

fn details(out: &mut impl Write, coordination: &FittedCoordination) -> io::Result<()> {
    let Ok(answer) = &coordination.answer else { return Ok(()) };
    let batching = &coordination.batching;
    for (index, placement) in &answer.outlook.fits {
        writeln!(out, "  {}: {}", named(coordination, *index), place(placement))?;
    }
    if let Some(Stop { index, no_fit, remedies }) = &answer.outlook.stop {
        let name = batching.batch_name(*index);
        writeln!(out, "  {}: {}", named(coordination, *index), no_fit.describe(coordination.domains(), &name))?;
        for remedy in remedies {
            writeln!(out, "    it would fit if {}", would(remedy))?;
        }
    }
    if !answer.not_modelled.is_empty() {
        let what: Vec<_> = answer.not_modelled.iter().map(crate::plan::placement::NotModelled::describe).collect();
        writeln!(out, "  the scheduler looks at more than this answer: {}", what.join(", "))?;
    }
    Ok(())
}

/// `step 2 (10 prefill and 5 decode)`.
fn named(coordination: &FittedCoordination, index: u32) -> String {
    let batching: &Batching = &coordination.batching;
    let roles = coordination.desired.iter().filter_map(|(role, desired)| {
        let count = batching.ordinals(role, index, *desired).len();
        (count > 0).then(|| format!("{count} {role}"))
    });
    format!("{} ({})", batching.batch_name(index), roles.collect::<Vec<_>>().join(" and "))
}

/// `rack-2`, or how many pods go to which nodes.
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

/// Nodes that are named one by one.
const MOST_NODES: usize = 4;

fn would(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Uncordon(nodes) => format!("these were not cordoned: {}", nodes.join(", ")),
        Remedy::Preempt(priority) => format!("pods of a priority below {priority} gave way"),
    }
}
