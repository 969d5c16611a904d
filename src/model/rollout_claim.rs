//! By what a workload says that it is rolled out in lockstep with its group.

use super::{GroupKey, names};
use crate::api::Meta;
use crate::api::rbg::ROLE_BASED_GROUP;

/// A workload's claim to be rolled in lockstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutClaim {
    /// Its group.
    pub group: GroupKey,
    /// Its role.
    pub role: String,
}

/// The claim of a workload: by our own labels on it, or, with the opt-in annotation, by those of the controller that owns
/// it. No other workload depends on us.
pub fn rollout_claim(meta: &Meta, namespace: &str) -> Option<RolloutClaim> {
    let opted_in = meta.annotation(names::ROLLOUT) == Some("enabled");
    let read = |(group, role): &(&str, &str)| {
        let claim =
            RolloutClaim { group: GroupKey::new(namespace, meta.label(group)?), role: meta.label(role)?.to_owned() };
        (!claim.group.name.is_empty() && !claim.role.is_empty()).then_some(claim)
    };
    names::LABEL_SCHEMES.iter().filter(|scheme| opted_in || scheme.0 == names::GROUP).find_map(read)
}

/// The value of the first of these annotations that a workload has.
pub(super) fn first_annotation<'a>(meta: &'a Meta, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| meta.annotation(key))
}

/// True for a workload that a RoleBasedGroup controls.
pub fn is_of_rbg(meta: &Meta) -> bool {
    meta.controller().is_some_and(|owner| owner.kind == ROLE_BASED_GROUP.kind)
}

/// The claim that was taken away from a workload in the middle of a rollout.
pub fn former_claim(meta: &Meta, namespace: &str) -> Option<RolloutClaim> {
    first_annotation(meta, names::USER_PARTITIONS)?;
    let (group, role) = first_annotation(meta, names::UNCLAIMEDS)?.split_once('/')?;
    Some(RolloutClaim { group: GroupKey::new(namespace, group), role: role.to_owned() })
}
