//! JUnit XML for CI systems: a test suite for each file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Report;
use super::outcome::{Outcome, Verdict};
use crate::cli::data::xml;

#[derive(Default)]
struct Suite {
    cases: String,
    tests: usize,
    failures: usize,
    errors: usize,
}

/// Returns the report. Writing to a string does not fail.
pub(super) fn text(report: &Report<'_>) -> String {
    let mut suites: BTreeMap<&str, Suite> = BTreeMap::new();
    for outcome in &report.outcomes {
        add(suites.entry(&outcome.case.file).or_default(), outcome);
    }
    for unreadable in &report.unreadable {
        let suite = suites.entry(&unreadable.file).or_default();
        let line = unreadable.at.map_or(0, |at| at.line);
        let message = unreadable.to_string();
        open(suite, &unreadable.file, line, "can be read");
        child(suite, "error", &message, &message);
        suite.errors += 1;
    }
    let sum = |of: fn(&Suite) -> usize| suites.values().map(of).sum::<usize>();
    let (tests, failures, errors) = (sum(|suite| suite.tests), sum(|suite| suite.failures), sum(|suite| suite.errors));
    let counts = |tests, failures, errors| format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rolegate test\" {}>\n",
        counts(tests, failures, errors)
    );
    for (file, suite) in &suites {
        let counts = counts(suite.tests, suite.failures, suite.errors);
        _ = writeln!(text, "  <testsuite name=\"{}\" {counts}>\n{}  </testsuite>", xml(file), suite.cases);
    }
    text + "</testsuites>\n"
}

fn add(suite: &mut Suite, outcome: &Outcome<'_>) {
    open(suite, &outcome.case.file, outcome.case.line, &outcome.case.name);
    match &outcome.verdict {
        Verdict::Passed | Verdict::Updated => suite.cases.truncate(suite.cases.len() - ">\n".len()),
        Verdict::Failed(differences) => {
            let names: Vec<_> = differences.iter().map(|difference| difference.asked.name()).collect();
            let lines = differences.iter().map(|difference| {
                format!("{}: - expected, + found\n{}\n", difference.asked.name(), difference.lines().join("\n"))
            });
            let lines: String = lines.collect();
            child(suite, "failure", &format!("{} answers otherwise", names.join(" and ")), &lines);
            suite.failures += 1;
            return;
        }
        Verdict::Broken(faults) => {
            child(suite, "error", faults.first().map_or("", String::as_str), &faults.join("\n"));
            suite.errors += 1;
            return;
        }
    }
    suite.cases.push_str("/>\n");
}

fn open(suite: &mut Suite, file: &str, line: u64, name: &str) {
    suite.tests += 1;
    let (file, name) = (xml(file), xml(name));
    _ = writeln!(suite.cases, "    <testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\" line=\"{line}\">");
}

fn child(suite: &mut Suite, kind: &str, message: &str, text: &str) {
    let (message, text) = (xml(message), xml(text).replace("&#10;", "\n"));
    _ = writeln!(suite.cases, "      <{kind} message=\"{message}\">{text}</{kind}>\n    </testcase>");
}
