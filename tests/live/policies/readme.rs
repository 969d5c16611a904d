//! The tables of `policies/README.md`, which the tests hold to be true.

use std::collections::BTreeMap;
use std::fs;

use rolegate::model::names;
use rolegate::rules::{Level, catalogue};

use crate::policies::cluster::POLICIES;

/// How far a twin goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All of the rule.
    Full,
    /// What the object itself shows.
    Part,
    /// Nothing.
    None,
}

/// Rows of the table under this heading, cell by cell, without the table's head.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(format!("{POLICIES}/README.md")).unwrap();
    let (_, section) =
        text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading:?}"));
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

fn code(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// Which rules have a twin.
pub fn coverage() -> BTreeMap<String, Coverage> {
    let read = |row: Vec<String>| {
        let coverage = match row[1].as_str() {
            "yes" => Coverage::Full,
            "in part" => Coverage::Part,
            "no" => Coverage::None,
            word => panic!("{}: {word:?} is neither yes, in part nor no", row[0]),
        };
        (code(&row[0]).to_owned(), coverage)
    };
    table("Rules and their twins").into_iter().map(read).collect()
}

/// Cases on which twin and rule disagree: (`<file>: <name>`, what the twin does).
pub fn disagreements() -> BTreeMap<String, String> {
    table("Where they disagree").into_iter().map(|row| (code(&row[0]).to_owned(), row[1].clone())).collect()
}

#[test]
fn the_table_has_every_rule_that_refuses() {
    let rules: Vec<_> =
        catalogue().into_iter().filter(|rule| rule.level != Level::Warning).map(|rule| rule.id).collect();
    let mut listed: Vec<_> = coverage().into_keys().collect();
    let mut rules: Vec<_> = rules.into_iter().map(str::to_owned).collect();
    rules.sort();
    rules.dedup();
    listed.sort();
    assert_eq!(listed, rules);
}

/// Keys are written in three places of these files; the program has them once.
#[test]
fn the_policies_know_the_keys_of_the_program() {
    let read = |file: &str| fs::read_to_string(format!("{POLICIES}/{file}.yaml")).unwrap();
    let (hold, guard) = (read("hold"), read("hold-guard"));
    for (group, _) in names::LABEL_SCHEMES {
        assert!(hold.contains(&format!("'{group}'")), "hold.yaml: {group}");
    }
    assert!(hold.contains(&format!("key: {}", names::IGNORE)), "hold.yaml: {}", names::IGNORE);
    let schemes = names::LABEL_SCHEMES.iter().flat_map(|(group, role)| [*group, *role]);
    let numbers =
        [names::POD_INDEX, names::LWS_NAME, names::LWS_GROUP_INDEX, names::LWS_WORKER_INDEX, names::RBG_INSTANCE];
    for key in schemes.chain(numbers).chain([names::INSTANCE_NAME, names::HELD_BY, names::KEP75_INSTANCE_INDEX]) {
        let (prefix, _) = key.split_once('/').unwrap();
        let is_guarded = guard.contains(&format!("'{key}'")) || guard.contains(&format!("'{prefix}/'"));
        assert!(is_guarded, "hold-guard.yaml: {key}");
    }
    for text in [hold, guard] {
        assert!(text.contains(&format!("'{}'", names::GATE)));
    }
}
