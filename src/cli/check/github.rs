//! Prints findings as workflow commands of GitHub Actions.

use std::io::{self, Write};

use super::{Checks, Weight};
use crate::cli::node::Position;

pub(super) fn print(out: &mut impl Write, checks: &Checks<'_>) -> io::Result<()> {
    for unreadable in checks.unreadable {
        command(out, "error", &unreadable.file, unreadable.at, "unreadable", &unreadable.message)?;
    }
    for checked in &checks.objects {
        for (weight, violation, at) in checked.findings() {
            let level = if weight == Weight::Note { "notice" } else { weight.as_str() };
            command(out, level, &checked.document.source.name, Some(at), violation.rule, &violation.to_string())?;
        }
    }
    Ok(())
}

fn command(
    out: &mut impl Write,
    level: &str,
    file: &str,
    at: Option<Position>,
    title: &str,
    message: &str,
) -> io::Result<()> {
    write!(out, "::{level} file={}", property(file))?;
    if let Some(at) = at.filter(|at| at.line > 0) {
        write!(out, ",line={},col={}", at.line, at.column)?;
    }
    writeln!(out, ",title={}::{}", property(title), data(message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
