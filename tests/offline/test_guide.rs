//! `docs/guides/testing-your-specs.md`: its CI files work as printed, on the repository in `examples/specs`, and its
//! tables name every field of the format.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::answers::rolegate;
use crate::markdown::{self, Item};

const PAGE: &str = "docs/guides/testing-your-specs.md";

/// Returns the scripts of the page's CI files, by file name.
fn scripts() -> Vec<(String, String)> {
    let fences = markdown::read(PAGE).into_iter().filter_map(|item| match item {
        Item::Fence(fence) if fence.language == "yaml" && fence.options.is_empty() => Some(fence.lines),
        _ => None,
    });
    let script = |lines: Vec<String>| {
        let name = lines[0].trim_start_matches("# ").to_owned();
        let file: Value = serde_saphyr::from_str(&lines.join("\n")).unwrap();
        let steps = file["jobs"]["specs"]["steps"].as_array().into_iter().flatten().filter_map(|step| step.get("run"));
        let lines = steps.chain(file["specs"]["script"].as_array().into_iter().flatten());
        let script: Vec<_> = lines.map(|line| line.as_str().unwrap().to_owned()).collect();
        assert!(script.len() == 2, "{name}: {script:?}");
        (name, script.join("\n"))
    };
    fences.map(script).collect()
}

/// Returns a copy of the repository.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/specs/.");
    assert!(Command::new("cp").arg("-r").arg(specs).arg(folder.path()).status().unwrap().success());
    folder
}

fn run(script: &str, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_rolegate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", script]).current_dir(folder).env("PATH", path).output().unwrap()
}

#[test]
fn the_files_for_ci_do_as_they_say() {
    let scripts = scripts();
    let names: Vec<_> = scripts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [".github/workflows/specs.yaml", ".gitlab-ci.yml"]);
    for (name, script) in scripts {
        let folder = repository();
        let path = folder.path();
        let report = || {
            let text = fs::read_to_string(path.join("junit.xml")).unwrap();
            let read = roxmltree::Document::parse(&text).unwrap();
            let attribute = |name| read.root_element().attribute(name).unwrap().to_owned();
            (attribute("tests"), attribute("failures"))
        };
        let good = run(&script, path);
        assert_eq!((good.status.code(), good.stderr.as_slice()), (Some(0), &b""[..]), "{name}: {good:?}");
        assert_eq!(report(), ("5".to_owned(), "0".to_owned()), "{name}");
        let group = path.join("groups/chat.yaml");
        let text = fs::read_to_string(&group).unwrap();
        fs::write(&group, text.replace("replicas: 8", "replicas: 10").replace("replicas: 4", "replicas: 5")).unwrap();
        let changed = run(&script, path);
        assert_eq!(changed.status.code(), Some(1), "{name}: {changed:?}");
        // Two segments fit into each rack of the repository.
        assert_eq!(report(), ("5".to_owned(), "3".to_owned()), "{name}: {changed:?}");
        fs::write(&group, text.replace("prefill: 2, decode: 1", "prefil: 2, decode: 1")).unwrap();
        let refused = run(&script, path);
        let shown = String::from_utf8(refused.stdout).unwrap();
        assert!(refused.status.code() == Some(1) && shown.contains("prefil"), "{name}: {shown}");
    }
}

/// Returns the fields that the error about an unknown field lists.
fn known(case: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let head = "apiVersion: cli.rolegate.dev/v1alpha1\nkind: Test\n";
    fs::write(folder.path().join("test.yaml"), format!("{head}{case}")).unwrap();
    let output = rolegate(folder.path(), "test", &["."]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && errors.contains("x: no such field"), "{case}: {errors}");
    let list = errors.split("the fields are ").nth(1).unwrap().lines().next().unwrap();
    list.split(';').next().unwrap().split(", ").map(str::to_owned).collect()
}

#[test]
fn the_tables_name_every_field() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let mut all = Vec::new();
    for case in [
        "x: 1",
        "cases: [{name: a, x: 1}]",
        "cases: [{name: a, author: {x: 1}}]",
        "cases: [{name: a, options: {x: 1}}]",
        "cases: [{name: a, expect: {x: 1}}]",
        "cases: [{name: a, expect: {check: {x: 1}}}]",
        "cases: [{name: a, expect: {check: {notes: [{rule: r, field: f, x: 1}]}}}]",
        "cases: [{name: a, expect: {mutate: {x: 1}}}]",
        "cases: [{name: a, expect: {plan: {x: 1}}}]",
    ] {
        let known = known(case);
        assert!(known.len() > 2, "{case}: {known:?}");
        all.extend(known);
    }
    let missing: Vec<_> = all.iter().filter(|field| !page.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "{missing:?} are not on the page");
}
