//! Workloads that a group refers to and that are not there, or whose pods do not say which group they are of: nothing waits for
//! its turn, and nothing ever comes.

use crate::model::wording::not_labelled;
use crate::model::{Group, HoldReason, Role};
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::HeldPods;

/// What a role lacks of its workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lacking {
    /// Why nothing comes.
    pub reason: HoldReason,
    /// The role; empty where it is all of them.
    pub role: String,
    /// Which workload, as messages call it.
    pub of: String,
    /// For people.
    pub text: String,
}

/// What the roles of a group lack.
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

/// One entry for each reason; where pods are held for it already, these tell of the other workloads as well.
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
