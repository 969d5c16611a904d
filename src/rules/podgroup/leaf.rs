//! Pods of a PodGroup with subgroups.

use crate::api::Pod;
use crate::model::names::{KAI_POD_GROUP, KAI_SUBGROUP};
use crate::model::{FieldPath, GangTree, identify};
use crate::rules::hint::{listed, with_hint};
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// A pod of a known PodGroup with subgroups is in exactly one existing leaf. An unknown PodGroup may come later; one of
/// another namespace is not the pod's.
pub(super) fn pods(pod: &Pod, world: &World, report: &mut Report) {
    let Some(name) = pod.metadata.annotation(KAI_POD_GROUP) else { return };
    let namespace = pod.metadata.namespace();
    let Some(tree) = world.pod_group(namespace, name).filter(|tree| !tree.gangs.is_empty()) else { return };
    let path = FieldPath::new("metadata").child("labels").key(KAI_SUBGROUP);
    let leaves = listed(tree.leaves().map(|gang| gang.name.as_str()));
    match pod.metadata.label(KAI_SUBGROUP).filter(|label| !label.is_empty()) {
        None if derived(pod, namespace, tree) => {}
        None => {
            let detail = format!("must name a leaf of PodGroup {name:?}: {leaves}");
            report.error("", path, Cause::Required, None, detail);
        }
        Some(label) => match tree.gang(label) {
            Some(gang) if gang.is_leaf() => {}
            Some(_) => {
                let detail = format!("has subgroups of its own; must name a leaf of PodGroup {name:?}: {leaves}");
                report.error(label, path, Cause::Invalid, quoted(label), detail);
            }
            None => {
                let must = format!("must name a leaf of PodGroup {name:?}: {leaves}");
                let detail = with_hint(&must, label, tree.leaves().map(|gang| gang.name.as_str()));
                report.error(label, path, Cause::NotFound, quoted(label), detail);
            }
        },
    }
}

/// True when the pod's role tells its leaf: the mutation writes the label.
fn derived(pod: &Pod, namespace: &str, tree: &GangTree) -> bool {
    identify(pod, namespace, &())
        .is_some_and(|identity| identity.role.is_some_and(|role| tree.leaf_for(&role, identity.ordinal).is_some()))
}
