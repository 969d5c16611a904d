//! Judging an object: the entry that webhook, loop and offline commands share.

use super::carrier::read_group;
use super::decode::{DecodeError, decode};
use super::question::{Judged, Operation, Question};
use super::rule::{Change, run, run_changes};
use super::{World, group, grove, podgroup, policy, topology};
use crate::api::{
    self, ClusterTopology, CoordinatedPolicy, ObjectKind, cluster_topology, coordinated_policy, pod, pod_group, rbg,
    role_coordination,
};
use crate::model::{Group, Layers};

/// Judges a group, and where it is an update, what it was before.
pub fn judge_group(group: &Group, old: Option<&Group>, world: &World) -> Judged {
    if group.deleting {
        return Judged::default();
    }
    let judged = Judged::of(run(group::RULES, group, world));
    match old {
        Some(old) => {
            let changes = run_changes(group::CHANGE_RULES, &Change { old, new: group }, world);
            judged.forgive(&run(group::RULES, old, world)).and(changes)
        }
        None => judged,
    }
}

/// Reads and judges objects of one kind.
pub type JudgeJson = fn(Question<'_>, &World) -> Result<Judged, DecodeError>;

/// Kinds that are judged.
pub const JUDGED: &[(ObjectKind, JudgeJson)] = &[
    (rbg::ROLE_BASED_GROUP, judge_carrier),
    (rbg::ROLE_BASED_GROUP_INSTAI, judge_carrier),
    (role_coordination::ROLE_COORDINATION, judge_carrier),
    (cluster_topology::CLUSTER_TOPOLOGY, judge_topology),
    (cluster_topology::CLUSTER_TOPOLOGY_KEP75, judge_topology),
    (coordinated_policy::COORDINATED_POLICY, judge_policy),
    (pod_group::POD_GROUP, podgroup::judge),
    (pod::POD, podgroup::judge_pod),
    (api::grove::POD_CLIQUE_SET, grove::judge),
    (api::grove::POD_GANG_SET, grove::judge),
];

/// Judges an object of a kind in `JUDGED`; `None` for other kinds, which are admitted.
///
/// # Errors
///
/// When the object does not have the shape of its kind.
pub fn judge_json(
    api_version: &str,
    kind: &str,
    operation: Operation,
    object: &str,
    old: Option<&str>,
    world: &World,
) -> Option<Result<Judged, DecodeError>> {
    let (kind, judge) = JUDGED.iter().find(|(known, _)| known.kind == kind && known.api_version() == api_version)?;
    Some(judge(Question { kind: *kind, operation, object, old }, world))
}

fn judge_carrier(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    if question.operation == Operation::Delete {
        return Ok(Judged::default());
    }
    let group = read_group(question.kind, question.object, world)?;
    // An old object that cannot be read forgives nothing.
    let old = question.old.and_then(|old| read_group(question.kind, old, world).ok());
    Ok(judge_group(&group, old.as_ref(), world))
}

fn judge_topology(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    let read = |json| Ok(Layers::parse(question.kind, &decode::<ClusterTopology>(json)?));
    let layers = read(question.object)?;
    if question.operation == Operation::Delete {
        return Ok(Judged::of(run(topology::DELETE_RULES, &layers, world)));
    }
    if layers.deleting {
        return Ok(Judged::default());
    }
    let judged = Judged::of(run(topology::RULES, &layers, world));
    Ok(match question.old.and_then(|old| read(old).ok()) {
        Some(old) => {
            let changes = run_changes(topology::CHANGE_RULES, &Change { old: &old, new: &layers }, world);
            judged.forgive(&run(topology::RULES, &old, world)).and(changes)
        }
        None => judged,
    })
}

fn judge_policy(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    let policy: CoordinatedPolicy = decode(question.object)?;
    if question.operation == Operation::Delete || policy.metadata.is_deleting() {
        return Ok(Judged::default());
    }
    let judged = Judged::of(run(policy::RULES, &policy, world));
    Ok(match question.old.and_then(|old| decode(old).ok()) {
        Some(old) => judged.forgive(&run(policy::RULES, &old, world)),
        None => judged,
    })
}
