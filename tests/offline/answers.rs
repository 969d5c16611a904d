//! Golden answers of a command that prints JSON: `tests/cases/<command>`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde::Deserialize;
use serde_json::Value;

/// One case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What it shows, in a phrase.
    name: String,
    /// Objects that are asked about.
    files: Vec<Value>,
    /// Objects that are there.
    #[serde(default)]
    with: Vec<Value>,
    /// What is observed.
    state: Option<Value>,
    /// The exit code.
    exit: i32,
    /// The answer. Of a long list, `count`, `first` and `last` stand for the whole.
    expect: Value,
}

/// Runs a command of rolegate in a folder, as where letters are ASCII.
pub fn rolegate(folder: &Path, command: &str, arguments: &[&str]) -> Output {
    let mut rolegate = Command::new(env!("CARGO_BIN_EXE_rolegate"));
    rolegate.arg(command).args(arguments).current_dir(folder).env("LC_ALL", "C").output().expect("the binary runs")
}

fn stream(objects: &[Value]) -> String {
    let documents: Vec<_> = objects.iter().map(ToString::to_string).collect();
    documents.join("\n---\n")
}

fn run(command: &str, case: &Case) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).expect("a file");
    write("group.yaml", stream(&case.files));
    let mut arguments = vec!["group.yaml", "-o", "json"];
    if !case.with.is_empty() {
        write("with.yaml", stream(&case.with));
        arguments.extend(["--with", "with.yaml"]);
    }
    if let Some(state) = &case.state {
        write("state.yaml", state.to_string());
        arguments.extend(["--state", "state.yaml"]);
    }
    rolegate(folder.path(), command, &arguments)
}

/// Where two answers differ, if they do.
fn difference(at: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Array(found)) => {
            let part = |key: &str, value: Option<&Value>| {
                let wanted = expected.get(key)?;
                difference(&format!("{at}.{key}"), wanted, value.unwrap_or(&Value::Null))
            };
            let counts = part("count", Some(&found.len().into()));
            counts.or_else(|| part("first", found.first())).or_else(|| part("last", found.last()))
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let mut pairs = expected.iter().zip(found).enumerate();
            pairs.find_map(|(index, (expected, found))| difference(&format!("{at}[{index}]"), expected, found))
        }
        (Value::Object(expected), Value::Object(found)) if expected.keys().eq(found.keys()) => {
            expected.iter().find_map(|(key, expected)| difference(&format!("{at}.{key}"), expected, found.get(key)?))
        }
        (expected, found) => (expected != found).then(|| format!("{at}: expected {expected}, found {found}")),
    }
}

/// Every case of a command; there are at least so many.
pub fn golden_cases(command: &str, least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(command);
    let (mut failures, mut count) = (Vec::new(), 0);
    for file in fs::read_dir(root).expect("the folder of cases is there") {
        let path = file.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a file");
        let cases: Vec<Case> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in cases {
            count += 1;
            let output = run(command, &case);
            let found = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
            let exit = (output.status.code() != Some(case.exit)).then(|| format!("exit {:?}", output.status.code()));
            let different = difference("", &case.expect, &found).or(exit);
            failures.extend(different.map(|what| {
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                format!("{}: {}: {what}\n{errors}", path.display(), case.name)
            }));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count >= least, "only {count} cases were found");
}
