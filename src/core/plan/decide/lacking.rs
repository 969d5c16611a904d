//! Missing workloads that a group refers to, and workloads whose pods lack the labels of the group: no pod of them ever waits
//! for its turn.

use crate::model::wording::not_labelled;
use crate::model::{Group, HoldReason, Role};
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::HeldPods;

/// A workload that a role lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lacking {
    pub reason: HoldReason,
    /// The role; empty for all roles.
    pub role: String,
    /// The workload, as messages call it.
    pub of: String,
    pub text: String,
}

/// Returns the workloads that the roles of a group lack.
pub fn lacking(group: &Group) -> Vec<Lacking> {
    let of_all = group.reference.as_ref().filter(|reference| !reference.found).map(|reference| Lacking {
        reason: HoldReason::WorkloadMissing,
        role: String::new(),
        of: format!("RoleBasedGroup {:?}", reference.name),
        text: format!("RoleBasedGroup {:?} is not there", reference.name),
    });
    of_all.into_iter().chain(group.roles.iter().filter_map(|role| of_role(group, role))).collect()
}

fn of_role(group: &Group, role: &Role) -> Option<Lacking> {
    let workload = &role.workload;
    let key = workload.key.as_ref()?;
    let (reason, text) = if workload.desired_is_unknown {
        (HoldReason::WorkloadMissing, format!("{key} of role {:?} is not there", role.name))
    } else if let Some(lack) = workload.unlabelled {
        let text = not_labelled(lack, (key.kind.as_str(), &key.name), &group.key.name, &role.name);
        (HoldReason::WorkloadNotLabelled, text)
    } else {
        return None;
    };
    Some(Lacking { reason, role: role.name.clone(), of: key.to_string(), text })
}

/// Adds one entry for each reason; if pods are already held for that reason, its message names the other workloads as well.
pub(super) fn explain(lacking: &[Lacking], held: &mut Vec<Held>) {
    for lacks in lacking {
        match held.iter_mut().find(|held| held.reason == lacks.reason) {
            Some(known) if known.message.contains(&lacks.of) => {}
            Some(known) => known.message = format!("{}; {}", known.message, lacks.text),
            None => held.push(Held::new(lacks.reason, lacks.text.clone(), HeldPods::default())),
        }
    }
}

#[cfg(test)]
#[path = "lacking_tests.rs"]
mod tests;
