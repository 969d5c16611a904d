//! Text output of `test`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::Report;
use super::outcome::{Outcome, Verdict};
use crate::cli::mutate::diff::{painted, painted_line};
use crate::cli::terminal::shown;
use crate::model::wording::counted;

/// Prints the failed cases, or all cases, and a summary.
pub(super) fn print(out: &mut impl Write, report: &Report<'_>, all: bool, coloured: bool) -> io::Result<()> {
    for outcome in &report.outcomes {
        let is_told = all || !matches!(outcome.verdict, Verdict::Passed);
        if is_told {
            let code = match outcome.verdict {
                Verdict::Passed => "32",
                Verdict::Updated => "33",
                Verdict::Failed(_) | Verdict::Broken(_) => "31",
            };
            let case = outcome.case;
            let word = painted(&format!("{:<7}", outcome.verdict.word()), code, coloured);
            writeln!(out, "{word} {}:{}: {}", shown(&case.file), case.line, shown(&case.name))?;
        }
        details(out, outcome, coloured)?;
    }
    if let Some(coverage) = &report.coverage {
        let without: Vec<_> = coverage.iter().filter(|(_, cases)| *cases == 0).collect();
        writeln!(out, "{} of {} rules find something in a case", coverage.len() - without.len(), coverage.len())?;
        for (rule, _) in without {
            writeln!(out, "  none: {}/{}", rule.object, rule.id)?;
        }
    }
    writeln!(out, "{}", sum(report))
}

fn details(out: &mut impl Write, outcome: &Outcome<'_>, coloured: bool) -> io::Result<()> {
    match &outcome.verdict {
        Verdict::Passed | Verdict::Updated => Ok(()),
        Verdict::Broken(faults) => faults.iter().try_for_each(|fault| writeln!(out, "  {}", shown(fault))),
        Verdict::Failed(differences) => differences.iter().try_for_each(|difference| {
            writeln!(out, "  {}: - expected, + found", difference.asked.name())?;
            let mut lines = difference.lines().into_iter();
            lines.try_for_each(|line| writeln!(out, "    {}", painted_line(&shown(&line), coloured)))
        }),
    }
}

fn sum(report: &Report<'_>) -> String {
    let files: BTreeSet<_> = report.outcomes.iter().map(|outcome| &outcome.case.file).collect();
    let counts = [
        (report.passed(), "passed"),
        (report.failed(), "failed"),
        (report.updated(), "updated"),
        (report.errors(), "could not be run"),
    ];
    let told = counts.iter().filter(|(count, word)| *count > 0 || *word == "passed");
    let mut parts = vec![told.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")];
    if report.left_out > 0 {
        parts.push(format!("{} not chosen", report.left_out));
    }
    if report.others > 0 {
        parts.push(format!("{} of YAML without cases", counted(report.others, "file")));
    }
    format!("{} in {}: {}", counted(report.outcomes.len(), "case"), counted(files.len(), "file"), parts.join("; "))
}
