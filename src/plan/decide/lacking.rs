//! Workloads that a group refers to and that are not there, or whose pods do not say which group they are of: nothing waits for
//! its turn, and nothing ever comes.

use std::collections::BTreeMap;

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
    /// For people.
    pub text: String,
}

/// What the roles of a group lack.
pub fn lacking(group: &Group) -> Vec<Lacking> {
    let of_all = group.reference.as_ref().filter(|reference| !reference.found).map(|reference| Lacking {
        reason: HoldReason::WorkloadMissing,
        role: String::new(),
        text: format!("RoleBasedGroup {:?} is not there", reference.name),
    });
    of_all.into_iter().chain(group.roles.iter().filter_map(|role| of_role(group, role))).collect()
}

fn of_role(group: &Group, role: &Role) -> Option<Lacking> {
    let workload = &role.workload;
    let key = workload.key.as_ref()?;
    let (reason, text) = if workload.desired_is_unknown {
        (HoldReason::WorkloadMissing, format!("{key} of role {:?} is not there", role.name))
    } else if workload.is_unlabelled {
        let text = not_labelled(key.kind.as_str(), &key.name, &group.key.name, &role.name);
        (HoldReason::WorkloadNotLabelled, format!("{text}: its pods are not held"))
    } else {
        return None;
    };
    Some(Lacking { reason, role: role.name.clone(), text })
}

/// One entry for each reason that no held pod tells of already.
pub(super) fn explain(lacking: &[Lacking], held: &[Held]) -> Vec<Held> {
    let mut texts: BTreeMap<HoldReason, Vec<&str>> = BTreeMap::new();
    for lacks in lacking.iter().filter(|lacks| held.iter().all(|held| held.reason != lacks.reason)) {
        texts.entry(lacks.reason).or_default().push(&lacks.text);
    }
    texts.into_iter().map(|(reason, texts)| Held::new(reason, texts.join("; "), HeldPods::default())).collect()
}

#[cfg(test)]
#[path = "lacking_tests.rs"]
mod tests;
