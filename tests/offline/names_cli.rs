//! Options with names of objects: a name that no object can have is refused before anything is done with it.

use std::collections::BTreeSet;
use std::path::Path;

use rolegate::cli::command;

use crate::answers::rolegate;

/// Options whose values are names of objects, or of a domain.
const NAMES: &[&str] = &["namespace", "namespaces", "try-in", "name", "group", "cluster-domain"];

#[test]
fn a_name_that_no_object_can_have_is_refused_with_its_flag() {
    let mut flags = BTreeSet::new();
    // The names of test cases are free text.
    for command in command().get_subcommands().filter(|command| command.get_name() != "test") {
        for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
            if !NAMES.contains(&flag) {
                continue;
            }
            flags.insert(flag.to_owned());
            for wrong in ["A b", "", "a/b", "a..b", "-a"] {
                let output = rolegate(Path::new("."), command.get_name(), &[&format!("--{flag}={wrong}")]);
                let told = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(2), "{} --{flag}={wrong}: {told}", command.get_name());
                assert!(
                    told.contains(&format!("'--{flag} <")) && told.contains("must consist of lower case alphanumeric"),
                    "{} --{flag}={wrong}: {told}",
                    command.get_name()
                );
                assert!(output.stdout.is_empty(), "{} --{flag}={wrong} prints", command.get_name());
            }
        }
    }
    assert_eq!(flags, NAMES.iter().map(ToString::to_string).collect());
}

#[test]
fn a_namespace_is_one_label_and_a_domain_has_several() {
    let told = |arguments: &[&str]| {
        let output = rolegate(Path::new("."), "manifests", arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = told(&["--namespace", "a.b"]);
    assert!(code == Some(2) && error.contains("RFC 1123 label"), "{error}");
    assert_eq!(told(&["--namespaces", "team-a,team-b", "--part", "webhooks"]), (Some(0), String::new()));
    let output = rolegate(Path::new("."), "mutate", &["--cluster-domain", "cluster.example.com", "absent.yaml"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("absent.yaml") && !error.contains("cluster-domain"), "{error}");
}
