//! Golden cases: `tests/cases/<object>/<rule>.yaml` is the specification of one rule, `tests/cases/designs/*.yaml` holds the
//! examples of the designs. Errors and warnings of a case must match in full and in order.

use std::collections::BTreeMap;
use std::path::Path;

use crate::golden::{self, Case, CaseFile};
use rolegate::rules::{Level, RuleInfo, catalogue};

#[test]
fn every_case_gives_what_it_says() {
    let (mut count, mut failed) = (0, Vec::new());
    for file in golden::files() {
        for case in &file.cases {
            count += 1;
            if let Err(why) = case.run() {
                failed.push(format!("{}: {}\n{why}", file.path.display(), case.name));
            }
        }
    }
    println!("{count} golden cases, {} failed", failed.len());
    assert!(failed.is_empty(), "{} of {count} cases failed\n\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn every_rule_has_its_cases() {
    let files: BTreeMap<_, _> = golden::files().into_iter().map(|file| (file.path.clone(), file)).collect();
    let lacking: Vec<_> = catalogue().iter().filter_map(|rule| lacks(rule, &files)).collect();
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
}

/// What a rule's file lacks: two cases that find something, one that finds nothing, and the wording once.
fn lacks(rule: &RuleInfo, files: &BTreeMap<std::path::PathBuf, CaseFile>) -> Option<String> {
    let path = Path::new(golden::ROOT).join(rule.object).join(rule.id).with_extension("yaml");
    let Some(file) = files.get(&path) else { return Some(format!("{}: no such file", path.display())) };
    let finds = |case: &&Case| case.expect.findings(rule.level == Level::Warning).any(|found| found.rule == rule.id);
    let worded = file
        .cases
        .iter()
        .flat_map(|case| case.expect.all())
        .any(|found| found.rule == rule.id && found.message.is_some());
    let rejecting = file.cases.iter().filter(finds).count();
    let accepting = file.cases.iter().any(|case| case.expect.all().all(|found| found.rule != rule.id));
    let missing = [
        (rejecting < 2).then_some("two cases that find something"),
        (!accepting).then_some("a case that finds nothing"),
        (!worded).then_some("the wording in one case"),
    ];
    let missing: Vec<_> = missing.into_iter().flatten().collect();
    (!missing.is_empty()).then(|| format!("{}: lacks {}", path.display(), missing.join(" and ")))
}

#[test]
fn no_case_file_is_without_its_rule() {
    let known: Vec<_> = catalogue().iter().map(|rule| format!("{}/{}", rule.object, rule.id)).collect();
    for file in golden::files() {
        let name = file.path.with_extension("");
        let name = name.strip_prefix(golden::ROOT).expect("cases lie under the root").display().to_string();
        assert!(name.starts_with("designs/") || known.contains(&name), "{name}: no table has this rule");
    }
}
