//! JSON output of `test`.

use serde_json::{Value, json};

use super::Report;
use super::case::Match;
use super::outcome::{Difference, Outcome, Verdict};
use crate::cli::documents::Unreadable;

pub(super) fn answer(report: &Report<'_>) -> Value {
    let mut answer = json!({
        "cases": report.outcomes.iter().map(case).collect::<Value>(),
        "unreadable": report.unreadable.iter().map(unreadable).collect::<Value>(),
        "passed": report.passed(),
        "failed": report.failed(),
        "errors": report.errors(),
        "updated": report.updated(),
    });
    if let (Some(coverage), Some(answer)) = (&report.coverage, answer.as_object_mut()) {
        let rules =
            coverage.iter().map(|(rule, cases)| json!({ "object": rule.object, "rule": rule.id, "cases": cases }));
        answer.insert("rules".to_owned(), rules.collect());
    }
    answer
}

fn case(outcome: &Outcome<'_>) -> Value {
    let case = outcome.case;
    let (differences, errors) = match &outcome.verdict {
        Verdict::Passed | Verdict::Updated => (json!([]), json!([])),
        Verdict::Failed(differences) => (differences.iter().map(difference).collect(), json!([])),
        Verdict::Broken(errors) => (json!([]), json!(errors)),
    };
    json!({
        "file": case.file,
        "line": case.line,
        "name": case.name,
        "status": outcome.verdict.word(),
        "differences": differences,
        "errors": errors,
    })
}

fn difference(difference: &Difference) -> Value {
    let matching = match difference.matching {
        Match::Exact => "exact",
        Match::Partial => "partial",
    };
    json!({
        "command": difference.asked.name(),
        "match": matching,
        "expected": difference.expected,
        "found": difference.found,
    })
}

fn unreadable(unreadable: &Unreadable) -> Value {
    json!({
        "file": unreadable.file,
        "line": unreadable.at.map(|at| at.line),
        "column": unreadable.at.map(|at| at.column),
        "message": unreadable.message,
    })
}
