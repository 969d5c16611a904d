//! `rolegate test`, as users run it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answers::{Ran, folder, ran_with};

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

/// Returns exit code, standard output and standard error.
fn test(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Ran { code, out, err } = ran_with(folder, "test", arguments);
    (code, out, err)
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
    let (code, shown, errors) = test(place.path(), &["."]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{shown}");
    assert_eq!(shown, "3 cases in 1 file: 3 passed; 1 file of YAML without cases\n");
    let (_, shown, _) = test(place.path(), &[".", "-o", "wide", "--name", "refused", "--name", "two steps"]);
    let expected = "passed  ./a/good.yaml:14: refused by its rule\npassed  ./a/good.yaml:24: in two steps\n2 cases in 1 file: 2 \
                    passed; 1 not chosen; 1 file of YAML without cases\n";
    assert_eq!(shown, expected);

    let place = folder(&[("bad.yaml", &file(&[case_of("wrong", WRONG_SIZE, "check: {allowed: true, warnings: []}")]))]);
    let (code, shown, errors) = test(place.path(), &["bad.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(1), ""), "{shown}");
    let expected = "\
failed  bad.yaml:4: wrong
  check: - expected, + found
    - allowed: true
    + allowed: false
    + violations:
    +   - rule: coordination-role-unknown
    +     field: \"spec.coordination[0].strategy.segmentPlacement.segmentSize[decod]\"
    +     reason: FieldValueNotFound
    +     message: 'Not found: \"decod\": ";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.ends_with("\n1 case in 1 file: 0 passed, 1 failed\n"), "{shown}");
    let coloured = test(place.path(), &["bad.yaml", "--color", "always"]).1;
    assert!(coloured.contains("\u{1b}[31m- allowed: true\u{1b}[0m"), "{coloured}");
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
        let (code, shown, errors) = test(place.path(), &["."]);
        assert_eq!(code, Some(2), "{what}: {shown}{errors}");
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
        let (code, _, errors) = test(place.path(), &["."]);
        assert!(code == Some(2) && errors.contains(message), "{text}: {errors}");
    }
}

#[test]
fn nothing_to_run_is_no_success() {
    let place = folder(&[("test.yaml", &file(&[case("a", ALLOWED)])), ("empty/b.yaml", "kind: Service\n")]);
    let no_test =
        "empty/b.yaml: unreadable: no test in it: no document of apiVersion cli.rolegate.dev/v1alpha1, kind Test\n";
    let tried: [(&[&str], &str); 4] = [
        (&["empty"], "empty: unreadable: no case in it; it holds 1 other files of YAML\n"),
        (&["nowhere"], "nowhere: unreadable: No such file or directory\n"),
        (&["empty/b.yaml"], no_test),
        (&[".", "--name", "b"], ".: unreadable: no case of 1 has b in its name\n"),
    ];
    for (arguments, message) in tried {
        let (code, _, errors) = test(place.path(), arguments);
        assert_eq!((code, errors.as_str()), (Some(2), message));
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
    let (code, shown, _) = test(place.path(), &["."]);
    assert_eq!(code, Some(2), "{shown}");
    for expected in [
        "error   ./test.yaml:14: b\n  check: old: Pod \"p\" is not among the objects\n",
        "error   ./test.yaml:25: c\n  fit: rolegate: no nodes in the files: add them by --with\n",
        "error   ./test.yaml:35: d\n  plan: state: unreadable: roles.router: no group has this role\n",
        ": e\n  check: no rule judges an object of these kinds: nothing could ever be refused\n",
    ] {
        assert!(shown.contains(expected), "{shown}");
    }
    // A group without the shape of its kind has a verdict: `plan` refuses it.
    assert!(shown.contains("failed  ./test.yaml:4: a\n  plan: "), "{shown}");
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
        let (code, shown, errors) = test(from, &["."]);
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{shown}");
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
    let (code, shown, _) = test(place.path(), &["."]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("new\n  expect.check: nothing is written yet: `--update` writes it\n"), "{shown}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing is written unless it is asked for");

    let (code, shown, errors) = test(place.path(), &[".", "--update"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{shown}");
    assert_eq!(
        shown,
        "updated ./test.yaml:17: wrong\nupdated ./test.yaml:33: new\n3 cases in 1 file: 1 passed, 2 updated\n"
    );
    let written = fs::read_to_string(&path).unwrap();
    let start = "    # comments above stay\n    check:\n      allowed: false\n      violations:\n        - rule: coordination-role-unknown\n";
    assert!(written.contains(start), "{written}");
    assert!(written.contains("    plan: {exit: 1} # stays\n\n# of the next one\n- name: new\n"), "{written}");
    assert!(written.ends_with("    check:\n      allowed: true\n    mutate:\n      patches: {llm: []}\n"), "{written}");
    assert!(!written.contains("this one goes"), "{written}");
    let start = &text[..text.find("# comments").unwrap()];
    assert!(written.starts_with(start), "{written}");
    let (code, shown, _) = test(place.path(), &["."]);
    assert_eq!((code, shown.as_str()), (Some(0), "3 cases in 1 file: 3 passed\n"));
    assert_eq!(test(place.path(), &[".", "--update"]).1, "3 cases in 1 file: 3 passed\n");
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
    let (code, shown, _) = test(place.path(), &[".", "--update", "--name", "yaml: a", "--name", "yaml: c"]);
    assert_eq!(code, Some(0), "{shown}");
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
        (&shared, "not updated: what it expects cannot be replaced without changing other parts of the file"),
        (&inline, "not updated: its expectation begins within a line"),
    ] {
        let place = folder(&[("test.yaml", text)]);
        let (code, shown, _) = test(place.path(), &[".", "--update"]);
        assert!(code == Some(2) && shown.contains(why), "{shown}");
        assert_eq!(&fs::read_to_string(place.path().join("test.yaml")).unwrap(), text);
    }
    // A case that cannot be updated does not prevent the update of another.
    let both = format!(
        "{}{}",
        file(&[case_of("z", WRONG_SIZE, ALLOWED)]),
        inline.strip_prefix(&format!("{HEAD}cases:\n")).unwrap()
    );
    let place = folder(&[("test.yaml", &both)]);
    let (code, shown, _) = test(place.path(), &[".", "--update"]);
    assert!(
        code == Some(2)
            && shown.contains("updated ./test.yaml:4: z\n")
            && shown.contains("error   ./test.yaml:14: a\n"),
        "{shown}"
    );
}

/// Returns a folder with a case of every outcome, with names and texts that XML must escape.
fn all_outcomes() -> TempDir {
    let cases = [
        case("'<a> & \"b\"'", ALLOWED),
        case_of("\"wrong \\e[31m\"", WRONG_SIZE, ALLOWED),
        case("no nodes", "fit: {exit: 0}"),
    ];
    folder(&[("a&b/one.yaml", &file(&cases)), ("two.yaml", "cases: [")])
}

#[test]
fn junit_is_well_formed_whatever_stands_in_a_case() {
    let place = all_outcomes();
    let (code, printed, _) = test(place.path(), &[".", "-o", "junit"]);
    assert_eq!(code, Some(2));
    let (_, shown, _) = test(place.path(), &[".", "--junit", "report.xml"]);
    assert!(shown.contains("1 passed, 1 failed, 1 could not be run"), "{shown}");
    assert_eq!(fs::read_to_string(place.path().join("report.xml")).unwrap(), printed);
    let read = roxmltree::Document::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    let counts = |node: roxmltree::Node<'_, '_>| {
        ["tests", "failures", "errors"].map(|name| node.attribute(name).unwrap().to_owned())
    };
    assert_eq!(counts(read.root_element()), ["4", "1", "2"]);
    let suites: Vec<_> = read.root_element().children().filter(roxmltree::Node::is_element).collect();
    assert_eq!(
        suites.iter().map(|suite| (suite.attribute("name").unwrap(), counts(*suite))).collect::<Vec<_>>(),
        [("./a&b/one.yaml", ["3", "1", "1"].map(str::to_owned)), ("./two.yaml", ["1", "0", "1"].map(str::to_owned)),]
    );
    let cases: BTreeMap<_, _> = read
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
        .map(|case| {
            let child = case.first_element_child();
            (case.attribute("name").unwrap(), child.map(|child| (child.tag_name().name(), child.text().unwrap())))
        })
        .collect();
    assert_eq!(cases["<a> & \"b\""], None);
    let (kind, text) = cases["wrong \u{fffd}[31m"].unwrap();
    assert!(kind == "failure" && text.contains("- allowed: true\n+ allowed: false\n"), "{text}");
    assert_eq!(cases["no nodes"].unwrap().0, "error");
    assert_eq!(cases["can be read"].unwrap().0, "error");
    let (code, _, errors) = test(place.path(), &["a&b", "--name", "<a>", "--junit", "nowhere/report.xml"]);
    assert!(code == Some(2) && errors.starts_with("nowhere/report.xml: unreadable: "), "{errors}");
}

#[test]
fn json_has_every_case_and_what_differs() {
    let place = all_outcomes();
    let (code, printed, _) = test(place.path(), &[".", "-o", "json"]);
    assert_eq!(code, Some(2));
    let answer: Value = serde_json::from_str(&printed).unwrap();
    let keys: Vec<_> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["cases", "errors", "failed", "passed", "unreadable", "updated"]);
    let counts = ["passed", "failed", "errors", "updated"].map(|count| answer[count].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 1, 0]);
    let case = &answer["cases"][0];
    assert_eq!(
        *case,
        json!({ "file": "./a&b/one.yaml", "line": 4, "name": "<a> & \"b\"", "status": "passed", "differences": [], "errors": [] })
    );
    let difference = &answer["cases"][1]["differences"][0];
    assert_eq!((&difference["command"], &difference["match"]), (&json!("check"), &json!("exact")));
    assert_eq!(difference["expected"], json!({ "allowed": true }));
    assert_eq!(difference["found"]["violations"][0]["rule"], "coordination-role-unknown");
    assert_eq!(answer["cases"][2]["status"], "error");
    assert_eq!(answer["unreadable"][0]["file"], "./two.yaml");
    let (_, printed, _) = test(place.path(), &["a&b", "-o", "json", "--coverage"]);
    let answer: Value = serde_json::from_str(&printed).unwrap();
    let found: Vec<_> = answer["rules"].as_array().unwrap().iter().filter(|rule| rule["cases"] != 0).collect();
    assert_eq!(found, [&json!({ "object": "group", "rule": "coordination-role-unknown", "cases": 1 })]);
}

/// Every rule has a finding in a golden case.
#[test]
fn the_golden_cases_cover_every_rule() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (code, shown, _) = test(place, &["tests/cases", "--coverage"]);
    assert!(code == Some(0) && !shown.contains("none: "), "{shown}");
}

/// Tests the number of cases of a large platform.
#[test]
fn thousands_of_cases_take_seconds() {
    let text = |file: usize| {
        let cases =
            (0..100).map(|number| case(&format!("{file}-{number}"), "check: {allowed: true}\n    plan: {exit: 0}"));
        format!("{HEAD}cases:\n{}", cases.collect::<String>())
    };
    let place = folder(&[]);
    (0..20).for_each(|number| fs::write(place.path().join(format!("{number}.yaml")), text(number)).unwrap());
    let start = Instant::now();
    let (code, shown, _) = test(place.path(), &["."]);
    assert_eq!((code, shown.as_str()), (Some(0), "2000 cases in 20 files: 2000 passed\n"));
    println!("2,000 cases in {:?}", start.elapsed());
    // The limit allows for an unoptimised program beside other tests, but not for quadratic time.
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}
