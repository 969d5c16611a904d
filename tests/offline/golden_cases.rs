//! How golden cases are read, run and updated.

use std::fs;
use std::path::Path;

use rolegate_golden::{read, update, wrong};
use serde_json::{Value, json};

use crate::answers::folder;

const HEAD: &str = "apiVersion: cli.rolegate.dev/v1alpha1\nkind: Test\n";

/// A group as an object of a case.
const GROUP: &str = "apiVersion: workloads.x-k8s.io/v1alpha1
    kind: RoleBasedGroup
    metadata: {name: llm, namespace: prod}
    spec:
      roles: [{name: prefill, replicas: 4}, {name: decode, replicas: 2}]
      coordination: [{name: pd, strategy: {segmentPlacement: {segmentSize: {SIZES}}}}]
";

fn group(sizes: &str) -> String {
    GROUP.replace("SIZES", sizes)
}

/// Returns a case with a valid group.
fn case(name: &str, expect: &str) -> String {
    case_of(name, "prefill: 2, decode: 1", expect)
}

fn case_of(name: &str, sizes: &str, expect: &str) -> String {
    format!("- name: {name}\n  object:\n    {}  expect:\n    {expect}\n", group(sizes))
}

fn file(cases: &[String]) -> String {
    format!("{HEAD}cases:\n{}", cases.concat())
}

/// Returns the faults of the files of a folder, and the cases that do not pass, as they are shown.
fn run(folder: &Path) -> (String, String) {
    let suite = read(&[folder.to_owned()]);
    let plain = |text: String| text.replace(&folder.display().to_string(), ".");
    let faults = suite.faults.iter().map(|fault| plain(format!("{fault}\n"))).collect();
    (faults, wrong(&suite.cases).iter().map(|outcome| plain(outcome.to_string())).collect())
}

/// Updates the cases of a folder whose file and name contain a text, and returns what could not be written.
fn updated(folder: &Path, text: &str) -> Vec<String> {
    let suite = read(&[folder.to_owned()]);
    update(&wrong(suite.cases.iter().filter(|case| case.title().contains(text))))
}

const ALLOWED: &str = "check: {allowed: true}";
const WRONG_SIZE: &str = "prefill: 2, decod: 1";
const FOUND: &str = r#"check: {violations: [{rule: coordination-role-unknown, field: "spec.coordination[0].strategy.segmentPlacement.segmentSize[decod]"}]}"#;

#[test]
fn cases_pass_or_say_what_differs() {
    let cases = [
        case("admitted", ALLOWED),
        case_of("refused by its rule", WRONG_SIZE, FOUND),
        case("in two steps", "plan: {exit: 0, groups: [{namespace: prod}], match: partial}"),
    ];
    let place = folder(&[("a/good.yaml", &file(&cases)), ("b.yaml", "kind: Service\n"), ("note.txt", "cases: none")]);
    assert_eq!(run(place.path()), Default::default());
    let suite = read(&[place.path().to_owned()]);
    assert_eq!((suite.cases.len(), suite.files, suite.others), (3, 1, 1));

    let place = folder(&[("bad.yaml", &file(&[case_of("wrong", WRONG_SIZE, "check: {allowed: true, warnings: []}")]))]);
    let (faults, shown) = run(place.path());
    let expected = "\
./bad.yaml:4: wrong
  check: - expected, + found
    - allowed: true
    + allowed: false
    + violations:
    +   - rule: coordination-role-unknown
    +     field: \"spec.coordination[0].strategy.segmentPlacement.segmentSize[decod]\"
    +     reason: FieldValueNotFound
    +     message: 'Not found: \"decod\": ";
    assert!(faults.is_empty() && shown.starts_with(expected), "{faults}{shown}");
}

/// Tests that cannot fail, or do something unintended, are rejected.
#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    let of = |fields: &str| format!("- name: a\n  {fields}\n  expect: {{{ALLOWED}}}\n");
    let no_field = "13:13: unreadable: cases[0].expect.check.alowed: no such field; the fields are ";
    let meant = "cases[0].expect.chek: no such field; the fields are check, mutate, plan, fit; did you mean \"check\"?";
    let empty = "4:3: unreadable: cases[0].expect: a case that expects nothing cannot fail";
    let no_file = "5:3: unreadable: cases[0].objects: ./b.yaml: unreadable: No such file or directory";
    let known = "14:3: unreadable: cases[1].name: \"a\" is the name of the case in line 4";
    let no_role = "cases[0].state.roles.a.redy: no such field";
    let unread = |command: &str, more: &str| case("a", &format!("{command}\n  {more}"));
    let wrong = [
        ("unknown field", case("a", "check: {alowed: true}"), no_field),
        ("unknown command", case("a", "chek: {}"), meant),
        ("no expectation", "- name: a\n  object: {}\n".into(), empty),
        ("an empty one", case("a", "check: {match: partial}"), "13:5: unreadable: cases[0].expect.check: says nothing"),
        ("an empty map", case("a", "mutate: {patches: {}}"), "cases[0].expect.mutate: says nothing"),
        (
            "another match",
            case("a", "check: {match: some, allowed: true}"),
            "cases[0].expect.check.match: must be one of ",
        ),
        ("two of a name", case("a", ALLOWED).repeat(2), known),
        ("no name", case("''", ALLOWED), "cases[0].name: must say what the case shows"),
        ("no object", of("with: []"), "4:3: unreadable: cases[0]: must have `object` or `objects`"),
        ("no objects", of("objects: []"), "cases[0].objects: there are none"),
        ("a missing file", of("objects: [b.yaml]"), no_file),
        ("a number", of("objects: [7]"), "must be an object or the path of a file, and is 7"),
        ("several", of("object: []"), "cases[0].object: must be one"),
        ("a state that nobody reads", unread(ALLOWED, "state: {roles: {}}"), "cases[0].state: is read by plan alone"),
        (
            "an option that nobody reads",
            unread("plan: {exit: 0}", "options: {strictRoles: true}"),
            "cases[0].options: is read by check alone",
        ),
        (
            "an old object that nobody reads",
            unread("fit: {exit: 0}", "old: {kind: Pod}"),
            "cases[0].old: is read by check and mutate alone",
        ),
        ("a role that is not there", unread("plan: {exit: 0}", "state: {roles: {a: {redy: 1}}}"), no_role),
        ("no YAML", "- {name: a\n".into(), "unreadable: "),
    ];
    for (what, cases, message) in wrong {
        let place = folder(&[("test.yaml", &format!("{HEAD}cases:\n{cases}"))]);
        let (errors, _) = run(place.path());
        assert!(errors.starts_with("./test.yaml:") && errors.contains(message), "{what}: {errors}");
    }
    let version = "apiVersion: must be cli.rolegate.dev/v1alpha1, and is \"cli.rolegate.dev/v1\"";
    let heads = [
        ("apiVersion: cli.rolegate.dev/v1\nkind: Test\ncases: [{name: a}]\n", version),
        ("apiVersion: cli.rolegate.dev/v1alpha1\nkind: Tests\ncases: []\n", "kind: must be Test"),
        ("apiVersion: cli.rolegate.dev/v1alpha1\nkind: Test\ncases: []\n", "cases: there are none"),
        ("cases:\n- name: a\n", "apiVersion: must be set"),
    ];
    for (text, message) in heads {
        let place = folder(&[("test.yaml", text)]);
        let (errors, _) = run(place.path());
        assert!(errors.contains(message), "{text}: {errors}");
    }
}

/// A case whose objects a command cannot read is neither passed nor failed.
#[test]
fn what_a_command_cannot_read_is_an_error_of_its_case() {
    let broken = case("a", "plan: {exit: 0}").replace("replicas: 4", "replicas: four");
    let stray = case("b", "check: {allowed: true}\n  old: {apiVersion: v1, kind: Pod, metadata: {name: p}}");
    let no_nodes = case("c", "fit: {exit: 0}");
    let state = case("d", "plan: {exit: 0}\n  state: {roles: {router: {ready: 1}}}");
    let unjudged = case("e", ALLOWED).replace("x-k8s.io/v1alpha1", "x-k8s.io/v1alpha7");
    let place = folder(&[("test.yaml", &file(&[broken, stray, no_nodes, state, unjudged]))]);
    let (_, shown) = run(place.path());
    for expected in [
        "./test.yaml:14: b\n  check: old: Pod \"p\" is not among the objects\n",
        "./test.yaml:25: c\n  fit: rolegate: no nodes in the files: add them by --with\n",
        "./test.yaml:35: d\n  plan: state: unreadable: roles.router: no group has this role\n",
        ": e\n  check: no rule judges an object of these kinds: nothing could ever be refused\n",
    ] {
        assert!(shown.contains(expected), "{shown}");
    }
    // A group without the shape of its kind has a verdict: `plan` refuses it.
    assert!(shown.contains("./test.yaml:4: a\n  plan: "), "{shown}");
}

#[test]
fn objects_of_files_and_recorded_reviews_are_read_from_where_the_test_lies() {
    let one = group("prefill: 2, decode: 1").replace("\n    ", "\n");
    let service = "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n";
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "object": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "prod",
            "labels": { "rolegate.dev/group": "llm", "rolegate.dev/role": "prefill" } }, "spec": { "containers": [] } } } });
    let cases = "\
cases:
- name: a pod of a review is held by a group of a folder
  objects: [../recorded.json]
  with: [../groups, {apiVersion: v1, kind: Namespace, metadata: {name: prod}}]
  expect:
    mutate:
      match: partial
      names: [p]
      objects: {p: {spec: {schedulingGates: [{name: rolegate.dev/hold}]}}}
- name: a file
  object: ../groups/group.yaml
  expect: {mutate: {names: [llm, s]}, check: {allowed: true}}
";
    let place = folder(&[
        ("deep/tests/test.yaml", &format!("{HEAD}{cases}")),
        ("deep/recorded.json", &review.to_string()),
        ("deep/groups/group.yaml", &format!("{one}{service}")),
    ]);
    for from in [place.path(), &place.path().join("deep/tests")] {
        assert_eq!(run(from), Default::default());
    }
}

#[test]
fn an_update_writes_what_came_out_and_nothing_else() {
    let cases = [
        case("right", "check: {allowed: true} # as it was\n"),
        case_of(
            "wrong",
            WRONG_SIZE,
            "# comments above stay\n    check:\n      # this one goes\n      allowed: true\n    plan: {exit: 1} # stays\n\n# of the next one",
        ),
        case("new", "check:\n    mutate:"),
    ];
    let text = file(&cases).replace("cases:", "# head\nshared: &x {a: b}\ncases:");
    let place = folder(&[("test.yaml", &text)]);
    let path = place.path().join("test.yaml");
    let (_, shown) = run(place.path());
    assert!(shown.contains("new\n  check: - expected, + found\n    + allowed: true\n"), "{shown}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing is written unless it is asked for");

    assert!(updated(place.path(), "").is_empty());
    let written = fs::read_to_string(&path).unwrap();
    let start = "    # comments above stay\n    check:\n      allowed: false\n      violations:\n        - rule: coordination-role-unknown\n";
    assert!(written.contains(start), "{written}");
    assert!(written.contains("    plan: {exit: 1} # stays\n\n# of the next one\n- name: new\n"), "{written}");
    assert!(written.ends_with("    check:\n      allowed: true\n    mutate:\n      patches: {llm: []}\n"), "{written}");
    assert!(!written.contains("this one goes"), "{written}");
    let start = &text[..text.find("# comments").unwrap()];
    assert!(written.starts_with(start), "{written}");
    assert_eq!(run(place.path()), Default::default());
    assert!(updated(place.path(), "").is_empty());
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
}

/// Partial expectations stay partial, and cases that are not selected are not changed.
#[test]
fn an_update_keeps_to_the_words_of_the_expectation() {
    let cases = [
        case_of(
            "a",
            WRONG_SIZE,
            r#"check: {match: partial, violations: [{rule: coordination-role-unknown, field: "spec.coordination[0].strategy.segmentPlacement.segmentSize[decod]", message: x}]}"#,
        ),
        case("b", "plan:\n      groups:\n        - match: x"),
        case("c", "plan:\n      match: partial\n      groups: [{complete: false, steps: {count: 7}}]"),
    ];
    let place = folder(&[("test.yaml", &file(&cases))]);
    let refused = [updated(place.path(), "yaml: a"), updated(place.path(), "yaml: c")].concat();
    assert!(refused.is_empty(), "{refused:?}");
    let written: Value = serde_saphyr::from_str(&fs::read_to_string(place.path().join("test.yaml")).unwrap()).unwrap();
    let expected = |index: usize| &written["cases"][index]["expect"];
    assert_eq!(expected(1), &json!({ "plan": { "groups": [{ "match": "x" }] } }));
    assert_eq!(
        expected(2),
        &json!({ "plan": { "match": "partial", "groups": [{ "complete": true, "steps": { "count": 2 } }] } })
    );
    let finding = &expected(0)["check"]["violations"][0];
    let keys: Vec<_> = finding.as_object().unwrap().keys().collect();
    assert_eq!(
        (keys, &expected(0)["check"]["match"]),
        (
            ["field", "message", "rule"].iter().map(|k| (*k).to_owned()).collect::<Vec<_>>().iter().collect(),
            &json!("partial")
        )
    );
    assert_ne!(finding["message"], "x");
}

#[test]
fn an_update_that_would_change_something_else_is_refused() {
    let shared = format!(
        "{HEAD}cases:\n{}- name: b\n  object: {{apiVersion: v1, kind: Pod, metadata: {{name: p}}}}\n  expect: *x\n",
        case_of("a", WRONG_SIZE, "check: &c {allowed: true}").replace("expect:", "expect: &x")
    );
    let inline = format!(
        "{HEAD}cases:\n- {{name: a, object: {{apiVersion: v1, kind: Pod, metadata: {{name: p}}}}, expect: {{check: {{allowed: false}}}}}}\n"
    );
    for (text, why) in [
        (&shared, "what it expects cannot be replaced without changing other parts of the file"),
        (&inline, "its expectation begins within a line"),
    ] {
        let place = folder(&[("test.yaml", text)]);
        let refused = updated(place.path(), "");
        assert!(refused.len() == 1 && refused[0].contains(why), "{refused:?}");
        assert_eq!(&fs::read_to_string(place.path().join("test.yaml")).unwrap(), text);
    }
    // A case that cannot be updated does not prevent the update of another.
    let both = format!(
        "{}{}",
        file(&[case_of("z", WRONG_SIZE, ALLOWED)]),
        inline.strip_prefix(&format!("{HEAD}cases:\n")).unwrap()
    );
    let place = folder(&[("test.yaml", &both)]);
    let refused = updated(place.path(), "");
    assert!(refused.len() == 1 && refused[0].contains("test.yaml: a: its expectation"), "{refused:?}");
    let (_, shown) = run(place.path());
    assert!(shown.contains(": a\n") && !shown.contains(": z\n"), "{shown}");
}
