//! Prints the measurements of large groups as tables.

use std::fmt::Write as _;
use std::time::Duration;

use crate::Row;
use crate::section::Section;

/// Writes a row for the fastest run of each kind, and prints the requests and the other processors' time of every run.
pub fn print(out: &mut Section, rows: &[Row]) {
    writeln!(out, "| pods | | all ready | against the fastest ungated | to bound | requests | CPU of the API server | of the others | of rolegate | step p50 | p99 |").unwrap();
    writeln!(out, "|{}", "---|".repeat(11)).unwrap();
    for (number, row) in rows.iter().enumerate() {
        let is_like = |other: &&Row| other.what == row.what && other.pods == row.pods;
        if !rows[..number].iter().any(|before| is_like(&before)) {
            let slowest = rows.iter().filter(is_like).map(|row| row.time).max().unwrap();
            let row = fastest(rows, &row.what, Some(row.pods)).unwrap();
            let at = |percent: usize| {
                row.steps.get(row.steps.len() * percent / 100).map_or_else(String::new, |time| format!("{time:.0?}"))
            };
            let cells = [
                format!("{} | {}", row.pods, row.what),
                format!("{:.1} to {}", row.time.as_secs_f64(), seconds(slowest)),
                fastest(rows, "ungated", Some(row.pods)).map_or_else(String::new, |ungated| ratio(row, ungated)),
                seconds(row.bound),
                row.spent.requests.values().sum::<u64>().to_string(),
                seconds(row.spent.server),
                seconds(row.spent.others.values().sum()),
                row.spent.rolegate.map_or_else(String::new, seconds),
                at(50),
                at(99),
            ];
            writeln!(out, "| {} |", cells.join(" | ")).unwrap();
        }
        let Row { what, pods, spent, passes, .. } = row;
        println!("{pods} {what}: {:?}; CPU {:?}; {passes:?}", spent.requests, spent.others);
    }
    writeln!(out).unwrap();
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
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
        out.figure("CPU of rolegate meanwhile", format!("{} at {} pods", seconds(cpu), ordered.pods));
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
