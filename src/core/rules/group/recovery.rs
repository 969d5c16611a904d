//! Rules of batches that are recreated when they lose a replica.

use crate::model::{Coordination, Group, Recovery};
use crate::rules::{Report, World};

fn recoveries(group: &Group) -> impl Iterator<Item = (&Coordination, &Recovery)> {
    group.batchings().filter_map(|(coordination, batching)| Some((coordination, batching.recovery.as_ref()?)))
}

/// Requires an author who may delete pods.
pub(super) fn recovery(group: &Group, world: &World, report: &mut Report) {
    rights(group, world, report);
    makers(group, report);
}

/// Warns where it cannot be known whether a rollout replaces the pods.
fn makers(group: &Group, report: &mut Report) {
    for (coordination, batching) in group.batched().filter(|(_, batching)| batching.recovers().is_some()) {
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            let (name, owner) = (&role.name, coordination.display_name());
            let detail = match (&role.workload.key, role.workload.instances) {
                (_, Some(_)) => format!(
                    "batches of coordination {owner:?} are not recovered: whether a RoleInstanceSet replaces its pods cannot be \
                     asked"
                ),
                (None, None) => format!(
                    "batches of coordination {owner:?} are recovered only where a StatefulSet, a LeaderWorkerSet or a Deployment \
                     makes the pods of role {name:?}, which has no workloadRef: what else makes pods cannot be asked whether it \
                     replaces them"
                ),
                (Some(_), None) => continue,
            };
            report.notice(name, batching.sizes_at.key(name.as_str()), detail);
        }
    }
}

/// Requires that the author may delete pods: rolegate lends no rights.
fn rights(group: &Group, world: &World, report: &mut Report) {
    for (coordination, recovery) in recoveries(group).filter(|(_, recovery)| recovery.recreates) {
        let (subject, at) = (coordination.display_name(), recovery.at.child("policy"));
        world.right_to_delete(group, (&subject, at), ("it", ""), report);
    }
}
