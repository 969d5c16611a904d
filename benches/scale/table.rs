//! Prints the measurements of large groups as tables.

use std::fmt::Write as _;
use std::time::Duration;

use crate::Row;
use crate::section::Section;

/// Prints all rows, and the requests of each.
pub fn print(out: &mut Section, rows: &[Row]) {
    writeln!(out, "| pods | | all ready | against the fastest ungated | CPU of the API server | of the others | of rolegate | step p50 | p99 |"
    ).unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|---|").unwrap();
    for row in rows {
        let ratio = fastest(rows, "ungated", Some(row.pods)).map_or_else(String::new, |ungated| ratio(row, ungated));
        let at = |percent: usize| {
            row.steps.get(row.steps.len() * percent / 100).map_or_else(String::new, |time| format!("{time:.0?}"))
        };
        let of_rolegate = row.spent.rolegate.map_or_else(String::new, |cpu| format!("{:.1} s", cpu.as_secs_f64()));
        writeln!(
            out,
            "| {} | {} | {:.1} s | {ratio} | {:.1} s | {:.1} s | {of_rolegate} | {} | {} |",
            row.pods,
            row.what,
            row.time.as_secs_f64(),
            row.spent.server.as_secs_f64(),
            row.spent.others.values().sum::<Duration>().as_secs_f64(),
            at(50),
            at(99),
        )
        .unwrap();
    }
    writeln!(out).unwrap();
    for row in rows.iter().filter(|row| !row.spent.requests.is_empty()) {
        let asked = row.spent.requests.iter().map(|(what, count)| format!("{count} {what}"));
        let others = row.spent.others.iter().map(|(name, cpu)| format!("{name} {:.1} s", cpu.as_secs_f64()));
        let (asked, others) = (asked.collect::<Vec<_>>().join(", "), others.collect::<Vec<_>>().join(", "));
        let passes = row.passes.as_ref().map_or_else(String::new, |passes| format!("; {passes}"));
        let bound = format!("last pod made to last bound {:.1} s", row.bound.as_secs_f64());
        writeln!(out, "- {} {}: {bound}; {asked}; CPU of {others}{passes}", row.pods, row.what).unwrap();
    }
    writeln!(out).unwrap();
}

/// Writes the figures that have a target, from the fastest runs.
pub fn enter_figures(out: &mut Section, rows: &[Row]) {
    let floors = [
        ("Parallel", "ungated", "Parallel, against ungated"),
        ("Parallel", "constant webhook", "Parallel, against a webhook that answers a constant"),
        ("OrderedReady", "bare loop", "in order, against a bare loop"),
        ("OrderedReady", "bare loop, same admission", "in order, against a bare loop behind the same admission"),
    ];
    for (what, floor, figure) in floors {
        let Some(row) = fastest(rows, what, None) else { continue };
        if let Some(floor) = fastest(rows, floor, Some(row.pods)) {
            out.figure(figure, format!("{} at {} pods", ratio(row, floor), row.pods));
        }
    }
    let Some(ordered) = fastest(rows, "OrderedReady", None) else { return };
    if let Some(cpu) = ordered.spent.rolegate {
        out.figure("CPU of rolegate meanwhile", format!("{:.1} s at {} pods", cpu.as_secs_f64(), ordered.pods));
    }
    if let Some(step) = ordered.steps.get(ordered.steps.len() * 99 / 100) {
        out.figure("batch ready to last PATCH of the next, p99", format!("{step:.0?}"));
    }
}

/// Returns the fastest run: disturbances only add time.
fn fastest<'a>(rows: &'a [Row], what: &str, pods: Option<u32>) -> Option<&'a Row> {
    let like = rows.iter().filter(|row| row.what == what && pods.is_none_or(|pods| row.pods == pods));
    like.min_by_key(|row| row.time)
}

fn ratio(row: &Row, floor: &Row) -> String {
    format!("{:.2} ×", row.time.as_secs_f64() / floor.time.as_secs_f64())
}
