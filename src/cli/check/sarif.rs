//! Prints findings as SARIF 2.1.0, for code scanning.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::Checks;
use crate::cli::node::Position;
use crate::rules::{Level, catalogue};

/// Rules outside the tables: unreadable files, and objects without the shape of their kind.
const FRONT_END: &[(&str, &str)] = &[
    ("unreadable", "files are YAML or JSON"),
    ("schema", "fields have the type of their kind"),
    ("job-deadline", "the deadline of a Job does not run while its pods are held"),
    ("object-twice", "an object stands in one file, or everywhere with the same content"),
];

pub(super) fn print(out: &mut impl Write, checks: &Checks<'_>) -> io::Result<()> {
    let unreadable = checks.unreadable.iter().map(|unreadable| {
        result("unreadable", "error", &unreadable.message, &unreadable.file, unreadable.at.unwrap_or_default())
    });
    let found = checks.objects.iter().flat_map(|checked| {
        checked.findings().into_iter().map(|(weight, violation, at)| {
            result(violation.rule, weight.as_str(), &violation.to_string(), &checked.document.source.name, at)
        })
    });
    let results: Vec<_> = unreadable.chain(found).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "rolegate", "version": env!("CARGO_PKG_VERSION"), "rules": rules()}},
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn rules() -> Vec<Value> {
    let rule = |id: &str, summary: &str, level: &str| json!({"id": id, "shortDescription": {"text": summary}, "defaultConfiguration": {"level": level}});
    let tables = catalogue();
    let judged = tables.iter().map(|info| {
        let level = if info.level == Level::Warning { "warning" } else { "error" };
        rule(info.id, info.summary, level)
    });
    FRONT_END.iter().map(|(id, summary)| rule(id, summary, "error")).chain(judged).collect()
}

fn result(rule: &str, level: &str, message: &str, file: &str, at: Position) -> Value {
    let mut place = json!({"artifactLocation": {"uri": uri(file)}});
    if at.line > 0
        && let Some(place) = place.as_object_mut()
    {
        place.insert("region".to_owned(), json!({"startLine": at.line, "startColumn": at.column.max(1)}));
    }
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    })
}

/// Encodes a path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
