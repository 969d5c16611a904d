//! Prints each finding with its source line, and a summary.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::{Checked, Checks, Name, Weight};
use crate::cli::node::Position;
use crate::cli::terminal::shown;
use crate::model::wording::counted;
use crate::rules::Violation;

/// Longest part of a source line that is shown, in characters.
const WIDTH: usize = 160;

/// Escape sequences, or nothing.
struct Style {
    error: &'static str,
    warning: &'static str,
    note: &'static str,
    strong: &'static str,
    faint: &'static str,
    end: &'static str,
}

const PLAIN: Style = Style { error: "", warning: "", note: "", strong: "", faint: "", end: "" };
const COLORED: Style = Style {
    error: "\x1b[1;31m",
    warning: "\x1b[1;33m",
    note: "\x1b[1;36m",
    strong: "\x1b[1m",
    faint: "\x1b[2m",
    end: "\x1b[0m",
};

impl Style {
    const fn of(&self, weight: Weight) -> &'static str {
        match weight {
            Weight::Error => self.error,
            Weight::Warning => self.warning,
            Weight::Note => self.note,
        }
    }
}

pub(super) fn print(out: &mut impl Write, checks: &Checks<'_>, color: bool) -> io::Result<()> {
    let style = if color { &COLORED } else { &PLAIN };
    for unreadable in checks.unreadable {
        write!(out, "{}", unreadable.file)?;
        if let Some(at) = unreadable.at {
            write!(out, ":{}:{}", at.line, at.column)?;
        }
        writeln!(out, ": {}unreadable{}: {}", style.error, style.end, shown(&unreadable.message))?;
    }
    let mut counts = Counts::default();
    checks.objects.iter().for_each(|checked| counts.add(checked));
    // Errors come before warnings.
    for weight in [Weight::Error, Weight::Warning] {
        for checked in &checks.objects {
            for (_, violation, at) in checked.findings().into_iter().filter(|found| found.0 == weight) {
                finding(out, checked, weight, violation, at, style)?;
            }
        }
    }
    for note in folded(&checks.objects) {
        let (paint, word) = (style.of(Weight::Note), Weight::Note.as_str());
        writeln!(out, "{paint}{word}{}: {}", style.end, shown(&note))?;
    }
    writeln!(out, "{}", counts.summary(checks.unreadable.len()))
}

/// Returns one line per missing input, with all rules that lack it.
fn folded(objects: &[Checked<'_>]) -> Vec<String> {
    let mut lacking: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    for note in objects.iter().flat_map(|checked| &checked.judged.notes) {
        match lacking.iter_mut().find(|(detail, _)| *detail == note.detail) {
            Some((_, rules)) => _ = rules.insert(note.rule),
            None => lacking.push((&note.detail, BTreeSet::from([note.rule]))),
        }
    }
    let line = |(detail, rules): (&str, BTreeSet<&str>)| {
        let rules: Vec<_> = rules.into_iter().collect();
        format!("{detail} [{}]", rules.join(", "))
    };
    lacking.into_iter().map(line).collect()
}

fn finding(
    out: &mut impl Write,
    checked: &Checked<'_>,
    weight: Weight,
    violation: &Violation,
    at: Position,
    style: &Style,
) -> io::Result<()> {
    let (paint, word) = (style.of(weight), weight.as_str());
    let source = &checked.document.source;
    let end = style.end;
    writeln!(
        out,
        "{}:{}:{}: {paint}{word}{end}: {}{}{end} {}[{}] {}{end}",
        source.name,
        at.line,
        at.column,
        style.strong,
        shown(&violation.to_string()),
        style.faint,
        violation.rule,
        shown(&Name(checked.document).to_string()),
    )?;
    let Some(line) = source.line(at.line) else { return Ok(()) };
    let before = usize::try_from(at.column).unwrap_or(usize::MAX).saturating_sub(1);
    // A line too long to show begins at the finding.
    let skipped = if line.chars().count() > WIDTH { before } else { 0 };
    let text: String = line.chars().skip(skipped).take(WIDTH).collect();
    let indent: String =
        line.chars().skip(skipped).take(before - skipped).map(|c| if c == '\t' { c } else { ' ' }).collect();
    let marked =
        line.chars().skip(before).take_while(|letter| letter.is_alphanumeric() || "-_./\"'".contains(*letter)).count();
    let gutter = at.line.to_string();
    writeln!(out, "  {}{gutter} |{end} {}", style.faint, shown(&text))?;
    let caret = "^".repeat(marked.clamp(1, WIDTH));
    writeln!(out, "  {}{} |{end} {indent}{paint}{caret}{end}", style.faint, " ".repeat(gutter.len()))
}

#[derive(Default)]
struct Counts {
    objects: usize,
    refused: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

impl Counts {
    fn add(&mut self, checked: &Checked<'_>) {
        self.objects += 1;
        self.refused += usize::from(!checked.judged.is_allowed());
        self.errors += checked.judged.errors.len();
        self.warnings += checked.judged.warnings.len();
        self.notes += checked.judged.notes.len();
    }

    fn summary(&self, unreadable: usize) -> String {
        let mut parts = vec![
            counted(self.objects, "object"),
            format!("{} refused", self.refused),
            counted(self.errors, "error"),
            counted(self.warnings, "warning"),
        ];
        if self.notes > 0 {
            parts.push(format!("{} not judged", self.notes));
        }
        if unreadable > 0 {
            parts.push(format!("{unreadable} unreadable"));
        }
        parts.join(", ")
    }
}
