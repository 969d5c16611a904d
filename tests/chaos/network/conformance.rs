//! What the standard asks of an HTTP/2 server, case by case, asked by h2spec.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

use tokio::process::Command;

use super::target::Target;
use crate::common::PATIENT;
use crate::common::control_plane::tool;
use crate::common::figures::record;

/// A section, and a case of it.
type Case = (String, String);

/// How often a case may be tried. The answer to a request may have left before the frame comes that makes it wrong: that is
/// allowed, and what h2spec then sees it calls a failure.
const TRIES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Skipped,
    Failed,
}

/// Runs these sections, or all of them.
async fn ask(address: SocketAddr, sections: &BTreeSet<String>) -> BTreeMap<Case, Outcome> {
    let report = tempfile::NamedTempFile::new().unwrap();
    let mut h2spec = Command::new(tool("h2spec"));
    // The strict cases as well, of a path that is answered with a body. It waits so many seconds for an answer, on a machine
    // that does other things meanwhile.
    h2spec.args(["--tls", "--insecure", "--strict", "--timeout", "5", "--path", "/livez", "--host"]);
    h2spec.args([&address.ip().to_string(), "--port", &address.port().to_string(), "--junit-report"]);
    h2spec.arg(report.path()).args(sections).kill_on_drop(true);
    tokio::time::timeout(PATIENT, h2spec.output()).await.expect("it ends").unwrap();
    read(report.path())
}

fn read(report: &Path) -> BTreeMap<Case, Outcome> {
    let text = std::fs::read_to_string(report).unwrap();
    let report = roxmltree::Document::parse(&text).unwrap();
    let cases = report.descendants().filter(|node| node.has_tag_name("testcase")).map(|case| {
        let name = |key| case.attribute(key).unwrap().to_owned();
        let has = |tag| case.children().any(|child| child.has_tag_name(tag));
        let outcome = match (has("failure") || has("error"), has("skipped")) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::Skipped,
            (false, false) => Outcome::Passed,
        };
        ((name("package"), name("classname")), outcome)
    });
    cases.collect()
}

#[tokio::test]
async fn every_case_of_h2spec_passes() {
    let target = Target::start("net-h2spec").await;
    let mut outcomes = ask(target.address(), &BTreeSet::new()).await;
    for _ in 1..TRIES {
        let failed = outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Failed);
        let sections: BTreeSet<_> = failed.map(|((section, _), _)| section.clone()).collect();
        if sections.is_empty() {
            break;
        }
        for (case, outcome) in ask(target.address(), &sections).await {
            if outcomes[&case] == Outcome::Failed {
                outcomes.insert(case, outcome);
            }
        }
    }
    let count = |outcome| outcomes.values().filter(|found| **found == outcome).count();
    let counts = [count(Outcome::Passed), count(Outcome::Skipped), count(Outcome::Failed)];
    let [passed, skipped, failed] = counts.map(|count| count.to_string());
    let all = outcomes.len().to_string();
    record("conformance", &["h2spec 2.2.1, with its strict cases", &all, &passed, &skipped, &failed]);
    let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Failed).collect();
    assert!(failed.is_empty() && counts[0] >= 140, "{counts:?}: {failed:#?}");
    // And it serves as before.
    target.caller().await;
}
