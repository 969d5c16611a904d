//! What is generated is that of its source: definitions, the page of rules, manifests and the Helm chart.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[test]
fn the_definitions_in_deploy_are_those_of_the_types() {
    for (folder, optional) in [("deploy/crds", false), ("deploy/optional", true)] {
        for (name, yaml) in rolegate::api::crd::files(optional) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(&name);
            let stored = fs::read_to_string(path).unwrap_or_default();
            assert!(stored == yaml, "{folder}/{name} is not what the types say: run `make crds`");
        }
    }
}

/// The reference page of the rules, as their tables say it.
fn rules_page() -> String {
    use rolegate::rules::{Level, catalogue};
    let mut page =
        "# Rules\n\nEvery rule has an id that messages, metrics and tests use, and golden cases that fix what it \
         accepts and refuses\n(`tests/cases/<object>/<rule>.yaml`). **E** refuses, **W** warns.\n"
            .to_owned();
    let mut object = "";
    for rule in catalogue() {
        if rule.object != object {
            object = rule.object;
            _ = write!(page, "\n## {object}\n\n| id | | rule |\n|---|---|---|\n");
        }
        let level = match rule.level {
            Level::Error => "E",
            Level::Warning => "W",
            Level::Either => "E/W",
        };
        _ = writeln!(page, "| {} | {level} | {} |", rule.id, rule.summary);
    }
    page
}

#[test]
fn the_page_of_rules_is_that_of_their_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, rules_page()).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == rules_page(), "docs/rules.md is not what the tables say: run `make docs`");
}

#[test]
fn what_is_installed_is_what_the_program_prints() {
    for (path, text) in rolegate::cli::manifests::files() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(&path);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let stored = fs::read_to_string(&file).unwrap_or_default();
        assert!(stored == text, "{path} is not what the program says: run `make docs`");
    }
}
