//! Rules of rollouts by segment (KEP-32: one segment at a time).

use crate::api::coordination::RollingUpdate;
use crate::model::rolling::{SEGMENT, UNITS};
use crate::model::{Coordination, FieldPath, Group};
use crate::rules::group::rollout::{has_partition, workload, workload_at};
use crate::rules::group::rollout_steps::shared;
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Report, World};

/// Requires a known unit, and of segments that all roles are in them and that controllers update their replicas at once.
pub(super) fn by(group: &Group, world: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let Some((update, at)) = &coordination.rolling_update else { continue };
        let Some(unit) = update.by.as_deref().filter(|unit| !unit.is_empty()) else { continue };
        let path = at.child("by");
        if !UNITS.contains(&unit) {
            let detail = supported(UNITS.iter().copied());
            report.error(&coordination.display_name(), path, Cause::NotSupported, quoted(unit), detail);
        } else if unit == SEGMENT {
            alone(group, coordination, (update, at), report);
            rights(group, coordination, path.clone(), world, report);
            if in_segments(group, coordination, path, report) {
                at_once(group, coordination, world, report);
            }
        }
    }
}

/// Refuses fields without effect beside it, and other rates of a role.
fn alone(group: &Group, coordination: &Coordination, (update, at): (&RollingUpdate, &FieldPath), report: &mut Report) {
    let subject = coordination.display_name();
    for (field, is_set) in [("maxSkew", update.max_skew.is_some()), ("steps", update.steps.is_some())] {
        if is_set {
            let detail =
                "may not be set together with `by: Segment`, which updates the segments of all roles one after another";
            report.forbid(&subject, at.child(field), detail);
        }
    }
    if let Some((role, other)) = shared(group, coordination) {
        let detail = format!("may not be set while coordination {other:?} updates role {role:?} too");
        report.forbid(&subject, at.child("by"), detail);
    }
}

/// Requires that all roles are in the same batches. Returns whether they are.
fn in_segments(group: &Group, coordination: &Coordination, at: FieldPath, report: &mut Report) -> bool {
    let roles = coordination.role_names();
    let has_all = group.batched().any(|(_, batching)| roles.iter().all(|role| batching.size(role).is_some()));
    if !has_all {
        let roles = roles.into_iter().collect::<Vec<_>>().join(" and ");
        let detail =
            format!("updates segments, and there are none of {roles}: set `segmentPlacement` with these roles");
        report.error(&coordination.display_name(), at, Cause::Invalid, quoted(SEGMENT), detail);
    }
    has_all
}

/// Requires that the controller of each role updates as many replicas at once as a segment has, or that rolegate may delete the
/// old pods.
fn at_once(group: &Group, coordination: &Coordination, world: &World, report: &mut Report) {
    for role in coordination.role_names().into_iter().filter_map(|name| group.role(name)) {
        let Some(size) = group.batch_size(&role.name).filter(|size| *size > 1) else { continue };
        let Some(key) = role.workload.key.as_ref().filter(|key| has_partition(key)) else { continue };
        let gate = key.kind.row().rollout.and_then(|fields| fields.at_once_gate);
        let at = workload_at(coordination, role);
        let Some(workload) = workload(coordination, role, has_partition, world, report) else { continue };
        let most = workload.updated_at_once();
        if most >= size {
            continue;
        }
        let (kind, name) = (key.kind.as_str(), &key.name);
        if workload.is_remade() && may_delete(world) {
            if world.manifests {
                let detail = format!(
                    "rolegate must run with `--allow recovery`: it deletes the old pods of {kind} {name:?}, which updates {most} at \
                     once"
                );
                report.notice(&role.name, at, detail);
            }
            continue;
        }
        let others = gate.map(|gate| {
            format!(
                ", which Kubernetes drops without its feature gate `{gate}`, or `podManagementPolicy: Parallel` where rolegate \
                 runs with `--allow recovery` and deletes its old pods"
            )
        });
        let detail = format!(
            "{kind} {name:?} must have `maxUnavailable: {size}` in its update strategy{}: it updates {most} at once, and a segment \
             has {size} of role {:?}",
            others.unwrap_or_default(),
            role.name
        );
        report.forbid(&role.name, at, detail);
    }
}

/// Reports whether rolegate may delete pods. For manifests, that counts as allowed.
fn may_delete(world: &World) -> bool {
    world.manifests || world.options.allowed.recovery
}

/// Requires that the author may delete pods: rolegate lends no rights. It is asked whatever the workloads update at once, and
/// whether or not rolegate may delete pods now: both may change while the group stays as it is.
fn rights(group: &Group, coordination: &Coordination, at: FieldPath, world: &World, report: &mut Report) {
    let why = ": rolegate deletes old pods that a controller would replace one after another";
    world.right_to_delete(group, (&coordination.display_name(), at), ("`by: Segment`", why), report);
}

/// Reports whether segments of the group are updated as a whole: rolegate may have to delete old pods.
pub(super) fn is_by_segment(group: &Group) -> bool {
    let mut updates = group.coordinations.iter().filter_map(|coordination| coordination.rolling_update.as_ref());
    updates.any(|(update, _)| update.by.as_deref() == Some(SEGMENT))
}
