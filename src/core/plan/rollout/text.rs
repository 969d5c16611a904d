//! Texts on what a role in a rollout waits for.

use std::collections::BTreeMap;

use super::{RolePlan, RoleRollout, RolloutPlan, Rollouts, Wait, WaitReason};

/// Returns one sentence: the waiting role, what it waits for, and the object to look at.
pub fn waits_for(name: &str, wait: &Wait, roles: &BTreeMap<String, RoleRollout>) -> String {
    let other = &wait.role;
    let counts = |role: &RoleRollout| format!("{}/{} updated and ready", role.done(), role.desired());
    let counts = roles.get(other).map(counts).unwrap_or_default();
    let replica = wait.ordinal.map(|ordinal| format!(", next is {other}-{ordinal}")).unwrap_or_default();
    match wait.reason {
        WaitReason::NotObserved => format!("{name} waits: the controller of {other} has not seen its last change yet"),
        WaitReason::Settling => format!("{name} waits: {other} may be edited as well"),
        WaitReason::Skew => format!("{name} waits for {other}: {counts}{replica}"),
        WaitReason::Unavailable => {
            let replica = wait.ordinal.map(|ordinal| format!(": {other}-{ordinal} is not ready")).unwrap_or_default();
            format!("{name} has as many replicas unavailable as it may{replica} ({counts})")
        }
        WaitReason::HeldBatch => {
            let released = roles.get(other).map_or(0, RoleRollout::below_held);
            format!(
                "{name} cannot be rolled: its workload waits for held replicas on top; scale it to {released} replicas to \
                 go on"
            )
        }
    }
}

/// Returns one line for each role with an open rollout, such as `rollout of prefill: 10/40 updated, 10 of them ready, partition
/// 30, Waiting`, with the reason to wait.
pub fn rollouts(plan: &RolloutPlan, rollouts: &Rollouts) -> Vec<String> {
    let line = |(name, decided): (&String, &RolePlan)| {
        let role = rollouts.roles.get(name)?;
        let (desired, partition) = (role.desired(), decided.partition.min(role.desired()));
        let waits = decided.waits.as_ref().map(|wait| format!(": {}", waits_for(name, wait, &rollouts.roles)));
        Some(format!(
            "rollout of {name}: {}/{desired} updated, {} of them ready, partition {partition}, {}{}",
            role.updated(),
            role.done(),
            decided.state.as_str(),
            waits.unwrap_or_default()
        ))
    };
    plan.iter().filter_map(line).collect()
}
