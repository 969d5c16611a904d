//! Rules on the names in pods.

use crate::api::Pod;
use crate::model::FieldPath;
use crate::model::names::{KAI_POD_GROUP, LABEL_SCHEMES};
use crate::model::object_name::subdomain_fault;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Requires that a pod names a possible group: otherwise it would be held for ever. Its PodGroup is left to the scheduler.
pub(super) fn objects(pod: &Pod, _: &World, report: &mut Report) {
    let metadata = FieldPath::new("metadata");
    let named =
        |(key, _): &(&'static str, &str)| Some((*key, pod.metadata.label(key).filter(|name| !name.is_empty())?));
    if let Some((key, name)) = LABEL_SCHEMES.iter().find_map(named)
        && let Some(fault) = subdomain_fault(name)
    {
        let detail = format!("no group can have this name: {fault}");
        report.error(name, metadata.child("labels").key(key), Cause::Invalid, quoted(name), detail);
    }
    let pod_group = pod.metadata.annotation(KAI_POD_GROUP).filter(|name| !name.is_empty());
    if let Some((name, fault)) = pod_group.and_then(|name| Some((name, subdomain_fault(name)?))) {
        let detail = format!("no PodGroup can have this name: {fault}");
        report.warn(name, metadata.child("annotations").key(KAI_POD_GROUP), Cause::Invalid, quoted(name), detail);
    }
}
