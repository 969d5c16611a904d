//! Kinds whose objects `readyWhen` may name, as `--ready-kinds` and the Lease write them.

use super::object_name::{label_fault, subdomain_fault};
use crate::api::ObjectKind;

/// Reads a kind as `Job=jobs.v1.batch`: the kind, and the resource with its version and API group. What is read lives as long as
/// the process, which reads its flags once.
///
/// # Errors
///
/// When the text names no kind, or one without conditions.
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

/// Returns kinds in one text.
pub fn list(kinds: &[ObjectKind]) -> String {
    kinds.iter().map(|kind| text(*kind)).collect::<Vec<_>>().join(",")
}

/// Reads a text of [`list`]; what names no kind is left out.
pub fn parse_list(text: &str) -> Vec<ObjectKind> {
    text.split(',').filter_map(|kind| parse(kind).ok()).collect()
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
    fn a_list_is_read_as_it_is_written() {
        let kinds = "Job=jobs.v1.batch,Pod=pods.v1";
        assert_eq!(list(&parse_list(kinds)), kinds);
        assert_eq!((parse_list(""), list(&[])), (vec![], String::new()));
    }
}
