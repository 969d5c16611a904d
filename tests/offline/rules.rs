//! Golden cases: `tests/cases/<object>/<rule>.yaml` specifies one rule, `tests/cases/designs/*.yaml` has the examples
//! of the designs, and other folders specify pods, plans and room.

use std::collections::BTreeMap;
use std::path::Path;

use rolegate::model::names::NOTES_OF_OBJECTS;
use rolegate::rules::{Level, RuleInfo, catalogue};
use rolegate_golden::case::Asked;
use rolegate_golden::{self as golden, Case, expected, file_of};
use serde_json::Value;

#[test]
fn every_case_gives_what_it_says() {
    let cases = golden::cases();
    let wrong: String = golden::wrong(&cases).iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{wrong}");
    let number = |asked| cases.iter().filter(|case| expected(case, asked).is_some()).count();
    let least = [(Asked::Check, 391), (Asked::Mutate, 147), (Asked::Plan, 26), (Asked::Fit, 7)];
    least.iter().for_each(|(asked, least)| assert!(number(*asked) >= *least, "{asked:?}: {}", number(*asked)));
}

#[test]
fn every_rule_has_its_cases() {
    let mut files: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in golden::cases() {
        files.entry(file_of(&case).to_owned()).or_default().push(case);
    }
    let lacking: Vec<_> = catalogue().iter().filter_map(|rule| lacks(rule, &files)).collect();
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
}

/// Returns the findings that a case expects in these lists.
fn found<'a>(case: &'a Case, lists: &'a [&str]) -> impl Iterator<Item = &'a Value> {
    let check = expected(case, Asked::Check);
    lists.iter().filter_map(move |list| check?.get(*list)?.as_array()).flatten()
}

/// Returns what a rule's file lacks: two cases with a finding, one without, and the message once.
fn lacks(rule: &RuleInfo, files: &BTreeMap<String, Vec<Case>>) -> Option<String> {
    let path = Path::new(rule.object).join(rule.id).display().to_string();
    let Some(cases) = files.get(&path) else { return Some(format!("{path}: no such file")) };
    let all = ["violations", "warnings"];
    let own = if rule.level == Level::Warning { &all[1..] } else { &all[..1] };
    let of_rule = |finding: &Value| finding["rule"] == rule.id;
    let worded =
        cases.iter().any(|case| found(case, &all).any(|finding| of_rule(finding) && finding.get("message").is_some()));
    let rejecting = cases.iter().filter(|case| found(case, own).any(of_rule)).count();
    let accepting = cases.iter().any(|case| !found(case, &all).any(of_rule));
    let missing = [
        (rejecting < 2).then_some("two cases that find something"),
        (!accepting).then_some("a case that finds nothing"),
        (!worded).then_some("the wording in one case"),
    ];
    let missing: Vec<_> = missing.into_iter().flatten().collect();
    (!missing.is_empty()).then(|| format!("{path}: lacks {}", missing.join(" and ")))
}

#[test]
fn no_case_file_is_without_its_rule() {
    let known: Vec<_> = catalogue().iter().map(|rule| format!("{}/{}", rule.object, rule.id)).collect();
    for case in golden::cases().iter().filter(|case| expected(case, Asked::Check).is_some()) {
        let name = file_of(case);
        assert!(
            name.starts_with("designs/") || known.iter().any(|known| known == name),
            "{name}: no table has this rule"
        );
    }
}

/// The webhook is not called for updates of other labels and annotations, so no rule may depend on them.
#[test]
fn no_rule_looks_at_metadata_whose_change_is_not_asked_about() {
    let told = |case: &Case| case.judged().map(|all| format!("{all:?}")).map_err(|errors| errors.join(", "));
    let mut without = 0;
    for case in golden::cases().iter().filter(|case| expected(case, Asked::Check).is_some()) {
        let mut stripped = case.clone();
        let mut objects: Vec<_> = stripped.input.objects.iter_mut().chain(&mut stripped.input.old).collect();
        objects.retain(|object| object["kind"] != "Pod" && object["metadata"].is_object());
        for object in objects {
            let metadata = object["metadata"].as_object_mut().unwrap();
            if metadata.get("labels").is_some_and(Value::is_object) {
                without += usize::from(metadata.remove("labels").is_some());
            }
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.retain(|key, _| NOTES_OF_OBJECTS.contains(&key.as_str()));
            }
        }
        assert_eq!(told(&stripped), told(case), "{}", case.title());
    }
    assert!(without > 0, "no case has labels");
}
