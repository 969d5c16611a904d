//! The files in `examples/`: they are admitted, complete in `plan`, and listed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::answers::rolegate;

/// Returns the files of the services.
fn services() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/services");
    let files: Vec<_> = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    assert!(files.len() >= 4, "{files:?}");
    files
}

fn answer(command: &str, file: &Path) -> Value {
    let output = rolegate(Path::new("."), command, &[file.to_str().expect("a name"), "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{command} {}", file.display());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn services_are_admitted_without_a_warning() {
    for file in services() {
        let objects = answer("check", &file)["objects"].as_array().expect("objects").clone();
        assert!(objects.len() > 5, "{}: {}", file.display(), objects.len());
        for object in objects {
            let found = (&object["allowed"], &object["violations"], &object["warnings"]);
            assert_eq!(found, (&true.into(), &Value::Array(vec![]), &Value::Array(vec![])), "{}", file.display());
        }
    }
}

#[test]
fn services_come_up_to_their_last_segment() {
    for file in services() {
        let plan = answer("plan", &file);
        let [group] = &plan["groups"].as_array().expect("groups")[..] else { panic!("{}: {plan}", file.display()) };
        assert_eq!(group["complete"], true, "{}: {group}", file.display());
        assert!(group["steps"].as_array().expect("steps").len() > 1, "{}: {group}", file.display());
    }
}

#[test]
fn services_begin_with_what_they_are_in_five_lines() {
    for file in services() {
        let text = fs::read_to_string(&file).expect("a file");
        let lines = text.lines().take_while(|line| line.starts_with('#')).count();
        assert!((1..=5).contains(&lines), "{}: {lines} lines", file.display());
    }
}

/// Ranks and sizes are variables: a command line needs no shell that computes them.
#[test]
fn services_have_no_shell() {
    for file in services() {
        let text = fs::read_to_string(&file).expect("a file");
        for word in ["$((", "sh, -c", "- sh", "bash", "LWS_"] {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
}

/// Readers copy files from the page, so it must list what exists.
#[test]
fn the_page_of_examples_lists_every_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let page = fs::read_to_string(folder.join("README.md")).expect("a page");
    let in_folder = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a file").path());
    for file in in_folder.chain(services()).filter(|file| file.extension().is_some_and(|kind| kind == "yaml")) {
        let name = file.strip_prefix(&folder).expect("in it").to_str().expect("a name");
        assert!(page.contains(&format!("({name})")), "examples/README.md does not link to {name}");
    }
}
