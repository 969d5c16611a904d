//! A role's pods belong to one coordinating object: the oldest controls, and the others are refused as best effort.

use std::collections::BTreeMap;

use crate::model::{FieldPath, Group, GroupKey};
use crate::rules::{Cause, Need, Report, World};

/// Something that only one object may coordinate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// A role of a group.
    Role(GroupKey, String),
    /// A workload, by name: whatever its kind, its pods bear the name.
    Workload(String, String),
}

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
    let mut reported = std::collections::BTreeSet::new();
    for other in world.groups_in(namespace).filter(|other| !other.deleting && controls(other, group)) {
        for claim in self::claims(other).into_keys() {
            let Some((role, path)) = claims.get(&claim) else { continue };
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

/// What a group claims, with the role and the path for each.
fn claims(group: &Group) -> BTreeMap<Claim, (&str, FieldPath)> {
    let mut claims = BTreeMap::new();
    for coordination in &group.coordinations {
        for name in coordination.role_names() {
            let path = match group.role(name) {
                Some(role) => role.workload.reference.as_ref().map_or_else(|| role.at.clone(), |(_, at)| at.clone()),
                None => super::role_path(coordination, name),
            };
            claims.entry(Claim::Role(group.key.clone(), name.to_owned())).or_insert((name, path.clone()));
            if let Some(key) = group.role(name).and_then(|role| role.workload.key.as_ref()) {
                claims.entry(Claim::Workload(key.namespace.clone(), key.name.clone())).or_insert((name, path));
            }
        }
    }
    claims
}
