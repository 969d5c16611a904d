//! `rolegate plan`, as a user runs it: golden cases of `tests/cases/plan`, and what is said of what cannot be read.

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
    /// Objects that are planned.
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

fn plan(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rolegate"));
    command.arg("plan").args(arguments).current_dir(folder).output().expect("the binary runs")
}

fn stream(objects: &[Value]) -> String {
    let documents: Vec<_> = objects.iter().map(ToString::to_string).collect();
    documents.join("\n---\n")
}

fn run(case: &Case) -> Output {
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
    plan(folder.path(), &arguments)
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

#[test]
fn golden_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/plan");
    let (mut failures, mut count) = (Vec::new(), 0);
    for file in fs::read_dir(root).expect("the folder of cases is there") {
        let path = file.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a file");
        let cases: Vec<Case> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in cases {
            count += 1;
            let output = run(&case);
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
    assert!(count > 10, "only {count} cases were found");
}

const GROUP: &str = "\
apiVersion: workloads.x-k8s.io/v1alpha1
kind: RoleBasedGroup
metadata: {name: llm, namespace: prod}
spec:
  roles: [{name: prefill, replicas: 4}, {name: decode, replicas: 2}]
  coordination: [{name: pd, strategy: {segmentPlacement: {segmentSize: {prefill: 2, decode: 1}}}}]
";

#[test]
fn people_read_which_replicas_go_in_which_release() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("group.yaml"), GROUP).expect("a file");
    let output = plan(folder.path(), &["group.yaml"]);
    assert_eq!(output.status.code(), Some(0));
    let expected = "\
RoleBasedGroup prod/llm: admitted, complete after 2 releases
  coordination \"pd\": segments of 1 decode and 2 prefill, OrderedReady; each pod is born with the gate rolegate.dev/hold
  RELEASE  PREFILL  DECODE  REPLICAS
  1        0-1      0       3/6
  2        2-3      1       6/6
  AT THE END                STATUS  REASON            MESSAGE
  Ready                     True    AllReplicasReady  6/6 pods ready
  MinimumSegmentsAvailable  True    AllSegmentsReady  2/2 segments ready (6/6 pods)
  Progressing               True    Complete
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn what_cannot_be_read_is_said_and_ends_with_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("group.yaml", GROUP);
    write("typo.yaml", "roles: {prefill: {redy: 3}}");
    write("role.yaml", "roles: {prefil: {ready: 3}}");
    write("service.yaml", "{apiVersion: v1, kind: Service, metadata: {name: x}}");
    write("huge.yaml", &GROUP.replace("replicas: 4", "replicas: 2147483647"));
    let cases: &[(&[&str], &str)] = &[
        (&["absent.yaml"], "absent.yaml: unreadable: "),
        (&["group.yaml", "--with", "absent.yaml"], "absent.yaml: unreadable: "),
        (&["group.yaml", "--state", "absent.yaml"], "absent.yaml: unreadable: "),
        (&["group.yaml", "--state", "typo.yaml"], "typo.yaml: unreadable: roles.prefill.redy: unknown field"),
        (&["group.yaml", "--state", "role.yaml"], "role.yaml: unreadable: roles.prefil: no group has this role"),
        (&["service.yaml"], "rolegate: no RoleBasedGroup and no RoleCoordination in the files"),
        (&["huge.yaml", "-o", "json"], ""),
    ];
    for (arguments, message) in cases {
        let output = plan(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.starts_with(message), "{arguments:?}: {errors}");
    }
}
