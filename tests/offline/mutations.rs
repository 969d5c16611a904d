//! Mutation is idempotent: a second review of an object changes nothing.

use rolegate_golden::case::Asked;
use rolegate_golden::{self as golden, Case, expected};
use serde_json::{Value, json};

/// Returns the case for the mutated objects. Its workloads are kept, because they number their pods.
fn again(case: &Case, after: &[Value]) -> Case {
    let mut again = case.clone();
    let workloads = case.input.objects.iter().filter(|object| object["kind"] != "Pod").cloned();
    again.input.with.extend(workloads);
    again.input.objects = after.to_vec();
    again
}

#[test]
fn nothing_changes_a_second_time() {
    let (mut count, mut failed) = (0, Vec::new());
    for case in golden::cases().iter().filter(|case| expected(case, Asked::Mutate).is_some()) {
        let first = case.mutated().unwrap();
        let after: Vec<_> = first.iter().map(|object| object["after"].clone()).collect();
        let second = again(case, &after).mutated().unwrap();
        assert_eq!(second.len(), first.len(), "{}", case.title());
        for (object, after) in second.iter().zip(&after) {
            count += 1;
            let warnings = object["warnings"].as_array().unwrap();
            let replaces = warnings.iter().any(|warning| warning.as_str().unwrap().contains("replaced"));
            if object["patch"] != json!([]) || object["after"] != *after || replaces {
                failed.push(format!("{}: {object:#}", case.title()));
            }
        }
    }
    println!("{count} objects, {} change again", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(count > 300, "{count} objects");
}
