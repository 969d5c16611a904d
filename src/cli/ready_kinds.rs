//! `--ready-kinds`: kinds whose objects `readyWhen` may name.

use crate::api::ObjectKind;
use crate::cli::rights::{Right, Scope};
use crate::model::object_name::{label_fault, subdomain_fault};

/// Name of the flag.
pub const FLAG: &str = "--ready-kinds";

/// Reads a kind as `Job=jobs.v1.batch`: the kind, and the resource with its version and API group. What is read lives as long as
/// the process, which reads its flags once.
pub fn parse(text: &str) -> Result<ObjectKind, String> {
    let must = || format!("must be KIND=RESOURCE.VERSION.GROUP, such as Job=jobs.v1.batch, and is {text:?}");
    let (kind, resource) = text.split_once('=').ok_or_else(must)?;
    let mut parts = resource.splitn(3, '.');
    let (plural, version) = (parts.next().unwrap_or_default(), parts.next().ok_or_else(must)?);
    let group = parts.next().unwrap_or_default();
    let is_kind = kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.chars().all(|letter| letter.is_ascii_alphanumeric());
    let is_resource = [plural, version].iter().all(|part| label_fault(part).is_none());
    if !is_kind || !is_resource || (!group.is_empty() && subdomain_fault(group).is_some()) {
        return Err(must());
    }
    if (group, plural) == ("", "secrets") {
        return Err("a Secret has no conditions, and rolegate reads none".to_owned());
    }
    let lasting = |part: &str| -> &'static str { part.to_owned().leak() };
    Ok(ObjectKind {
        group: lasting(group),
        version: lasting(version),
        kind: lasting(kind),
        plural: lasting(plural),
        namespaced: true,
    })
}

/// Returns a kind as the flag takes it.
pub fn text(kind: ObjectKind) -> String {
    let ObjectKind { group, version, kind, plural, .. } = kind;
    if group.is_empty() { format!("{kind}={plural}.{version}") } else { format!("{kind}={plural}.{version}.{group}") }
}

/// Returns the right to watch a kind.
pub fn right(kind: ObjectKind) -> Right {
    Right {
        groups: vec![kind.group].leak(),
        resources: vec![kind.plural].leak(),
        verbs: &["list", "watch"],
        scope: Scope::Cluster,
        why: "Conditions of objects that segments and steps of rollouts wait for.",
    }
}

/// Returns the kinds in arguments of `serve`: in one argument, or in the one after the flag.
pub fn given<'a>(arguments: impl Iterator<Item = &'a String>) -> Vec<ObjectKind> {
    let (mut all, mut is_next) = (Vec::new(), false);
    for argument in arguments {
        let after = argument.strip_prefix(FLAG).and_then(|rest| rest.strip_prefix('='));
        let words = if is_next { Some(argument.as_str()) } else { after };
        is_next = argument == FLAG;
        all.extend(words.into_iter().flat_map(|words| words.split(',')).filter_map(|word| parse(word).ok()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_as_it_is_read() {
        for kind in ["Job=jobs.v1.batch", "Pod=pods.v1", "InferencePool=inferencepools.v1.inference.networking.k8s.io"]
        {
            assert_eq!(text(parse(kind).unwrap()), kind);
        }
        let job = parse("Job=jobs.v1.batch").unwrap();
        assert_eq!((job.group, job.version, job.kind, job.plural), ("batch", "v1", "Job", "jobs"));
    }

    #[test]
    fn what_names_no_kind_is_refused() {
        for text in ["Job", "jobs.v1.batch", "Job=jobs", "job=jobs.v1.batch", "Job=Jobs.v1.batch", "=.."] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("Secret=secrets.v1").is_err());
    }

    #[test]
    fn kinds_are_found_in_arguments() {
        let found = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            given(arguments.iter()).into_iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(
            found(&["serve", "--ready-kinds=Job=jobs.v1.batch,Pod=pods.v1"]),
            ["Job=jobs.v1.batch", "Pod=pods.v1"]
        );
        assert_eq!(found(&["--ready-kinds", "Job=jobs.v1.batch", "--strict"]), ["Job=jobs.v1.batch"]);
        assert_eq!(found(&["serve", "--strict"]), [""; 0]);
    }
}
