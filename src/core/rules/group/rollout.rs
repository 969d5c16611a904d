//! Rules of coordinated rollouts (KEP-30).

use std::collections::BTreeSet;

use crate::model::rolling::FROZEN;
use crate::model::workload_kind::Surge;
use crate::model::{Coordination, FieldPath, Group, Role, RolloutClaim, Workload, WorkloadKey, names};
use crate::rules::percent::rolling_update_faults;
use crate::rules::{Known, Need, Report, World};

/// Requires bounds that are percentages without decimals, or numbers of replicas.
pub(super) fn format(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let Some((update, at)) = &coordination.rolling_update else { continue };
        for (path, cause, value, detail) in rolling_update_faults(update, at) {
            report.error(&coordination.display_name(), path, cause, value, detail);
        }
    }
}

/// Returns the roles that are updated together, each once, with the first coordination that names it.
fn updated_roles(group: &Group) -> impl Iterator<Item = (&Coordination, &Role)> {
    let mut seen = BTreeSet::new();
    let coordinations = group.coordinations.iter().filter(|coordination| coordination.rolling_update.is_some());
    coordinations
        .flat_map(|coordination| coordination.role_names().into_iter().map(move |name| (coordination, name)))
        .filter_map(|(coordination, name)| Some((coordination, group.role(name)?)))
        .filter(move |(_, role)| seen.insert(role.name.as_str()))
}

/// Refuses an update strategy of a coordinated role (KEP-30, Risks). The partition of a referenced workload is allowed, since
/// the loop moves it; OnDelete and Recreate are not, since nothing would follow the partition.
pub(super) fn own_strategy(group: &Group, _: &World, report: &mut Report) {
    for (coordination, role) in updated_roles(group) {
        let Some(path) = &role.workload.update_strategy else { continue };
        let (name, owner) = (&role.name, coordination.display_name());
        let detail = match &role.workload.reference {
            Some((reference, _)) => format!(
                "{} {:?} must have update strategy RollingUpdate: coordination {owner:?} updates role {name:?}",
                reference.kind, reference.name
            ),
            None => {
                format!("role {name:?} may not have an update strategy of its own: coordination {owner:?} updates it")
            }
        };
        report.forbid(name, path.clone(), detail);
    }
}

pub(super) fn has_partition(key: &WorkloadKey) -> bool {
    key.kind.row().rollout.is_some()
}

/// Returns the workload of a role; reports an unknown one as not judged.
pub(super) fn workload<'w>(
    coordination: &Coordination,
    role: &Role,
    wanted: impl Fn(&WorkloadKey) -> bool,
    world: &'w World,
    report: &mut Report,
) -> Option<&'w Workload> {
    let key = role.workload.key.as_ref().filter(|key| wanted(key))?;
    match world.workload(key) {
        Known::Present(workload) => Some(workload),
        Known::Absent => None,
        Known::Unknown => {
            report.not_judged(&role.name, workload_at(coordination, role), &Need::Workload(key.clone()));
            None
        }
    }
}

pub(super) fn workload_at(coordination: &Coordination, role: &Role) -> FieldPath {
    role.workload.reference.as_ref().map_or_else(|| coordination.path_of(&role.name), |(_, at)| at.clone())
}

/// Requires maxSurge 0 of a coordinated LeaderWorkerSet: with a surge it makes new replicas as soon as its template changes.
pub(super) fn surge(group: &Group, world: &World, report: &mut Report) {
    let can_surge = |key: &WorkloadKey| key.kind.row().surge == Surge::AsWritten;
    for (coordination, role) in updated_roles(group) {
        let Some(workload) = workload(coordination, role, can_surge, world, report) else { continue };
        if workload.surges() {
            let detail = format!(
                "{} {:?} must have `maxSurge` 0: with a surge it starts an update before it is coordinated",
                workload.key.kind.as_str(),
                workload.key.name
            );
            report.forbid(&role.name, workload_at(coordination, role), detail);
        }
    }
}

/// Warns about a coordinated role of a kind without a partition, by which its updates would be held.
pub(super) fn kind(group: &Group, _: &World, report: &mut Report) {
    for (coordination, role) in updated_roles(group) {
        let Some(maker) = role.workload.without_partition() else { continue };
        let detail = format!("a {maker} has no partition that rolegate may move: its updates are not coordinated");
        report.notice(&role.name, workload_at(coordination, role), detail);
    }
}

/// Warns where a coordinated workload lacks the claim: its updates do not reach rolegate.
pub(super) fn claimed(group: &Group, world: &World, report: &mut Report) {
    for (coordination, role) in updated_roles(group) {
        let Some(workload) = workload(coordination, role, has_partition, world, report) else { continue };
        let is_ours = |claim: &RolloutClaim| claim.group.name == group.key.name && claim.role == role.name;
        if workload.claim.as_ref().is_some_and(is_ours) {
            continue;
        }
        let lacks = match &role.workload.reference {
            Some(_) => {
                format!("labels {}: {:?} and {}: {:?}", names::GROUP, &*group.key.name, names::ROLE, role.name)
            }
            None => format!("annotation {}: \"enabled\"", names::ROLLOUT),
        };
        let (kind, name) = (workload.key.kind.as_str(), &workload.key.name);
        let detail = format!("{kind} {name:?} itself lacks {lacks}; its updates are not coordinated");
        report.notice(&role.name, workload_at(coordination, role), detail);
    }
}

/// Warns about a partition in the manifest of a coordinated workload: server-side apply will conflict, and plain apply is
/// overruled. A 0 on a live object does not count, since it is the default.
pub(super) fn partition(group: &Group, world: &World, report: &mut Report) {
    for (coordination, role) in updated_roles(group).filter(|(_, role)| role.workload.reference.is_some()) {
        let Some(workload) = workload(coordination, role, has_partition, world, report) else { continue };
        let is_written = |partition: &i64| world.manifests || (*partition != 0 && *partition != i64::from(FROZEN));
        if let Some(partition) = workload.partition.filter(is_written) {
            let detail = format!(
                "{} {:?} sets partition {partition}: applying it will conflict with the coordinated rollout",
                workload.key.kind.as_str(),
                workload.key.name
            );
            report.notice(&role.name, workload_at(coordination, role), detail);
        }
    }
}
