//! `rolegate mutate`, as users run it: its formats, and messages about unreadable input.

use serde_json::{Value, json};

use crate::answers::{fed, ran, ran_with};

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

#[test]
fn yaml_is_the_default_away_from_a_terminal() {
    let output = fed("mutate -", POD);
    assert_eq!(output.code, Some(0));
    let found: Value = serde_saphyr::from_str(&output.out).expect("output is YAML");
    let mut expected: Value = serde_saphyr::from_str(POD).expect("it is YAML");
    expected["metadata"]["annotations"] = json!({ "rolegate.dev/born-as": "pd/prefill", "rolegate.dev/held-by": "pd" });
    expected["spec"]["schedulingGates"] = json!([{ "name": "rolegate.dev/hold" }]);
    assert_eq!(found, expected);
    let two = fed("mutate - -o yaml", &format!("{POD}---{POD}"));
    assert_eq!(two.out.matches("---\n").count(), 1);
}

#[test]
fn json_is_a_list_and_a_patch_says_whose_it_is() {
    let list = fed("mutate - -o json", POD).json();
    assert_eq!((&list["apiVersion"], &list["kind"]), (&json!("v1"), &json!("List")));
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    let patches = fed("mutate - -o patch", POD).json();
    let object = &patches["objects"][0];
    assert_eq!(object["patch"][0]["op"], "add");
    let keys: Vec<_> = object.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["kind", "name", "namespace", "patch", "warnings"]);
    assert_eq!((&object["kind"], &object["namespace"], &object["name"]), (&json!("Pod"), &json!("ns"), &json!("p-0")));
}

#[test]
fn a_diff_shows_what_is_added_in_colour_if_asked() {
    let plain = fed("mutate - -o diff", POD).out;
    assert!(plain.starts_with("Pod ns/p-0\n"), "{plain}");
    assert!(plain.contains("+   schedulingGates:\n+   - name: rolegate.dev/hold\n"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let coloured = fed("mutate - -o diff --color always", POD).out;
    assert!(coloured.contains("\u{1b}[32m+   schedulingGates:\u{1b}[0m"), "{coloured}");
    let nothing = fed("mutate - -o diff", &POD.replace("rolegate.dev", "x")).out;
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
    let mutated = |pod: &str, more: &str| {
        let list = fed(&format!("mutate - -o json {more}"), &format!("{GROUP}---{pod}")).json();
        list["items"].as_array().expect("a list").iter().find(|item| item["kind"] == "Pod").expect("a pod").clone()
    };
    let labels = mutated(&pod, "--segment-label example.com/segment")["metadata"]["labels"].clone();
    assert_eq!((&labels["rolegate.dev/segment"], &labels["example.com/segment"]), (&json!("1"), &json!("1")));
    assert_eq!(mutated(&pod, "")["metadata"]["labels"]["example.com/segment"], Value::Null);
    let output = ran_with(".", "mutate - --segment-label", &["no label"]);
    assert!(output.code == Some(2) && output.err.contains("--segment-label"), "{output:?}");
    let stranger = pod.replace("role: prefill", "role: other");
    let gates = |more: &str| mutated(&stranger, more)["spec"]["schedulingGates"].clone();
    assert_eq!(gates(""), json!([{ "name": "rolegate.dev/hold" }]));
    assert_eq!(gates("--unknown-role=pass"), Value::Null);
}

#[test]
fn what_cannot_be_read_ends_with_2_and_the_rest_is_shown() {
    assert_eq!(["mutate /nowhere.yaml", "mutate"].map(|line| ran(".", line).code), [Some(2); 2]);
    let broken = fed("mutate - -o json", &format!("{POD}---\na: [\n"));
    assert!(broken.code == Some(2) && broken.err.starts_with("-:"), "{broken:?}");
    let shapeless = fed("mutate - -o patch", &format!("{POD}---\n{}", POD.replace("[{name: main", "[7, {name: main")));
    assert!(shapeless.code == Some(2) && shapeless.err.contains("spec.containers[0]"), "{shapeless:?}");
    assert_eq!(shapeless.out.matches("\"kind\": \"Pod\"").count(), 1, "{shapeless:?}");
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
    let output = fed("mutate - -o patch", &format!("{pods}---{group}"));
    let expected = "warning: Pod ns/p-0 and 1 more: role \"prefill\" is not in group \"pd\": the pod is held until the group has it\n";
    assert_eq!((&*output.err, output.code), (expected, Some(0)));
}

#[test]
fn more_pods_than_any_cluster_has_are_not_made() {
    let set = |replicas: &str| {
        format!("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: s}}\nspec: {{replicas: {replicas}}}\n")
    };
    let output = fed("mutate - -o json", &format!("{POD}---\n{}", set("4000000000")));
    let expected =
        "-:11:1: unreadable: StatefulSet \"s\": spec.replicas: it makes 4000000000 pods, and there is room for 99999\n";
    assert_eq!((&*output.err, output.code), (expected, Some(2)));
    assert_eq!(output.json()["items"].as_array().map(Vec::len), Some(1), "the rest is shown");
    let group = "
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: l}
spec: {replicas: 2000, leaderWorkerTemplate: {size: 4000000000}}
";
    let output = fed("mutate -", group);
    assert!(output.err.contains("spec.leaderWorkerTemplate.size: it makes 8000000000000 pods"), "{output:?}");
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
    let output = fed("mutate -", cliques);
    let expected = "spec.template.cliques[1].spec.replicas: it makes 6000000006 pods";
    assert!(output.err.contains(expected), "{output:?}");
}
