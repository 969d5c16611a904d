//! The claim of a workload to be rolled out in lockstep with its group.

use super::{GroupKey, names};
use crate::api::Meta;
use crate::api::rbg::ROLE_BASED_GROUP;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutClaim {
    pub group: GroupKey,
    pub role: String,
}

/// Returns the claim of a workload: from rolegate's own labels or, with the opt-in annotation, from the labels of the
/// controller that owns it. No other workload depends on rolegate.
pub fn rollout_claim(meta: &Meta, namespace: &str) -> Option<RolloutClaim> {
    let opted_in = meta.annotation(names::ROLLOUT) == Some("enabled");
    let read = |(group, role): &(&str, &str)| {
        let claim =
            RolloutClaim { group: GroupKey::new(namespace, meta.label(group)?), role: meta.label(role)?.to_owned() };
        (!claim.group.name.is_empty() && !claim.role.is_empty()).then_some(claim)
    };
    names::LABEL_SCHEMES.iter().filter(|scheme| opted_in || scheme.0 == names::GROUP).find_map(read)
}

/// Returns the value of the first of these annotations that a workload has.
pub(super) fn first_annotation<'a>(meta: &'a Meta, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| meta.annotation(key))
}

/// Reports whether a RoleBasedGroup controls a workload.
pub fn is_of_rbg(meta: &Meta) -> bool {
    meta.controller().is_some_and(|owner| owner.kind == ROLE_BASED_GROUP.kind)
}

/// Returns the claim that was removed from a workload during a rollout.
pub fn former_claim(meta: &Meta, namespace: &str) -> Option<RolloutClaim> {
    first_annotation(meta, names::USER_PARTITIONS)?;
    let (group, role) = first_annotation(meta, names::UNCLAIMEDS)?.split_once('/')?;
    Some(RolloutClaim { group: GroupKey::new(namespace, group), role: role.to_owned() })
}
