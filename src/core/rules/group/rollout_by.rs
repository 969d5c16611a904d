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
            report.error(&subject, at.child(field), Cause::Forbidden, None, detail);
        }
    }
    if let Some((role, other)) = shared(group, coordination) {
        let detail = format!("may not be set while coordination {other:?} updates role {role:?} too");
        report.error(&subject, at.child("by"), Cause::Forbidden, None, detail);
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

/// Requires that the controller of each role updates as many replicas at once as a segment has.
fn at_once(group: &Group, coordination: &Coordination, world: &World, report: &mut Report) {
    for role in coordination.role_names().into_iter().filter_map(|name| group.role(name)) {
        let Some(size) = group.batch_size(&role.name).filter(|size| *size > 1) else { continue };
        let Some(workload) = workload(coordination, role, has_partition, world, report) else { continue };
        let most = workload.updated_at_once();
        if most < size {
            let gate = workload.key.kind.row().rollout.and_then(|fields| fields.at_once_gate);
            let dropped = gate
                .map(|gate| format!(", which Kubernetes drops without its feature gate `{gate}`"))
                .unwrap_or_default();
            let detail = format!(
                "{} {:?} must have `maxUnavailable: {size}` in its update strategy{dropped}: it updates {most} at once, and a \
                 segment has {size} of role {:?}",
                workload.key.kind.as_str(),
                workload.key.name,
                role.name
            );
            report.error(&role.name, workload_at(coordination, role), Cause::Forbidden, None, detail);
        }
    }
}
