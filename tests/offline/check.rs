//! `rolegate check`, as users run it.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::answers::{Ran, fed, folder, ran, ran_with};
use crate::build;

const VALID: &str = "\
apiVersion: workloads.x-k8s.io/v1alpha1
kind: RoleBasedGroup
metadata: {name: llm, namespace: prod}
spec:
  roles:
    - {name: prefill, replicas: 100}
    - {name: decode, replicas: 50}
  coordination:
    - strategy:
        segmentPlacement:
          segmentSize: {prefill: 10, decode: 5}
";

const COORDINATION: &str = "\
apiVersion: rolegate.dev/v1alpha1
kind: RoleCoordination
metadata: {name: llm, namespace: prod}
spec:
  roles: [{name: prefill, replicas: 10}]
  coordination: [{name: pd, strategy: {segmentPlacement: {segmentSize: {prefill: 5}}}}]
";

fn broken() -> String {
    VALID.replace("decode: 5", "decode: 0")
}

#[test]
fn a_job_with_a_deadline_that_runs_while_its_pods_are_held_is_told() {
    let job = |labels: &str| {
        format!(
            "{{backoffLimit: 0, activeDeadlineSeconds: 600, template: {{metadata: {{labels: {{{labels}}}}}, spec: {{containers: []}}}}}}"
        )
    };
    let ours = job("rolegate.dev/group: pd, rolegate.dev/role: a");
    let object = |head: &str, spec: &str| format!("{{{head}, metadata: {{name: a}}, spec: {spec}}}");
    let folder = folder(&[
        ("job.yaml", &object("apiVersion: batch/v1, kind: Job", &ours)),
        ("cron.yaml", &object("apiVersion: batch/v1, kind: CronJob", &format!("{{jobTemplate: {{spec: {ours}}}}}"))),
        (
            "set.yaml",
            &object(
                "apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet",
                &format!("{{replicatedJobs: [{{name: a, template: {{spec: {ours}}}}}]}}"),
            ),
        ),
        ("free.yaml", &object("apiVersion: batch/v1, kind: Job", &job("app: a"))),
    ]);
    for (file, path) in [
        ("job.yaml", "spec.activeDeadlineSeconds"),
        ("cron.yaml", "spec.jobTemplate.spec.activeDeadlineSeconds"),
        ("set.yaml", "spec.replicatedJobs[0].template.spec.activeDeadlineSeconds"),
    ] {
        let told = ran(&folder, &format!("check {file}"));
        let why = format!(
            "{path}: it runs from the start of the Job, also while its pods are held: after 600 s the Job fails"
        );
        assert!(told.code == Some(0) && told.out.contains(&why), "{told:?}");
    }
    assert!(ran(&folder, "check free.yaml").out.contains("0 warnings"));
}

#[test]
fn an_object_that_stands_twice_is_told_and_each_file_is_judged_by_its_own() {
    let (other, set) = (
        VALID.replace("{name: llm,", "{name: llm, labels: {a: b},"),
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}}",
    );
    let folder = folder(&[("a.yaml", VALID), ("b.yaml", &other), ("c.yaml", VALID), ("d.yaml", set), ("e.yaml", set)]);
    let twice = ran(&folder, "check a.yaml b.yaml");
    assert_eq!(twice.code, Some(0));
    let told = "this object stands in a.yaml:1 and, with other content, in b.yaml:1";
    assert!(twice.out.contains(told) && twice.out.contains("1 warning"), "{twice:?}");
    for same in ["a.yaml c.yaml", "d.yaml e.yaml"] {
        assert!(ran(&folder, &format!("check {same}")).out.contains("0 warnings"), "{same}");
    }
    // What the other file says of the object does not matter.
    let group = "{apiVersion: rolegate.dev/v1alpha1, kind: RoleCoordination, metadata: {name: pd}, spec: {roles: [{name: a, \
                 workloadRef: {kind: StatefulSet, name: a}}], coordination: [{name: s, strategy: {segmentPlacement: {segmentSize: {a: 2}}}}]}}";
    let set = |replicas: u32| {
        format!(
            "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: a}}, spec: {{replicas: {replicas}, podManagementPolicy: \
             Parallel, template: {{metadata: {{labels: {{rolegate.dev/group: pd, rolegate.dev/role: a}}}}}}}}}}"
        )
    };
    let folder = crate::answers::folder(&[("a.yaml", &format!("{group}\n---\n{}", set(4))), ("b.yaml", &set(3))]);
    let warnings = &ran(&folder, "check -o json .").json()["objects"][0]["warnings"];
    assert_eq!(warnings.as_array().map(Vec::len), Some(0), "{warnings}");
}

#[test]
fn the_dialect_of_the_design_still_goes_by_its_old_name() {
    let group = "{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: pd}, \
                 spec: {minMember: 3, subGroups: [{name: a, minMember: 1}, {name: b, minMember: 1}]}}";
    let folder = folder(&[("a.yaml", group)]);
    let run = |dialect: &str| ran(&folder, &format!("check a.yaml --kai-dialect {dialect}"));
    let (new, old) = (run("proposal"), run("seed"));
    assert_eq!((new.code, run("upstream").code), (Some(1), Some(0)), "{}", new.out);
    assert_eq!((old.out, old.code), (new.out, Some(1)));
}

#[test]
fn a_violation_shows_its_line_and_fails() {
    let ran = ran(folder(&[("a.yaml", &broken())]), "check a.yaml");
    let expected = "\
a.yaml:11:38: error: spec.coordination[0].strategy.segmentPlacement.segmentSize[decode]: Invalid value: 0: must be \
greater than or equal to 1 [segment-size] RoleBasedGroup prod/llm
  11 |           segmentSize: {prefill: 10, decode: 0}
     |                                      ^^^^^^
1 object, 1 refused, 1 error, 0 warnings
";
    assert_eq!((ran.code, &*ran.out), (Some(1), expected));
}

#[test]
fn json_has_the_fields_that_tools_rely_on() {
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
    let ran = ran(folder(&[("a.yaml", &broken()), ("b.yaml", other)]), "check -o json .");
    let expected = json!({"objects": [
        {
            "file": "./a.yaml",
            "kind": "RoleBasedGroup",
            "namespace": "prod",
            "name": "llm",
            "allowed": false,
            "violations": [{
                "rule": "segment-size",
                "field": "spec.coordination[0].strategy.segmentPlacement.segmentSize[decode]",
                "reason": "FieldValueInvalid",
                "message": "Invalid value: 0: must be greater than or equal to 1",
            }],
            "warnings": [],
        },
        {"file": "./b.yaml", "kind": "ConfigMap", "namespace": "", "name": "c", "allowed": true, "violations": [], "warnings": []},
    ]});
    assert_eq!((ran.json(), ran.code), (expected, Some(1)));
}

#[test]
fn github_and_sarif_name_the_place() {
    let folder = folder(&[("dir a/a,b.yaml", &broken())]);
    let printed = |format: &str| ran_with(&folder, &format!("check -o {format}"), &["dir a/a,b.yaml"]);
    let github = printed("github").out;
    assert!(github.starts_with("::error file=dir a/a%2Cb.yaml,line=11,col=38,title=segment-size::spec."), "{github}");
    let log = printed("sarif").json();
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("segment-size"), &json!("error")));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "dir%20a/a%2Cb.yaml");
    assert_eq!(place["region"]["startLine"], 11);
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(rules.iter().any(|rule| rule["id"] == "segment-size-conflict"));
}

#[test]
fn what_cannot_be_read_says_where() {
    let tripled = (1..20).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}]", level - 1));
    let bomb = ["a0: &a0 x".to_owned()].into_iter().chain(tripled).collect::<Vec<_>>().join("\n");
    let cases = [
        ("tab.yaml", "kind: A\n\tb: 1\n", "tab.yaml:1:7: unreadable: "),
        ("open.yaml", "kind: A\nb: [1,\n", "open.yaml:"),
        ("twice.yaml", "kind: A\nspec:\n  b: 1\n  b: 2\n", "twice.yaml:4:3: unreadable: b is set twice\n"),
        ("twice.json", "{\"kind\": \"A\",\n \"a\": 1, \"a\": 2}", "twice.json:2:10: unreadable: a is set twice\n"),
        ("list.yaml", "- a\n- b\n", "list.yaml:1:1: unreadable: must be an object with apiVersion and kind\n"),
        ("bomb.yaml", &bomb, "bomb.yaml:10:20: unreadable: too large: its aliases repeat more than 50000 values\n"),
        ("absent.yaml", "", ""),
    ];
    for (name, content, expected) in cases {
        let files = if content.is_empty() { Vec::new() } else { vec![(name, content)] };
        let Ran { code, out, .. } = ran(folder(&files), &format!("check {name}"));
        assert!(code == Some(2) && out.starts_with(expected) && out.contains("unreadable"), "{name}: {out}");
    }
}

#[test]
fn an_unreadable_document_hides_no_other_of_its_file() {
    let with = |text: &str| format!("# first\n{text}\n---\n{}", broken());
    let (tab, open) = (with("kind: A\n\tb: 1"), with("kind: A\nb: [1,"));
    let twice = format!("%YAML 1.2\n---\nkind: A\nb: 1\nb: 2\n---\n{}\n--- # last\nc: [1,\n", broken());
    let folder = folder(&[("tab.yaml", &tab), ("open.yaml", &open), ("twice.yaml", &twice)]);
    for (name, unreadable, line) in [("tab.yaml", 1, 15), ("open.yaml", 1, 15), ("twice.yaml", 2, 17)] {
        let told = ran(&folder, &format!("check {name}"));
        assert_eq!(told.code, Some(2), "{told:?}");
        let counts = format!("1 object, 1 refused, 1 error, 0 warnings, {unreadable} unreadable");
        assert!(told.out.contains(&format!("{name}:{line}:")) && told.out.contains(&counts), "{told:?}");
    }
}

/// A group whose replicas are fewer than none.
fn wrong_group(name: &str) -> Value {
    let spec = json!({"roles": [{"name": "p", "replicas": -1}]});
    build::object("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", name, &spec)
}

#[test]
fn an_unreadable_value_hides_no_other_of_its_json_stream() {
    let (one, other) = (wrong_group("a"), wrong_group("b"));
    for (what, broken, unreadable) in [
        ("lacks a value", r#"{"kind": [}"#, 1),
        ("is not closed", "{\"kind\": \"A\",\n  \"list\": [{\"b\": 1},", 1),
        ("has an open string", "{\"kind\": \"A}\n", 1),
        ("has a bracket in a string", r#"{"kind": "}{", "a": 1, "a": 2}"#, 1),
        ("is closed twice", "{\"kind\": \"A\", \"apiVersion\": \"b\"}}", 1),
        ("is followed by another", "{\"kind\": [}\n{\"kind\": [}", 2),
    ] {
        let last = 5 + broken.matches('\n').count();
        let texts = [
            (format!("{one}\n\n\n{broken}\n{other}\n"), last),
            (format!("{broken}\n{one:#}\n{other}"), 0),
            (format!("{one}\n{other:#}\n{broken}"), 0),
        ];
        for (text, line) in texts {
            let told = fed("check -", &text);
            let counts = format!(" 2 refused, 2 errors, 0 warnings, {unreadable} unreadable");
            assert!(told.code == Some(2) && told.out.contains(&counts), "{what}: {text}\n{told:?}");
            assert!(line == 0 || told.out.contains(&format!("-:{line}:")), "{what}: {text}\n{told:?}");
        }
    }
    // Values that stand on one line, with words between.
    let told = fed("check -", &format!("{one}{{\"a\": [}}{other}"));
    assert!(told.out.contains("2 objects, 2 refused") && told.out.contains(", 1 unreadable"), "{told:?}");
    let told = fed("check -", &format!("{one} oops {other}"));
    assert!(told.out.contains("2 objects, 2 refused") && told.out.contains(", 1 unreadable"), "{told:?}");
}

#[test]
fn bombs_are_refused_quickly() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{inner}]").expect("a string takes it");
    }
    let deep = format!("kind: A\na: {}1{}\n", "[".repeat(5000), "]".repeat(5000));
    let deeper = (0..3000).map(|level| " ".repeat(level) + "a:\n").collect::<String>();
    let json = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    let large = format!("kind: A\na: {}\n", "x".repeat(65 << 20));
    for (name, content) in [("bomb", bomb), ("deep", deep), ("deeper", deeper), ("json", json), ("large", large)] {
        let folder = folder(&[("x.yaml", &content)]);
        // Limits CPU time, not elapsed time, because other tests run at the same time.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -t 10; exec \"$0\" check x.yaml", env!("CARGO_BIN_EXE_rolegate")]);
        let ran = Ran::from(command.current_dir(folder.path()).output().expect("it ends"));
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.out.chars().take(300).collect::<String>());
    }
}

#[test]
fn documents_after_a_broken_one_are_judged() {
    let ran = fed("check -o json -", &format!("kind: A\na: 1\na: 2\n---\n{}", broken()));
    let answer = ran.json();
    assert_eq!((ran.code, &answer["unreadable"][0]["line"]), (Some(2), &json!(3)));
    assert_eq!(answer["objects"][0]["allowed"], false);
}

#[test]
fn streams_lists_and_json_are_taken_apart() {
    let group = wrong_group("a");
    let mut bare = group.clone();
    bare.as_object_mut().expect("an object").retain(|key, _| key != "kind" && key != "apiVersion");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [group, group]});
    let typed = json!({"apiVersion": group["apiVersion"], "kind": "RoleBasedGroupList", "items": [bare]});
    let json = format!("{group}\n{list:#}{typed}");
    let yaml = format!("---\n# nothing\n---\n{VALID}---\n{group}\n---\n");
    let folder = folder(&[("a.json", &json), ("b/c.yml", &yaml), ("b/readme.md", "a: [")]);
    let answer = ran(&folder, "check -o json .").json();
    let allowed: Vec<_> =
        answer["objects"].as_array().expect("a list").iter().map(|object| &object["allowed"]).collect();
    assert_eq!(allowed, [false, false, false, false, true, false]);
    let output = ran(&folder, "check a.json").out;
    assert!(output.starts_with("a.json:1:122:") && output.contains("\na.json:37:109:"), "{output}");
    assert!(output.contains("\na.json:30:13:"), "the second item of the list has a line of its own: {output}");
}

#[test]
fn all_files_are_context_and_with_is_not_judged() {
    let group = VALID.replace("segmentPlacement:", "rollingDeploy:").replace("segmentSize:", "roleDeployStep:");
    let group = group.replace(
        "- strategy:\n",
        "- name: pd\n      strategy:\n        deployTopologyConstraint: {topologyLayerName: rack}\n",
    );
    let topology = "\
apiVersion: rolegate.dev/v1alpha1
kind: ClusterTopology
metadata: {name: rbg-cluster-topology}
spec: {layers: [{name: rack, key: example.com/rack}]}
";
    let broken = topology.replace("key: example.com/rack", "key: 'a b'");
    let folder = folder(&[("g.yaml", &group), ("t.yaml", topology), ("broken.yaml", &broken)]);
    let absent = ran(&folder, "check g.yaml").out;
    assert!(absent.contains("no ClusterTopology has this name"), "{absent}");
    for line in ["check g.yaml t.yaml", "check g.yaml --with t.yaml"] {
        let output = ran(&folder, line).out;
        assert!(output.ends_with("0 refused, 0 errors, 0 warnings\n"), "{output}");
    }
    let output = ran(&folder, "check g.yaml --with broken.yaml").out;
    assert!(output.contains("1 object, 1 refused, 1 error"), "only the group is judged: {output}");
}

#[test]
fn an_object_that_is_only_looked_at_is_unreadable_without_the_shape_of_its_kind() {
    let set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: three}}";
    let folder =
        folder(&[("g.yaml", VALID), ("set.yaml", set), ("group.yaml", &VALID.replace("replicas: ", "replicas: x"))]);
    let said = r#"set.yaml:1:70: unreadable: StatefulSet "x": spec.replicas: must be a whole number, and is "three""#;
    for line in ["check set.yaml", "check g.yaml set.yaml", "check g.yaml --with set.yaml"] {
        let ran = ran(&folder, line);
        assert!(ran.code == Some(2) && ran.out.contains(said), "{ran:?}");
    }
    for (line, code) in [("check group.yaml", 1), ("check g.yaml --with group.yaml", 2)] {
        let ran = ran(&folder, line);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
}

#[test]
fn an_old_object_makes_it_an_update() {
    let (broken, worse) = (broken(), VALID.replace("prefill: 10, decode: 5", "prefill: 0, decode: 0"));
    let folder = folder(&[("old.yaml", &broken), ("same.yaml", &broken), ("worse.yaml", &worse)]);
    let lines = ["check same.yaml", "check same.yaml --old old.yaml", "check worse.yaml --old old.yaml"];
    assert_eq!(lines.map(|line| ran(&folder, line).code), [1, 0, 1].map(Some));
}

#[test]
fn an_object_without_a_namespace_is_the_one_in_the_default_namespace() {
    let group = "\
apiVersion: rolegate.dev/v1alpha1
kind: RoleCoordination
metadata: {name: pd}
spec:
  roles: [{name: prefill, workloadRef: {kind: StatefulSet, name: prefill}}]
  coordination: [{name: segments, strategy: {segmentPlacement: {segmentSize: {prefill: 0}}}}]
";
    let set =
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: prefill, namespace: default}, spec: {replicas: 4}}";
    let listed = group.replace("{name: pd}", "{name: pd, namespace: default}");
    let folder = folder(&[("group.yaml", group), ("set.yaml", set), ("listed.yaml", &listed)]);
    let output = ran(&folder, "check group.yaml --with set.yaml --old listed.yaml -o json").json();
    let object = &output["objects"][0];
    assert_eq!((&object["allowed"], &object["namespace"]), (&Value::from(true), &Value::from("")), "{object}");
    let warned: Vec<_> =
        object["warnings"].as_array().unwrap().iter().map(|warning| warning["rule"].as_str().unwrap()).collect();
    assert!(warned.contains(&"workload-not-labelled") && warned.contains(&"segment-size"), "{warned:?}");
}

#[test]
fn colours_are_for_terminals() {
    let folder = folder(&[("a.yaml", &broken())]);
    let out = |more: &str| ran(&folder, &format!("check a.yaml {more}")).out;
    assert!(!out("").contains('\x1b') && !out("--color never").contains('\x1b'));
    assert!(out("--color always").contains("\x1b[1;31merror\x1b[0m"));
}

#[test]
fn a_file_cannot_drive_the_terminal() {
    let name = VALID.replace("name: decode", "name: \"\\e[31mdecode\"").replace("decode: 5", "\"\\e[31mdecode\": 0");
    assert!(!ran(folder(&[("a.yaml", &name)]), "check a.yaml").out.contains('\x1b'));
}

#[test]
fn a_field_of_another_type_is_refused_at_its_line() {
    let ran = ran(folder(&[("a.yaml", &VALID.replace("replicas: 50", "replicas: many"))]), "check a.yaml");
    let expected = "a.yaml:7:22: error: spec.roles[1].replicas: Invalid value: ";
    assert!(ran.code == Some(1) && ran.out.starts_with(expected), "{ran:?}");
}

#[test]
fn no_object_at_all_ends_with_2() {
    let folder = folder(&[("empty.yaml", "# {{ if .Values.off }}\n---\n")]);
    fs::create_dir(folder.path().join("nothing")).expect("a folder");
    let runs = ["empty.yaml", "nothing empty.yaml"].map(|files| (files, ran(&folder, &format!("check {files}"))));
    for (files, ran) in runs.into_iter().chain([("-", fed("check -", ""))]) {
        let words = format!("{}: unreadable: no object in it\n", files.replace(' ', ", "));
        assert!(ran.code == Some(2) && ran.out.starts_with(&words), "{files}: {ran:?}");
    }
}

#[test]
fn warnings_fail_when_they_are_asked_to() {
    let folder = folder(&[("good.yaml", VALID), ("odd.yaml", &VALID.replace("replicas: 50", "replicas: 49"))]);
    let lines = ["check odd.yaml", "check odd.yaml --fail-on-warning", "check good.yaml --fail-on-warning"];
    assert_eq!(lines.map(|line| ran(&folder, line).code), [0, 1, 0].map(Some));
}

#[test]
fn each_file_of_context_has_its_own_option() {
    let ran = ran(folder(&[("good.yaml", VALID), ("bad.yaml", &broken())]), "check --with good.yaml bad.yaml");
    assert_eq!(ran.code, Some(1), "the second is judged: {ran:?}");
}

#[test]
fn a_misspelt_field_is_warned_about_and_refused_where_that_is_asked() {
    let with = |field: &str| COORDINATION.replace("prefill: 5}", &format!("prefill: 5}}, {field}: Ordered"));
    let folder = folder(&[("a.yaml", &with("progresion")), ("good.yaml", &with("progression"))]);
    let output = ran(&folder, "check a.yaml").out;
    let words = "a.yaml:6:86: warning: spec.coordination[0].strategy.segmentPlacement.progresion: no such field: it has no \
                 effect; did you mean \"progression\"?";
    assert!(output.starts_with(words), "{output}");
    assert!(ran(&folder, "check good.yaml").out.ends_with("0 refused, 0 errors, 0 warnings\n"));
    // The last sets it twice.
    let lines = ["a.yaml --strict", "good.yaml --strict", "good.yaml --strict --rule unknown-field=off"];
    assert_eq!(lines.map(|line| ran(&folder, &format!("check {line}")).code), [1, 0, 2].map(Some));
}

#[test]
fn what_is_almost_ours_is_told_by_every_command_that_reads_files() {
    let foreign = "apiVersion: grove.io/v1alpha1\nkind: ClusterTopology\nmetadata: {name: a}\n";
    let chart = "apiVersion: v2\nname: chart\nversion: 0.1.0\n";
    let cases = [
        ("kind: RoleCoordination", "kind: Rolecoordination", "2:1", "kind: RoleCoordination?"),
        ("rolegate.dev/v1alpha1", "rolegate.dev/v1", "1:1", "apiVersion: rolegate.dev/v1alpha1?"),
        ("rolegate.dev/v1alpha1", "rolegate.dev/v1beta1", "1:1", "apiVersion: rolegate.dev/v1alpha1?"),
        ("rolegate.dev/v1alpha1", "rolegates.dev/v1alpha1", "1:1", "apiVersion: rolegate.dev/v1alpha1?"),
        ("kind: RoleCoordination\n", "", "1:1", "kind: RoleCoordination?"),
    ];
    for (from, to, at, meant) in cases {
        let folder = folder(&[("a.yaml", &COORDINATION.replace(from, to)), ("b.yaml", foreign), ("c.yaml", chart)]);
        for command in ["check", "plan", "mutate", "fit"] {
            let Ran { code, out, err } = ran(&folder, &format!("{command} ."));
            let said = out + &err;
            let line = said.lines().find(|line| line.contains("unreadable")).unwrap_or_default();
            assert!(line.starts_with(&format!("./a.yaml:{at}: unreadable: ")), "{command}: {said}");
            assert!(line.ends_with(&format!("did you mean {meant}")), "{command}: {said}");
            assert_eq!(code, Some(2), "{command}: {said}");
        }
    }
    let folder = folder(&[("a.yaml", COORDINATION), ("b.yaml", foreign), ("c.yaml", chart)]);
    assert_eq!(ran(&folder, "check .").code, Some(0));
}

#[test]
fn errors_come_first_and_what_was_not_judged_is_told_once_for_each_thing_that_lacks() {
    let group = "\
apiVersion: rolegate.dev/v1alpha1
kind: RoleCoordination
metadata: {name: llm, namespace: prod}
spec:
  roles:
    - {name: prefill, workloadRef: {kind: StatefulSet, name: prefill}}
    - {name: decode, workloadRef: {kind: StatefulSet, name: decode}}
  coordination:
    - {name: roll, roles: [prefill, decode], strategy: {rollingUpdate: {maxSkew: 10%}}}
    - {name: pd, strategy: {segmentPlacement: {segmentSize: {prefill: 2, decode: 0}}}}
";
    let folder = folder(&[("a.yaml", group)]);
    let output = ran(&folder, "check a.yaml").out;
    assert!(output.starts_with("a.yaml:10:74: error: "), "{output}");
    for name in ["prefill", "decode"] {
        let lacks = format!("note: not judged without StatefulSet prod/{name} [");
        assert_eq!(output.matches(&lacks).count(), 1, "{output}");
    }
    let notes = ran(&folder, "check a.yaml -o json").json();
    assert!(notes["objects"][0]["notes"].as_array().unwrap().len() > 4, "programs read each: {notes}");
}

/// Whoever names a file commands neither a terminal nor the log of a CI system.
#[test]
fn what_a_file_is_called_is_only_shown() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder(&[("::error::first.yaml", "{"), ("a.yaml", VALID)]);
    let name = std::ffi::OsStr::from_bytes(b"b\n::error::mine\x1b[31m.yaml");
    fs::write(folder.path().join(name), "{").unwrap();
    for format in ["text", "github", "json", "sarif"] {
        let files = ["::error::first.yaml", name.to_str().unwrap(), "."];
        let ran = ran_with(&folder, &format!("check -o {format}"), &files);
        let all = ran.out + &ran.err;
        let commands = all.lines().filter(|line| line.starts_with("::") && !line.starts_with("::error file="));
        assert_eq!(commands.count(), 0, "{format}: {all}");
        assert!(!all.contains('\u{1b}'), "{format}: {all}");
    }
}

#[test]
fn links_are_followed_within_a_folder_and_not_out_of_it() {
    use std::os::unix::fs::symlink;
    let folder = folder(&[("secret.yaml", VALID), ("in/..data_1/group.yaml", VALID)]);
    let inside = folder.path().join("in");
    symlink("..data_1", inside.join("..data")).unwrap();
    symlink("..data/group.yaml", inside.join("group.yaml")).unwrap();
    let within = ran(&folder, "check in");
    assert!(within.out.contains("2 objects, 0 refused"), "{within:?}");
    symlink("../secret.yaml", inside.join("out.yaml")).unwrap();
    let out = ran(&folder, "check in");
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.out.contains("in/out.yaml: unreadable: is a link that leads out of the folder"), "{out:?}");
}

#[test]
fn what_is_read_at_once_is_bounded() {
    let many = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n".repeat(10_001);
    let folder = folder(&[("many.yaml", &many)]);
    let ran = ran(folder, "check many.yaml");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.out.contains("more than 10000 objects in all files together"), "{ran:?}");
}
