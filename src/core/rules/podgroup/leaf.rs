//! Rules on pods of a PodGroup with subgroups.

use crate::api::Pod;
use crate::model::names::{KAI_POD_GROUP, KAI_SUBGROUP};
use crate::model::{FieldPath, GangTree, GroupKey, identify};
use crate::rules::names::listed;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Known, Need, Report, World};

/// Requires that a pod of a known PodGroup with subgroups is in exactly one existing leaf. An unknown PodGroup may come
/// later; a PodGroup of another namespace is not the pod's.
pub(super) fn pods(pod: &Pod, world: &World, report: &mut Report) {
    let Some(key) = pod_group(pod) else { return };
    let name = &*key.name;
    let tree = match world.pod_group(&key) {
        Known::Present(tree) if tree.gangs.is_empty() => return,
        Known::Present(tree) => tree,
        Known::Absent => return,
        Known::Unknown => {
            let path = FieldPath::annotation(KAI_POD_GROUP);
            return report.not_judged("", path, &Need::PodGroup(key));
        }
    };
    let path = FieldPath::new("metadata").child("labels").key(KAI_SUBGROUP);
    let leaves = listed(tree.leaves().map(|gang| gang.name.as_str()));
    match pod.metadata.label(KAI_SUBGROUP).filter(|label| !label.is_empty()) {
        None if derived(pod, tree) => {}
        None => {
            report.require("", path, format!("must name a leaf of PodGroup {name:?}: {leaves}"));
        }
        Some(label) => match tree.gang(label) {
            Some(gang) if gang.is_leaf() => {}
            Some(_) => {
                let detail = format!("has subgroups of its own; must name a leaf of PodGroup {name:?}: {leaves}");
                report.error(label, path, Cause::Invalid, quoted(label), detail);
            }
            None => {
                let must = format!("must name a leaf of PodGroup {name:?}: {leaves}");
                let detail = report.with_hint(&must, label, tree.leaves().map(|gang| gang.name.as_str()));
                report.error(label, path, Cause::NotFound, quoted(label), detail);
            }
        },
    }
}

pub(super) fn pod_group(pod: &Pod) -> Option<GroupKey> {
    let name = pod.metadata.annotation(KAI_POD_GROUP).filter(|name| !name.is_empty())?;
    Some(GroupKey::new(pod.metadata.namespace(), name))
}

/// Reports whether the pod's role determines its leaf: then the mutation sets the label.
fn derived(pod: &Pod, tree: &GangTree) -> bool {
    identify(pod, pod.metadata.namespace(), &())
        .is_some_and(|identity| identity.role.is_some_and(|role| tree.leaf_for(&role, identity.ordinal).is_some()))
}
