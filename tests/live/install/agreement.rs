//! `rolegate manifests`, kustomize and the Helm chart say the same, and the API server takes every word of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::ControlPlane;
use crate::common::account::manifests;
use crate::common::control_plane::{SYSTEM, rig_binary, tool};
use crate::install::support::define;

/// By kind, namespace and name.
type Objects = BTreeMap<[String; 3], Value>;

fn objects(yaml: &str) -> Objects {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let key = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"])]
    };
    let count = documents.len();
    let objects: Objects = documents.into_iter().map(|object| (key(&object), object)).collect();
    assert!(count > 10 && objects.len() == count, "{count} documents: {:?}", objects.keys());
    objects
}

fn same(what: &str, found: &Objects, expected: &Objects) {
    let keys = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(found), keys(expected), "{what}");
    for (key, object) in expected {
        assert_eq!(&found[key], object, "{what}: {key:?}");
    }
}

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

fn helm(arguments: &[&str]) -> String {
    let output = Command::new(tool("helm")).args(arguments).env("HELM_PLUGINS", "/nonexistent").output().unwrap();
    assert!(output.status.success(), "helm {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn template(more: &[&str]) -> String {
    let chart = root().join("deploy/chart");
    helm(&[&["template", "rolegate", chart.to_str().unwrap(), "--namespace", SYSTEM, "--include-crds"], more].concat())
}

fn kustomize(folder: &Path) -> String {
    let output = Command::new(rig_binary()).args(["kubectl", "kustomize"]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Folder of kustomize, the same by the program, the same by Helm.
const WAYS: &[(&str, &[&str], &[&str])] = &[
    ("deploy/base", &[], &[]),
    ("deploy/cert-manager", &["--certificates", "cert-manager"], &["--set", "certificates=cert-manager"]),
    (
        "deploy/ha",
        &["--replicas", "3", "--spread", "required"],
        &["--set", "replicas=3", "--set", "whenUnsatisfiable=DoNotSchedule"],
    ),
    (
        "deploy/opt-in",
        &["--namespace-selector", "rolegate.dev/serve"],
        &["--set-json", r#"namespaceSelector={"matchExpressions":[{"key":"rolegate.dev/serve","operator":"Exists"}]}"#],
    ),
];

#[test]
fn three_ways_to_install_are_one() {
    for (folder, by_program, by_helm) in WAYS {
        let mut expected = objects(&manifests(by_program));
        same(folder, &objects(&kustomize(&root().join(folder))), &expected);
        // Helm makes the namespace by a flag, if at all.
        assert!(expected.remove(&["Namespace".to_owned(), String::new(), SYSTEM.to_owned()]).is_some());
        same(&format!("{by_helm:?}"), &objects(&template(by_helm)), &expected);
    }
}

#[test]
fn what_is_chosen_reaches_the_pods_in_every_way() {
    let by_program = [
        "--image",
        "example.invalid/gate:9",
        "--service-monitor",
        "--allow",
        "scale,recovery",
        "--mode",
        "observe",
        "--rule",
        "segment-ratio=off,segment-remainder=deny",
        "--namespace-selector",
        r#"{"matchLabels":{"team":"llm"},"matchExpressions":[{"key":"env","operator":"NotIn","values":["a","b"]}]}"#,
        "--",
        "--strict",
        "--log=debug",
    ];
    let mut expected = objects(&manifests(&by_program));
    expected.remove(&["Namespace".to_owned(), String::new(), SYSTEM.to_owned()]);
    let values = [
        "--set",
        "image.repository=example.invalid/gate",
        "--set",
        "image.tag=9",
        "--set",
        "serviceMonitor=true",
        "--set",
        "allow={scale,recovery}",
        "--set",
        "mode=observe",
        "--set",
        "rules={segment-ratio=off,segment-remainder=deny}",
        "--set-json",
        r#"namespaceSelector={"matchExpressions":[{"key":"env","operator":"NotIn","values":["a","b"]}],"matchLabels":{"team":"llm"}}"#,
        "--set",
        "extraArguments={--strict,--log=debug}",
    ];
    let found = objects(&template(&values));
    same("helm", &found, &expected);
    let deployment = &found[&["Deployment".to_owned(), SYSTEM.to_owned(), "rolegate".to_owned()]];
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "example.invalid/gate:9");
    let arguments: Vec<_> = container["args"].as_array().unwrap().iter().rev().take(2).collect();
    assert_eq!(arguments, ["--log=debug", "--strict"]);
}

#[test]
fn the_chart_is_sound_and_refuses_values_that_it_does_not_know() {
    let chart = root().join("deploy/chart");
    helm(&["lint", "--strict", chart.to_str().unwrap()]);
    for wrong in ["certificates=none", "replicas=0", "replica=3", "allow={scaling}", "mode=dryrun"] {
        let helm = rig_binary().with_file_name("helm");
        let output = Command::new(helm).arg("template").arg(&chart).args(["--set", wrong]).output().unwrap();
        assert!(!output.status.success(), "{wrong}");
    }
    // What only the chart offers.
    let values = ["--set", "nodeSelector.disk=ssd", "--set", "tolerations[0].operator=Exists"];
    let more = ["--set", "imagePullSecrets[0].name=pull", "--set", "priorityClassName=mine"];
    let found = objects(&template(&[values, more].concat()));
    let deployment = &found[&["Deployment".to_owned(), SYSTEM.to_owned(), "rolegate".to_owned()]];
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"]["disk"], "ssd");
    assert_eq!(pod["tolerations"][0]["operator"], "Exists");
    assert_eq!(pod["imagePullSecrets"][0]["name"], "pull");
    assert_eq!(pod["priorityClassName"], "mine");
}

#[test]
fn the_api_server_accepts_every_field_of_every_way() {
    let plane = ControlPlane::start_with("cert-manager", &[]);
    define(&plane);
    let dry_run = ["apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-f", "-"];
    for (folder, by_program, by_helm) in WAYS {
        for yaml in [manifests(by_program), kustomize(&root().join(folder)), template(by_helm)] {
            let done = plane.must(&dry_run, &yaml);
            assert_eq!(done.lines().count(), objects(&yaml).len(), "{folder}: {done}");
        }
    }
    // It would have told: a misspelt field is an error.
    let misspelt = manifests(&["--part", "workload"]).replace("maxUnavailable", "maxUnavailible");
    assert!(!plane.kubectl(&dry_run, &misspelt).status.success());
}
