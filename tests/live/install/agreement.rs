//! `rolegate manifests`, kustomize and the Helm chart say the same, and the API server takes every word of it.

use std::process::Command;

use crate::common::account::manifests;
use crate::common::control_plane::tool;
use crate::common::prelude::*;
use crate::install::render::{KEEP, Objects, chart, copy, first, helm, kustomize, objects, root, template, try_helm};
use crate::install::support::{DRY, DRY_RUN};

fn same(what: &str, found: &Objects, expected: &Objects) {
    let keys = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(found), keys(expected), "{what}");
    for (key, object) in expected {
        assert_eq!(&found[key], object, "{what}: {key:?}");
    }
}

/// Folder of kustomize, the same by the program, the same by Helm.
pub const WAYS: &[(&str, &[&str], &[&str])] = &[
    ("deploy/base", &[], &[]),
    ("deploy/cert-manager", &["--certificates", "cert-manager"], &["--set", "certificates=cert-manager"]),
    (
        "deploy/ha",
        &["--replicas", "3", "--spread", "required"],
        &["--set", "replicas=3", "--set", "whenUnsatisfiable=DoNotSchedule"],
    ),
    ("deploy/host-network", &["--host-network"], &["--set", "hostNetwork=true"]),
    (
        "deploy/opt-in",
        &["--namespace-selector", "rolegate.dev/serve"],
        &["--set-json", r#"namespaceSelector={"matchExpressions":[{"key":"rolegate.dev/serve","operator":"Exists"}]}"#],
    ),
];

/// What Helm renders, but for the namespace, which it makes by a flag, if at all, and for what is for Helm alone.
fn of_helm(arguments: &[&str]) -> Objects {
    let mut found = objects(&template(arguments));
    for (_, definition) in found.iter_mut().filter(|([kind, ..], _)| kind == "CustomResourceDefinition") {
        let metadata = definition["metadata"].as_object_mut().unwrap();
        assert_eq!(metadata.remove("annotations").unwrap(), json!({ KEEP: "keep" }));
    }
    found
}

fn by_program(arguments: &[&str]) -> Objects {
    let mut expected = objects(&manifests(arguments));
    assert!(expected.remove(&["Namespace".to_owned(), String::new(), SYSTEM.to_owned()]).is_some());
    expected
}

#[test]
fn three_ways_to_install_are_one() {
    for (folder, arguments, by_helm) in WAYS {
        same(folder, &objects(&kustomize(&root().join(folder))), &objects(&manifests(arguments)));
        same(&format!("{by_helm:?}"), &of_helm(by_helm), &by_program(arguments));
    }
}

#[test]
fn what_is_chosen_reaches_the_pods_in_every_way() {
    let selector =
        r#"{"matchLabels":{"team":"llm"},"matchExpressions":[{"key":"env","operator":"NotIn","values":["a","b"]}]}"#;
    let arguments = "--image example.invalid/gate:9 --service-monitor --allow scale,recovery --namespaces a,b \
                     --webhook-port 10443 --admin-port 10080 --log-format text --label team=serving --label tier=0 \
                     --mode observe --rule segment-ratio=off,segment-remainder=deny --namespace-selector SELECTOR \
                     --without network-policy,disruption-budget,user-ids,aggregated-roles,kai-pods --listen-address 10.0.0.1 \
                     --priority-class system-node-critical --name gate -- --strict --log=debug";
    let arguments = arguments.split_whitespace().map(|word| if word == "SELECTOR" { selector } else { word });
    let arguments: Vec<_> = arguments.collect();
    let values = "image.repository=example.invalid/gate serviceMonitor=true allow={scale,recovery} \
                  namespaces={a,b} webhookPort=10443 adminPort=10080 logFormat=text commonLabels.team=serving \
                  networkPolicy.enabled=false podDisruptionBudget.enabled=false fullnameOverride=gate mode=observe \
                  listenAddress=10.0.0.1 priorityClassName=system-node-critical aggregatedRoles.enabled=false kaiPods.enabled=false \
                  podSecurityContext.runAsUser=null podSecurityContext.runAsGroup=null podSecurityContext.fsGroup=null \
                  rules={segment-ratio=off,segment-remainder=deny} extraArguments={--strict,--log=debug}";
    let mut values: Vec<_> = values.split_whitespace().flat_map(|value| ["--set", value]).collect();
    values.extend(["--set-string", "commonLabels.tier=0,image.tag=9", "--set-json"]);
    // Helm sorts keys.
    values.push(
        r#"namespaceSelector={"matchExpressions":[{"key":"env","operator":"NotIn","values":["a","b"]}],"matchLabels":{"team":"llm"}}"#,
    );
    let mut found = of_helm(&values);
    for (_, definition) in found.iter_mut().filter(|([kind, ..], _)| kind == "CustomResourceDefinition") {
        // The program prints them as they are.
        assert_eq!(definition["metadata"]["labels"]["team"], "serving");
        definition["metadata"].as_object_mut().unwrap().remove("labels");
    }
    same("helm", &found, &by_program(&arguments));
    let deployment = &found[&["Deployment".to_owned(), SYSTEM.to_owned(), "gate".to_owned()]];
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "example.invalid/gate:9");
    let arguments: Vec<_> = container["args"].as_array().unwrap().iter().rev().take(2).collect();
    assert_eq!(arguments, ["--log=debug", "--strict"]);
}

/// What the chart writes by hand is in the program as Helm renders it.
#[test]
fn the_program_knows_what_the_chart_says() {
    let output = Command::new(root().join("deploy/render.sh")).arg(tool("helm")).output().unwrap();
    let stored = std::fs::read_to_string(root().join("deploy/rendered.yaml")).unwrap();
    assert!(String::from_utf8(output.stdout).unwrap() == stored, "deploy/rendered.yaml is old: run `make docs`");
}

/// All files below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// A role without rules or a policy fewer would be installed without a word.
#[test]
fn a_file_of_the_tables_that_is_empty_or_not_there_fails_the_rendering() {
    let folder = scratch_dir().join("chart-without");
    copy(Path::new(&chart()), &folder);
    let everything = ["policies.enabled=true,recreateMisStamped=true", "allow={scale,recovery,provision}"];
    let everything = everything.into_iter().flat_map(|value| ["--set", value]);
    let selector = ["--set-json", r#"namespaceSelector={"matchLabels":{"a":"b"}}"#];
    let chart = folder.to_str().unwrap();
    let arguments: Vec<_> = ["template", "rolegate", chart].into_iter().chain(everything).chain(selector).collect();
    helm(&arguments);
    let files = below(&folder.join("generated"));
    assert!(files.len() > 40, "{files:?}");
    for (number, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(file).unwrap();
        if number % 2 == 0 {
            std::fs::remove_file(file).unwrap();
        } else {
            std::fs::write(file, "# Nothing.\n").unwrap();
        }
        let output = try_helm(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains("not there, or empty"), "{}: {errors}", file.display());
        std::fs::write(file, text).unwrap();
    }
    // As it is packed, it has all of them.
    let packed = scratch_dir().join("packed");
    helm(&["package", chart, "--destination", packed.to_str().unwrap()]);
    let archive = packed.join(format!("rolegate-{}.tgz", env!("CARGO_PKG_VERSION")));
    let of_archive: Vec<_> =
        arguments.iter().map(|one| if *one == chart { archive.to_str().unwrap() } else { *one }).collect();
    assert!(helm(&of_archive) == helm(&arguments));
}

/// What Helm makes for a test or an uninstall only.
#[test]
fn the_hooks_of_the_chart_are_parts_of_the_program() {
    let chart = chart();
    let all = ["template", "rolegate", &chart, "--namespace", SYSTEM, "--set", "test.tryIn=team"];
    let hook = |object: &Value| object["metadata"]["annotations"]["helm.sh/hook"].clone();
    for (part, of_hook, more) in [("doctor", "test", &["--try-in", "team"][..]), ("uninstall", "pre-delete", &[])] {
        let expected = objects(&manifests(&[&["--part", part], more].concat()));
        let mut found = objects(&helm(&all));
        found.retain(|_, object| hook(object) == of_hook);
        for object in found.values_mut() {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        same(part, &found, &expected);
    }
    let none = ["--set", "test.enabled=false,uninstall.enabled=false"];
    let without = objects(&helm(&[&all[..], &none].concat()));
    assert!(without.values().all(|object| hook(object).is_null()));
    let later = objects(&helm(&[&all[..], &["--set", "uninstall.deadlineSeconds=7"]].concat()));
    assert_eq!(first(&later, "Job")["spec"]["activeDeadlineSeconds"], 7);
}

/// The policies that a version accepts, in its words, with the names of the installation.
#[test]
fn the_chart_writes_policies_for_the_version_of_the_cluster() {
    let [named, enabled] = ["fullnameOverride=gate,commonLabels.team=serving", "policies.enabled=true"];
    let mut counts = Vec::new();
    for version in ["1.30.14", "1.32.1", "1.33.0", "1.34.4", "1.35.2-gke.100", "1.36.3", "1.37.0"] {
        let of_version =
            |more: &[&str]| objects(&template(&[&["--kube-version", version, "--set", named], more].concat()));
        let without = of_version(&[]);
        let mut found = of_version(&["--set", enabled]);
        found.retain(|key, _| !without.contains_key(key));
        let expected = ["--part", "policies", "--kubernetes", version, "--name", "gate", "--label", "team=serving"];
        same(version, &found, &objects(&manifests(&expected)));
        counts.push(found.len());
    }
    // A role and its binding, and two objects of each policy: the guard, with five twins, with the hold.
    assert_eq!(counts, [4, 4, 14, 14, 14, 16, 16]);
}

#[test]
fn the_api_server_accepts_every_field_of_every_way() {
    for (folder, arguments, by_helm) in WAYS {
        for yaml in [manifests(arguments), kustomize(&root().join(folder)), template(by_helm)] {
            let done = DRY.get().must(DRY_RUN, &yaml);
            assert_eq!(done.lines().count(), objects(&yaml).len(), "{folder}: {done}");
        }
    }
    // It would have told: a misspelt field is an error.
    let misspelt = manifests(&["--part", "workload"]).replace("maxUnavailable", "maxUnavailible");
    assert!(!DRY.get().kubectl(DRY_RUN, &misspelt).status.success());
}
