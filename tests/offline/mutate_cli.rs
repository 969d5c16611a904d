//! `rolegate mutate`, run as people run it: golden cases of pods and workloads in `tests/cases/pod/*.yaml`, each of which
//! is also mutated twice, and the formats.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

const ROOT: &str = "tests/cases/pod";
const BATCH: &str = "rolebasedgroup.workloads.x-k8s.io/deploy-topology-coordination-name";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    /// Where anchors are.
    #[serde(default, rename = "shared")]
    _shared: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What it shows, in a phrase.
    name: String,
    /// Objects that are there.
    #[serde(default)]
    with: Vec<Value>,
    /// Objects that are mutated.
    objects: Vec<Value>,
    /// Objects before.
    #[serde(default)]
    old: Vec<Value>,
    /// Patches by name, word for word; of all objects, unless `only` lists some.
    patches: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    only: Vec<String>,
    /// Names of all objects that come out.
    names: Option<Vec<String>>,
    /// Objects by name, whole.
    #[serde(default, rename = "become")]
    become_: BTreeMap<String, Value>,
    /// Pods of all batches with topology.
    batches: Option<BTreeMap<String, Vec<String>>>,
    /// All warnings, each once.
    #[serde(default)]
    warnings: Vec<String>,
    /// What is refused, as printed.
    #[serde(default)]
    refused: Vec<String>,
    /// Exit code.
    #[serde(default)]
    exit: i32,
}

fn rolegate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rolegate")).args(args).output().expect("rolegate runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is text")
}

/// Writes a list of objects to a file.
fn file(folder: &Path, name: &str, objects: &[Value]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string()).expect("written");
    path
}

fn name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().or(object["metadata"]["generateName"].as_str());
    name.expect("objects have names").to_owned()
}

/// What `rolegate mutate` says of objects.
struct Said {
    patches: Vec<Value>,
    items: Vec<Value>,
    stderr: String,
    code: i32,
}

impl Case {
    fn mutate(&self, objects: &[Value], with: &[Value]) -> Said {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name, objects| file(folder.path(), name, objects).display().to_string();
        let (objects, with, old) =
            (path("objects.json", objects), path("with.json", with), path("old.json", &self.old));
        let run = |format| rolegate(&["mutate", &objects, "--with", &with, "--old", &old, "-o", format]);
        let (patches, items) = (run("patch"), run("json"));
        let parsed = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).expect("output is JSON");
        let list = |value: &Value| value.as_array().expect("a list").clone();
        Said {
            code: patches.status.code().expect("it ended"),
            stderr: text(&patches.stderr),
            patches: list(&parsed(&patches)["objects"]),
            items: list(&parsed(&items)["items"]),
        }
    }

    fn run(&self) -> Result<(), String> {
        let said = self.mutate(&self.objects, &self.with);
        let mut wrong = Vec::new();
        let mut compare = |what: &str, expected: Value, found: Value| {
            if expected != found {
                wrong.push(format!("  {what}, expected: {expected:#}\n  {what}, found: {found:#}"));
            }
        };
        if let Some(expected) = &self.patches {
            let mut found = BTreeMap::new();
            for object in &said.patches {
                let name = object["name"].as_str().expect("a name").to_owned();
                if self.only.is_empty() || self.only.contains(&name) {
                    found.entry(name).or_insert_with(|| object["patch"].clone());
                }
            }
            compare("patches", json!(expected), json!(found));
        }
        if let Some(expected) = &self.names {
            compare("names", json!(expected), said.items.iter().map(name).collect());
        }
        for (wanted, expected) in &self.become_ {
            let found = said.items.iter().find(|item| name(item) == *wanted).cloned().unwrap_or_default();
            compare(wanted, expected.clone(), found);
        }
        if let Some(expected) = &self.batches {
            let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for item in &said.items {
                if let Some(batch) = item["metadata"]["labels"][BATCH].as_str() {
                    found.entry(batch).or_default().push(name(item));
                }
            }
            compare("batches", json!(expected), json!(found));
        }
        let mut warnings: Vec<&Value> = Vec::new();
        for warning in said.patches.iter().flat_map(|object| object["warnings"].as_array().expect("a list")) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        compare("warnings", json!(self.warnings), json!(warnings));
        let refused = said.stderr.lines().filter(|line| line.starts_with("refused: "));
        compare("refused", json!(self.refused), refused.collect());
        compare("exit code", json!(self.exit), json!(said.code));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// What came out is put in again: nothing may change. The workloads stay in sight, since they number their pods.
    fn run_twice(&self) -> Result<(), String> {
        let once = self.mutate(&self.objects, &self.with);
        let workloads = self.objects.iter().filter(|object| object["kind"] != "Pod").cloned();
        let with: Vec<_> = self.with.iter().cloned().chain(workloads).collect();
        let again = self.mutate(&once.items, &with);
        let changed: Vec<_> = again.patches.iter().filter(|object| object["patch"] != json!([])).collect();
        if changed.is_empty() && again.items == once.items { Ok(()) } else { Err(format!("{changed:#?}")) }
    }
}

fn cases() -> Vec<(PathBuf, Case)> {
    let entries = fs::read_dir(ROOT).expect("the folder of cases is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("its entries are readable").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a case file is readable");
        let file: CaseFile =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.cases.into_iter().map(move |case| (path.clone(), case))
    };
    paths.into_iter().flat_map(read).collect()
}

fn all_cases(run: fn(&Case) -> Result<(), String>) {
    let cases = cases();
    let failed: Vec<_> = cases
        .iter()
        .filter_map(|(path, case)| Some(format!("{}: {}\n{}", path.display(), case.name, run(case).err()?)))
        .collect();
    println!("{} golden pods, {} failed", cases.len(), failed.len());
    assert!(failed.is_empty(), "{} of {} cases failed\n\n{}", failed.len(), cases.len(), failed.join("\n\n"));
}

#[test]
fn every_case_gives_what_it_says() {
    all_cases(Case::run);
}

#[test]
fn nothing_changes_a_second_time() {
    all_cases(Case::run_twice);
}

const POD: &str = "
apiVersion: v1
kind: Pod
metadata:
  name: p-0
  namespace: ns
  labels: {rolegate.dev/group: pd, rolegate.dev/role: prefill}
spec:
  containers: [{name: main, image: x, unknown: {z: 1, a: 2}}]
";

fn with_input(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rolegate"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("rolegate runs");
    child.stdin.take().expect("it has an input").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

#[test]
fn yaml_is_the_default_away_from_a_terminal() {
    let output = with_input(&["mutate", "-"], POD);
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_saphyr::from_str(&text(&output.stdout)).expect("output is YAML");
    let mut expected: Value = serde_saphyr::from_str(POD).expect("it is YAML");
    expected["metadata"]["annotations"] = json!({ "rolegate.dev/born-as": "pd/prefill", "rolegate.dev/held-by": "pd" });
    expected["spec"]["schedulingGates"] = json!([{ "name": "rolegate.dev/hold" }]);
    assert_eq!(found, expected);
    let two = with_input(&["mutate", "-", "-o", "yaml"], &format!("{POD}---{POD}"));
    assert_eq!(text(&two.stdout).matches("---\n").count(), 1);
}

#[test]
fn json_is_a_list_and_a_patch_says_whose_it_is() {
    let list: Value = serde_json::from_slice(&with_input(&["mutate", "-", "-o", "json"], POD).stdout).expect("JSON");
    assert_eq!((&list["apiVersion"], &list["kind"]), (&json!("v1"), &json!("List")));
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    let patches = with_input(&["mutate", "-", "-o", "patch"], POD).stdout;
    let patches: Value = serde_json::from_slice(&patches).expect("JSON");
    let object = &patches["objects"][0];
    assert_eq!(object["patch"][0]["op"], "add");
    let keys: Vec<_> = object.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["kind", "name", "namespace", "patch", "warnings"]);
    assert_eq!((&object["kind"], &object["namespace"], &object["name"]), (&json!("Pod"), &json!("ns"), &json!("p-0")));
}

#[test]
fn a_diff_shows_what_is_added_in_colour_if_asked() {
    let plain = text(&with_input(&["mutate", "-", "-o", "diff"], POD).stdout);
    assert!(plain.starts_with("Pod ns/p-0\n"), "{plain}");
    assert!(plain.contains("+   schedulingGates:\n+   - name: rolegate.dev/hold\n"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let coloured = text(&with_input(&["mutate", "-", "-o", "diff", "--color", "always"], POD).stdout);
    assert!(coloured.contains("\u{1b}[32m+   schedulingGates:\u{1b}[0m"), "{coloured}");
    let nothing = text(&with_input(&["mutate", "-", "-o", "diff"], &POD.replace("rolegate.dev", "x")).stdout);
    assert_eq!(nothing, "1 of 1 objects do not change\n");
}

const GROUP: &str = "
apiVersion: workloads.x-k8s.io/v1alpha1
kind: RoleBasedGroup
metadata: {name: pd, namespace: ns}
spec:
  roles: [{name: prefill, replicas: 4}]
  coordination: [{strategy: {segmentPlacement: {segmentSize: {prefill: 2}}}}]
";

#[test]
fn the_segment_of_a_pod_stands_under_another_label_as_well_and_a_role_that_is_unknown_may_pass() {
    let pod = POD.replace("name: p-0", "name: p-3").replace(
        "labels: {",
        "ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: p, uid: u, controller: true}]\n  labels: {",
    );
    let mutated = |pod: &str, args: &[&str]| {
        let output = with_input(&[&["mutate", "-", "-o", "json"], args].concat(), &format!("{GROUP}---{pod}"));
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        list["items"].as_array().expect("a list").iter().find(|item| item["kind"] == "Pod").expect("a pod").clone()
    };
    let labels = mutated(&pod, &["--segment-label", "example.com/segment"])["metadata"]["labels"].clone();
    assert_eq!((&labels["rolegate.dev/segment"], &labels["example.com/segment"]), (&json!("1"), &json!("1")));
    assert_eq!(mutated(&pod, &[])["metadata"]["labels"]["example.com/segment"], Value::Null);
    let output = with_input(&["mutate", "-", "--segment-label", "no label"], &pod);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("--segment-label"), "{output:?}");
    let stranger = pod.replace("role: prefill", "role: other");
    let gates = |args: &[&str]| mutated(&stranger, args)["spec"]["schedulingGates"].clone();
    assert_eq!(gates(&[]), json!([{ "name": "rolegate.dev/hold" }]));
    assert_eq!(gates(&["--unknown-role=pass"]), Value::Null);
}

#[test]
fn what_cannot_be_read_ends_with_2_and_the_rest_is_shown() {
    assert_eq!(rolegate(&["mutate", "/nowhere.yaml"]).status.code(), Some(2));
    assert_eq!(rolegate(&["mutate"]).status.code(), Some(2));
    let broken = with_input(&["mutate", "-", "-o", "json"], &format!("{POD}---\na: [\n"));
    assert_eq!(broken.status.code(), Some(2));
    assert!(text(&broken.stderr).starts_with("-:"), "{}", text(&broken.stderr));
    let shapeless = with_input(
        &["mutate", "-", "-o", "patch"],
        &format!("{POD}---\n{}", POD.replace("[{name: main", "[7, {name: main")),
    );
    assert_eq!(shapeless.status.code(), Some(2));
    let (stdout, stderr) = (text(&shapeless.stdout), text(&shapeless.stderr));
    assert!(stderr.contains("spec.containers[0]"), "{stderr}");
    assert_eq!(stdout.matches("\"kind\": \"Pod\"").count(), 1, "{stdout}");
}

#[test]
fn a_warning_that_pods_share_is_shown_once() {
    let pods = format!("{POD}---{}", POD.replace("p-0", "p-1"));
    let group = "
apiVersion: workloads.x-k8s.io/v1alpha1
kind: RoleBasedGroup
metadata: {name: pd, namespace: ns}
spec: {roles: [{name: decode}]}
";
    let output = with_input(&["mutate", "-", "-o", "patch"], &format!("{pods}---{group}"));
    let stderr = text(&output.stderr);
    let expected = "warning: Pod ns/p-0 and 1 more: role \"prefill\" is not in group \"pd\": the pod is held until the group has it\n";
    assert_eq!(stderr, expected);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn more_pods_than_any_cluster_has_are_not_made() {
    let set = |replicas: &str| {
        format!("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: s}}\nspec: {{replicas: {replicas}}}\n")
    };
    let output = with_input(&["mutate", "-", "-o", "json"], &format!("{POD}---\n{}", set("4000000000")));
    assert_eq!(output.status.code(), Some(2));
    let expected =
        "-:11:1: unreadable: StatefulSet \"s\": spec.replicas: it makes 4000000000 pods, and there is room for 99999\n";
    assert_eq!(text(&output.stderr), expected);
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "the rest is shown");
    let group = "
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: l}
spec: {replicas: 2000, leaderWorkerTemplate: {size: 4000000000}}
";
    let output = with_input(&["mutate", "-"], group);
    assert!(text(&output.stderr).contains("spec.leaderWorkerTemplate.size: it makes 8000000000000 pods"), "{output:?}");
    let cliques = "
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: g}
spec:
  replicas: 3
  template:
    cliques: [{name: a, spec: {replicas: 2}}, {name: b, spec: {replicas: 2000000}}]
    podCliqueScalingGroups: [{name: s, replicas: 1000, cliqueNames: [b]}]
";
    let output = with_input(&["mutate", "-"], cliques);
    let expected = "spec.template.cliques[1].spec.replicas: it makes 6000000006 pods";
    assert!(text(&output.stderr).contains(expected), "{output:?}");
}
