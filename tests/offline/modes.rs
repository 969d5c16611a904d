//! Modes and weights of rules, without a cluster.

use serde_json::Value;

use crate::answers::{folder, ran, ran_with};

/// A group with a partial segment, which is a warning, and two sizes of one role, which is an error.
const WRONG: &str = "\
apiVersion: workloads.x-k8s.io/v1alpha1
kind: RoleBasedGroup
metadata: {name: llm, namespace: prod}
spec:
  roles: [{name: prefill, replicas: 99}]
  coordination:
    - {strategy: {segmentPlacement: {segmentSize: {prefill: 10}}}}
    - {strategy: {segmentPlacement: {segmentSize: {prefill: 3}}}}
";

/// Returns exit code, errors and warnings of `check`, by rule.
fn check(files: &[(&str, &str)], arguments: &[&str]) -> (i32, Vec<String>, Vec<String>) {
    let ran = ran_with(folder(files), "check -o json .", arguments);
    let found = ran.json();
    let rules = |list: &str| {
        let objects = found["objects"].as_array().unwrap().iter();
        let found = objects.flat_map(|object| object[list].as_array().unwrap());
        found.map(|one| one["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    (ran.code.unwrap(), rules("violations"), rules("warnings"))
}

fn all(rules: &[&str]) -> Vec<String> {
    rules.iter().map(|rule| (*rule).to_owned()).collect()
}

const CONFLICT: &str = "segment-size-conflict";
const REMAINDER: &str = "segment-remainder";

#[test]
fn check_judges_in_the_mode_and_by_the_weights_that_it_is_told() {
    let check = |arguments: &[&str]| check(&[("a.yaml", WRONG)], arguments);
    assert_eq!(check(&[]), (1, all(&[CONFLICT]), all(&[REMAINDER])));
    assert_eq!(check(&["--mode", "warn"]), (0, all(&[]), all(&[REMAINDER, CONFLICT])));
    assert_eq!(check(&["--mode", "observe"]), (0, all(&[]), all(&[])));
    assert_eq!(check(&["--rule", "segment-size-conflict=warn"]), (0, all(&[]), all(&[REMAINDER, CONFLICT])));
    assert_eq!(check(&["--rule", "segment-size-conflict=off"]), (0, all(&[]), all(&[REMAINDER])));
    let both = ["--rule", "segment-remainder=deny", "--rule=segment-size-conflict=off"];
    assert_eq!(check(&both), (1, all(&[REMAINDER]), all(&[])));
    assert_eq!(check(&["--mode=warn", "--rule=segment-remainder=deny", "--fail-on-warning"]).0, 1);
}

#[test]
fn a_namespace_among_the_files_says_its_mode() {
    let namespace = |mode: &str| {
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: prod, labels: {{rolegate.dev/mode: {mode}}}}}\n")
    };
    let check = |mode: &str, arguments: &[&str]| check(&[("a.yaml", WRONG), ("b.yaml", &namespace(mode))], arguments);
    assert_eq!(check("warn", &[]).0, 0);
    assert_eq!(check("enforce", &["--mode", "observe"]).0, 1);
    assert_eq!(check("dryrun", &[]).0, 1);
}

#[test]
fn what_is_no_rule_or_cannot_be_off_ends_it_at_the_start() {
    let folder = folder(&[]);
    for (rule, says) in [
        ("segment-size-conflit=off", "did you mean \"segment-size-conflict\"?"),
        ("group-bounds=off", "rule \"group-bounds\" can only be deny: it bounds what one object may cost"),
        ("pod-group-rights=warn", "can only be deny"),
        ("segment-ratio=maybe", "must be ID=deny, ID=warn or ID=off"),
        ("segment-ratio", "must be ID=deny, ID=warn or ID=off"),
        ("xyz=off", "there is no rule \"xyz\"; docs/rules.md lists them"),
    ] {
        for command in ["serve", "check", "manifests"] {
            let ran = ran(&folder, &format!("{command} --rule {rule}"));
            assert!(ran.code == Some(2) && ran.err.contains(says), "{command} {rule}: {ran:?}");
        }
    }
    let twice = ran(&folder, "manifests --rule segment-ratio=off --rule segment-ratio=warn");
    assert!(twice.code != Some(0) && twice.err.contains("is set twice"), "{twice:?}");
}

#[test]
fn what_has_no_effect_says_so() {
    let folder = folder(&[("a.yaml", WRONG)]);
    let said = ran(folder, "check a.yaml --mode=warn --rule=segment-remainder=deny").err;
    assert!(said.contains("deny of --rule has an effect only where a namespace's label says enforce"), "{said}");
}

#[test]
fn webhooks_of_who_only_observes_fail_open_and_a_selector_leaves_us_out_all_the_same() {
    let print = |arguments: &[&str]| {
        let printed = ran_with(".", "manifests --part webhooks", arguments).out;
        let yaml: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
        yaml.into_iter().flat_map(|one| one["webhooks"].as_array().unwrap().clone()).collect::<Vec<_>>()
    };
    for (mode, policy) in [("enforce", "Fail"), ("warn", "Fail"), ("observe", "Ignore")] {
        assert!(print(&["--mode", mode]).iter().all(|webhook| webhook["failurePolicy"] == policy), "{mode}");
    }
    for webhook in print(&["--namespace-selector", "team in (a, b),!legacy"]) {
        let expressions = webhook["namespaceSelector"]["matchExpressions"].as_array().unwrap().iter();
        let word = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
        let all = expressions.map(|one| format!("{} {} {}", word(one, "key"), word(one, "operator"), one["values"]));
        let wanted = [
            "kubernetes.io/metadata.name NotIn [\"kube-system\",\"rolegate-system\"]",
            "rolegate.dev/ignore DoesNotExist null",
            "team In [\"a\",\"b\"]",
            "legacy DoesNotExist null",
        ];
        assert_eq!(all.collect::<Vec<_>>(), wanted);
    }
}
