//! Options with names of objects: a name that no object can have is refused before anything is done with it.

use std::collections::BTreeSet;

use rolegate::cli::command;

use crate::answers::{Ran, ran, ran_with};

/// Options whose values are names of objects, or of a domain.
const NAMES: &[&str] = &["namespace", "namespaces", "try-in", "name", "group", "cluster-domain"];

#[test]
fn a_name_that_no_object_can_have_is_refused_with_its_flag() {
    let mut flags = BTreeSet::new();
    for command in command().get_subcommands() {
        for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
            if !NAMES.contains(&flag) {
                continue;
            }
            flags.insert(flag.to_owned());
            for wrong in ["A b", "", "a/b", "a..b", "-a"] {
                let Ran { code, out, err } = ran_with(".", command.get_name(), &[&format!("--{flag}={wrong}")]);
                assert_eq!((code, &*out), (Some(2), ""), "{} --{flag}={wrong}: {err}", command.get_name());
                let is_told = err.contains(&format!("'--{flag} <"));
                let is_why = err.contains("must consist of lower case alphanumeric");
                assert!(is_told && is_why, "{} --{flag}={wrong}: {err}", command.get_name());
            }
        }
    }
    assert_eq!(flags, NAMES.iter().map(ToString::to_string).collect());
}

#[test]
fn a_namespace_is_one_label_and_a_domain_has_several() {
    let Ran { code, err, .. } = ran(".", "manifests --namespace a.b");
    assert!(code == Some(2) && err.contains("RFC 1123 label"), "{err}");
    let Ran { code, err, .. } = ran(".", "manifests --namespaces team-a,team-b --part webhooks");
    assert_eq!((code, &*err), (Some(0), ""));
    let error = ran(".", "mutate --cluster-domain cluster.example.com absent.yaml").err;
    assert!(error.contains("absent.yaml") && !error.contains("cluster-domain"), "{error}");
}
