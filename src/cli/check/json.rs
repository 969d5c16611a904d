//! Prints findings as one JSON object, for tools.

use std::io::{self, Write};

use serde::Serialize;

use super::{Checked, Checks};
use crate::cli::documents::Unreadable;
use crate::rules::Violation;

#[derive(Serialize)]
struct CheckOutput<'a> {
    objects: Vec<Object<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<Fault<'a>>,
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    allowed: bool,
    violations: Vec<Finding<'a>>,
    warnings: Vec<Finding<'a>>,
    /// Rules that were not judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Finding<'a>>,
}

#[derive(Serialize)]
pub(in crate::cli) struct Finding<'a> {
    rule: &'a str,
    field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    message: String,
}

#[derive(Serialize)]
struct Fault<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    message: &'a str,
}

pub(super) fn print(out: &mut impl Write, checks: &Checks<'_>) -> io::Result<()> {
    let answer = CheckOutput {
        objects: checks.objects.iter().map(object).collect(),
        unreadable: checks.unreadable.iter().map(fault).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &answer)?;
    writeln!(out)
}

fn object<'a>(checked: &'a Checked<'_>) -> Object<'a> {
    let (document, judged) = (checked.document, &checked.judged);
    Object {
        file: &document.source.name,
        kind: &document.kind,
        namespace: &document.namespace,
        name: &document.name,
        allowed: judged.is_allowed(),
        violations: judged.errors.iter().map(|violation| finding(violation, true)).collect(),
        warnings: judged.warnings.iter().map(|violation| finding(violation, false)).collect(),
        notes: judged.notes.iter().map(|violation| finding(violation, false)).collect(),
    }
}

pub(in crate::cli) fn finding(violation: &Violation, with_reason: bool) -> Finding<'_> {
    Finding {
        rule: violation.rule,
        field: violation.path.to_string(),
        reason: with_reason.then(|| violation.cause.as_str()),
        message: violation.message(),
    }
}

fn fault(unreadable: &Unreadable) -> Fault<'_> {
    Fault {
        file: &unreadable.file,
        line: unreadable.at.map(|at| at.line),
        column: unreadable.at.map(|at| at.column),
        message: &unreadable.message,
    }
}
