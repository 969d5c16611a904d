//! The tables about tenants, about thieves, about bugs of others and about operators name existing tests, and names that resemble
//! ours are not ours.

use std::fs;
use std::path::Path;

use rolegate::api::Pod;
use rolegate::model::{identify, names};
use serde_json::json;

/// Returns the tests that a section of the page names, by file: `` `tests/live/a.rs`: `test_name`, `test_name` ``.
fn named<'a>(page: &'a str, title: &str) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut sections = page.split("\n## ").flat_map(|section| section.split("\n### "));
    let section = sections.find(|section| section.starts_with(title)).expect("the section");
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut all = Vec::new();
    for row in rows {
        let words: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        let tests = words.iter().position(|word| is_file(word)).expect("a row without tests");
        for word in &words[tests..] {
            if is_file(word) {
                all.push((*word, Vec::new()));
            } else {
                all.last_mut().expect("begins with a file").1.push(*word);
            }
        }
    }
    all
}

fn is_file(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|extension| extension == "rs")
}

#[test]
fn what_tenants_can_do_thieves_gain_each_lesson_and_what_operators_do_has_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let pages = ["tests/live/tenants/README.md", "tests/live/chaos/README.md", "tests/live/worlds/README.md"].map(page);
    let named = [
        named(&pages[0], "What a tenant can do"),
        named(&pages[0], "What a thief gains"),
        named(&pages[1], "Lessons of others"),
        named(&pages[2], "What operators do"),
    ];
    assert!(named.iter().all(|named| named.len() >= 9), "{named:?}");
    for (file, tests) in named.into_iter().flatten() {
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(!tests.is_empty(), "{file}: no test of it is named");
        for test in tests {
            let at = text.find(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} has no {test}"));
            let before: String = text[..at].chars().rev().take(400).collect::<Vec<_>>().into_iter().rev().collect();
            assert!(
                ["test]", "::test("].iter().any(|mark| before.contains(mark)) || text.contains("proptest!"),
                "{file}: {test} is no test"
            );
        }
    }
}

/// Every behaviour of the operators' stand-in is in the table by name.
#[test]
fn every_habit_of_the_stand_in_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("tests/live/worlds/README.md")).unwrap();
    let habits = fs::read_to_string(root.join("tests/live/worlds/habits.rs")).unwrap();
    let named: Vec<_> = habits.split("name: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(named.len() >= 9, "{named:?}");
    for name in named {
        assert!(page.contains(&format!("\n| `{name}`: ")), "tests/live/worlds/README.md lacks `{name}`");
    }
}

/// Keys and gates are compared as a whole, not by substring.
#[test]
fn what_looks_like_a_name_of_ours_is_none() {
    let pod = |labels: serde_json::Value, gate: &str| -> Pod {
        let spec = json!({ "schedulingGates": [{ "name": gate }], "containers": [] });
        serde_json::from_value(json!({ "metadata": { "name": "a", "labels": labels }, "spec": spec })).unwrap()
    };
    let ours = pod(json!({ names::GROUP: "llm", names::ROLE: "main" }), names::GATE);
    assert!(identify(&ours, "ns", &()).is_some() && ours.has_gate(names::GATE));
    let around = |name: &str| {
        [
            format!("{name}s"),
            format!("{name}.example.com"),
            format!("x.{name}"),
            name.replace("rolegate.dev", "rolegate.dev.example.com"),
            name.replace("rolegate.dev", "rolegatexdev"),
            name.to_uppercase(),
            format!(" {name}"),
        ]
    };
    for (group, role) in around(names::GROUP).iter().zip(around(names::ROLE)) {
        let other = pod(json!({ group: "llm", role: "main" }), names::GATE);
        assert!(identify(&other, "ns", &()).is_none(), "{group}");
    }
    for gate in around(names::GATE) {
        assert!(!pod(json!({}), &gate).has_gate(names::GATE), "{gate}");
    }
}
