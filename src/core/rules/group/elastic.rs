//! Rules of elastic groups: the author may scale the workloads, and nobody else scales them.

use crate::model::{BatchKind, Group, Role, Standing, WorkloadKey};
use crate::rules::names::listed;
use crate::rules::{Cause, Known, Need, Report, World};

/// Requires that segments belong to one segmentPlacement, with own workloads that the author may scale.
pub(super) fn scale(group: &Group, world: &World, report: &mut Report) {
    let Some(elastic) = &group.elastic else { return };
    let at = || elastic.at.clone();
    for (number, at) in [(Some(elastic.segments), &elastic.at), (elastic.drain_seconds, &elastic.drain_at)] {
        if let Some(number) = number.filter(|number| *number < 0) {
            let detail = "must be greater than or equal to 0";
            report.error("", at.clone(), Cause::Invalid, Some(number.to_string()), detail);
        }
    }
    if group.reference.is_some() {
        let detail = "may not be set together with `groupRef`: the roles' replicas stand in the RoleBasedGroup";
        return report.forbid("", at(), detail);
    }
    let mut batched = group.batched();
    let (Some((_, batching)), None) = (batched.next(), batched.next()) else {
        return report.forbid("", at(), "must have exactly one coordination that makes batches, a segmentPlacement");
    };
    if batching.kind != BatchKind::SegmentPlacement {
        return report.forbid("", at(), format!("must have a segmentPlacement, not {}", batching.kind.as_str()));
    }
    for name in batching.sizes.keys() {
        let Some(role) = group.role(name) else { continue };
        let Some(key) = &role.workload.key else {
            if role.workload.reference.is_none() {
                let detail = "a role with a segmentSize must have a workloadRef: `segments` says its replicas";
                report.forbid(name, role.at.child("replicas"), detail);
            }
            continue;
        };
        workload(role, key, world, report);
    }
    ineffective(group, world, report);
}

fn workload(role: &Role, key: &WorkloadKey, world: &World, report: &mut Report) {
    let at = role.at.child("workloadRef");
    let (kind, name) = (key.kind.as_str(), &key.name);
    if let Known::Present(workload) = world.workload(key)
        && let Some(owner) = &workload.owner
    {
        let detail = format!("{kind} {name:?} must have no owner that scales it: {owner} does");
        report.forbid(&role.name, at.clone(), detail);
    }
    if world.workload(key).present().is_some_and(|workload| workload.queued_as_one) {
        let detail = format!(
            "{kind} {name:?} must not be queued by Kueue, which queues all its pods as one: when it is scaled Kueue takes \
             them down, and lets none run again"
        );
        report.forbid(&role.name, at.clone(), detail);
    }
    let need = Need::MayScale(key.clone());
    let detail = format!("whoever sets `segments` must be allowed to scale {kind} {name:?}");
    world.right(&need, (&role.name, at), detail, report);
}

/// Warns about settings that are legal but have no effect (yet).
fn ineffective(group: &Group, world: &World, report: &mut Report) {
    let Some(elastic) = &group.elastic else { return };
    match &elastic.standing {
        Standing::NotAllowed => {}
        Standing::Unclaimed(role) if group.role(role).is_some_and(|role| is_known(role, world)) => {}
        _ => return,
    }
    let detail = format!("it has no effect: {}", elastic.standing);
    report.warn("", elastic.at.clone(), Cause::Notice, Some(elastic.segments.to_string()), detail);
}

fn is_known(role: &Role, world: &World) -> bool {
    role.workload.key.as_ref().is_some_and(|key| world.workload(key).present().is_some())
}

/// Warns about an autoscaler of a workload that is scaled with its group, and about several of the group.
pub(super) fn autoscalers(group: &Group, world: &World, report: &mut Report) {
    let Some((elastic, batching)) = group.scaled() else { return };
    let all: Vec<_> = world.autoscalers_in(&group.key.namespace).collect();
    let of_group = all.iter().filter(|autoscaler| {
        let target = &autoscaler.spec.scale_target_ref;
        target.kind == group.carrier.kind.kind && target.name == group.carrier.name
    });
    let several: Vec<_> = of_group.map(|autoscaler| autoscaler.metadata.display_name()).collect();
    if several.len() > 1 {
        let detail = format!(
            "HorizontalPodAutoscalers {} scale it, and stop each other (AmbiguousSelector): leave one of them",
            listed(several)
        );
        report.notice("", elastic.at.clone(), detail);
    }
    for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
        let Some(key) = &role.workload.key else { continue };
        let scales = |kind: &str, name: &str| kind == key.kind.as_str() && name == key.name;
        let found = all.iter().find(|autoscaler| {
            let target = &autoscaler.spec.scale_target_ref;
            scales(&target.kind, &target.name)
        });
        if let Some(autoscaler) = found {
            let detail = format!(
                "HorizontalPodAutoscaler {:?} scales {} {:?} as well, which is scaled back; let it scale RoleCoordination {:?}",
                autoscaler.metadata.display_name(),
                key.kind.as_str(),
                key.name,
                group.carrier.name
            );
            report.notice(&role.name, role.at.child("workloadRef"), detail);
        }
    }
}
