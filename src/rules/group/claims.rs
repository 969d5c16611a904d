//! A role's pods belong to one coordinating object: the oldest controls, and the others are refused as best effort.

use std::collections::BTreeSet;

use crate::model::{FieldPath, Group};
use crate::rules::claim::claims;
use crate::rules::{Cause, Need, Report, World};

/// No other object, unless it is younger, coordinates a role or workload of this one.
pub(super) fn claimed_once(group: &Group, world: &World, report: &mut Report) {
    let claims = claims(group);
    if claims.is_empty() {
        return;
    }
    let namespace = &group.key.namespace;
    let need = Need::Groups { namespace: namespace.to_string() };
    if !world.is_answered(&need) {
        report.not_judged("", FieldPath::new("spec"), &need);
    }
    let mut reported = BTreeSet::new();
    for (claim, (role, path)) in &claims {
        for other in world.claimants(claim).filter(|other| !other.deleting && controls(other, group)) {
            if reported.insert((*role, path.clone())) {
                let carrier = &other.carrier;
                let detail = format!(
                    "role {role:?} is coordinated by {} {:?} already; a role may belong to one coordinating object",
                    carrier.kind.kind, carrier.name
                );
                report.error(role, path.clone(), Cause::Forbidden, None, detail);
            }
        }
    }
}

/// True when the other object is another one, and comes first: by creation, then by name. What is being made has no
/// creation time yet, and comes last.
fn controls(other: &Group, group: &Group) -> bool {
    fn rank(group: &Group) -> (bool, &str, &str, &str) {
        let carrier = &group.carrier;
        (carrier.created.is_empty(), &carrier.created, &carrier.name, carrier.kind.kind)
    }
    let identity = |group: &Group| (group.carrier.kind.group, group.carrier.kind.kind, group.carrier.name.clone());
    identity(other) != identity(group) && rank(other) <= rank(group)
}
