//! Files of v1beta1: every command takes them for what they say, and speaks of them as they are written.

use std::path::Path;
use std::process::Command;

use rolegate::model::conversion::convert;
use serde_json::Value;

fn rolegate(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_rolegate")).args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// An example with its RoleCoordinations in v1beta1.
fn in_v1beta1(example: &str) -> String {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example)).unwrap();
    let mut converted = 0;
    let documents = text.split("\n---\n").map(|text| {
        let object: Value = serde_saphyr::from_str(text).unwrap();
        if object["kind"] != "RoleCoordination" {
            return text.to_owned();
        }
        converted += 1;
        serde_saphyr::to_string(&convert(object, "rolegate.dev/v1beta1").unwrap()).unwrap()
    });
    let all = documents.collect::<Vec<_>>().join("\n---\n");
    assert!(converted > 0, "{example}");
    all
}

#[test]
fn a_plan_of_a_file_in_v1beta1_is_that_of_the_same_in_v1alpha1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pd.yaml");
    std::fs::write(&file, in_v1beta1("pd.yaml")).unwrap();
    let file = file.to_str().unwrap();
    for command in [["plan", "-o", "json"], ["check", "-o", "json"]] {
        let (code, beta) = rolegate(&[&command[..], &[file]].concat());
        let (_, alpha) = rolegate(&[&command[..], &["examples/pd.yaml"]].concat());
        assert_eq!((code, beta.replace(file, "examples/pd.yaml")), (0, alpha));
    }
}

#[test]
fn what_is_wrong_is_said_with_the_path_and_the_line_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    let text = "apiVersion: rolegate.dev/v1beta1
kind: RoleCoordination
metadata: {name: pd}
spec:
  roles:
    - {name: prefill, replicas: 4}
  coordinations:
    - name: segments
      segmentPlacement:
        segmentSize: {prefill: 0}
      whenNoFit: hold
      segmentPlacment: {}
";
    std::fs::write(&file, text).unwrap();
    let (code, said) = rolegate(&["check", file.to_str().unwrap()]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("wrong.yaml:10:23: error: spec.coordinations[0].segmentPlacement.segmentSize[prefill]: "),
        "{said}"
    );
    assert!(said.contains("wrong.yaml:12:7: warning: spec.coordinations[0].segmentPlacment: no such field"), "{said}");
    // A file that mixes both is of neither.
    std::fs::write(&file, text.replace("segmentPlacment", "strategy")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rolegate")).args(["check", file.to_str().unwrap()]).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("spec.coordinations[0].strategy: is a field of the other version"), "{said}");
}

#[test]
fn definitions_of_both_versions_are_printed_where_that_is_chosen() {
    let (_, both) = rolegate(&["crds", "--serve", "v1beta1", "--name", "us", "--namespace", "ours"]);
    assert!(both.contains("name: v1beta1") && both.contains("strategy: Webhook") && both.contains("path: /convert"));
    assert!(!both.contains("cert-manager"));
    let of_part = ["manifests", "--part", "crds", "--serve", "v1beta1", "--name", "us", "--namespace", "ours"];
    assert_eq!(rolegate(&of_part).1, both);
    let (_, injected) = rolegate(&["crds", "--serve", "v1beta1", "--certificates", "cert-manager"]);
    assert!(injected.contains("cert-manager.io/inject-ca-from: rolegate-system/rolegate"));
    let rights = |more: &[&str]| rolegate(&[&["manifests", "--part", "rbac,containment"], more].concat()).1;
    let is_given = |printed: &str| printed.contains("rolecoordinations.rolegate.dev");
    assert!(is_given(&rights(&["--serve", "v1beta1"])) && !is_given(&rights(&[])));
    assert!(!is_given(&rights(&["--serve", "v1beta1", "--certificates", "cert-manager"])));
}
