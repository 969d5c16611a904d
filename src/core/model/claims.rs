//! The object that carries a group, among several that claim it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Coordination, Group, GroupKey};
use crate::api::ObjectKind;
use crate::api::role_coordination::ROLE_COORDINATION;

/// The objects that claim a group.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The group as read from the controlling object.
    pub group: Arc<Group>,
    /// The group as read from the other claiming objects, which control nothing.
    pub others: Vec<Arc<Group>>,
}

impl Claims {
    /// Returns the claims among all objects with the name of a group. The oldest claim controls; without a claim, the
    /// RoleBasedGroup controls itself. Returns `None` without any object, and for a RoleBasedGroup that names a
    /// RoleCoordination which is not seen: until it is seen, the pods to hold are unknown.
    pub fn of(objects: impl IntoIterator<Item = Arc<Group>>) -> Option<Self> {
        let (mut claiming, silent): (Vec<_>, Vec<_>) = objects.into_iter().partition(|group| group.is_claim());
        claiming.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let mut claiming = claiming.into_iter();
        if let Some(group) = claiming.next() {
            let others = claiming.filter(|other| !other.is_same_object(&group)).collect();
            return Some(Self { group, others });
        }
        let group = silent.into_iter().min_by_key(|group| group.carrier.kind)?;
        group.coordinated_by.is_none().then(|| Self { group, others: Vec::new() })
    }

    /// Returns the claims of each group.
    pub fn by_group(objects: impl IntoIterator<Item = Arc<Group>>) -> BTreeMap<GroupKey, Self> {
        let mut by_key: BTreeMap<GroupKey, Vec<Arc<Group>>> = BTreeMap::new();
        for group in objects {
            by_key.entry(group.key.clone()).or_default().push(group);
        }
        by_key.into_iter().filter_map(|(key, objects)| Some((key, Self::of(objects)?))).collect()
    }
}

/// Returns the RoleBasedGroup among the objects with a group's name; of one object in two versions, the version that can carry
/// coordinations.
pub fn role_based_group<'a>(objects: impl IntoIterator<Item = &'a Arc<Group>>) -> Option<&'a Arc<Group>> {
    objects.into_iter().filter(|group| !is_role_coordination(group)).min_by_key(|group| group.carrier.kind)
}

impl Group {
    /// Reports whether the object claims to coordinate the group. A RoleBasedGroup without coordinations of rolegate does not.
    pub fn is_claim(&self) -> bool {
        is_role_coordination(self) || self.coordinations.iter().any(Coordination::is_ours)
    }

    /// Reports whether another object was first to claim this group, or a part of it.
    pub fn comes_after(&self, other: &Self) -> bool {
        other.is_claim() && !other.is_same_object(self) && rank(other) < rank(self)
    }

    /// Reports whether both were read from one object, in any of its versions.
    pub fn is_same_object(&self, other: &Self) -> bool {
        let id = |group: &Self| (group.carrier.kind.group, group.carrier.kind.kind);
        id(self) == id(other) && self.carrier.name == other.carrier.name
    }
}

/// Returns the order of claims: by creation, name and kind. An object without a creation time is being created and comes last.
fn rank(group: &Group) -> (bool, &str, &str, ObjectKind) {
    let carrier = &group.carrier;
    (carrier.created.is_empty(), &carrier.created, &carrier.name, carrier.kind)
}

fn is_role_coordination(group: &Group) -> bool {
    group.carrier.kind == ROLE_COORDINATION
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_V1ALPHA2};

    fn rbg(kind: ObjectKind, created: &str, annotation: Option<&str>, coordination: &Value) -> Arc<Group> {
        let metadata = json!({
            "name": "pd", "creationTimestamp": created, "annotations": { (crate::model::names::GROUP): annotation },
        });
        let mut object = json!({ "metadata": metadata, "spec": { "coordination": coordination } });
        if annotation.is_none() {
            object["metadata"]["annotations"] = Value::Null;
        }
        Arc::new(Group::from_rbg(kind, &serde_json::from_value(object).unwrap()))
    }

    fn coordination(name: &str, created: Option<&str>) -> Arc<Group> {
        let object = json!({
            "metadata": { "name": name, "creationTimestamp": created }, "spec": { "groupRef": { "name": "pd" } },
        });
        let object = serde_json::from_value(object).unwrap();
        Arc::new(Group::from_role_coordination(ROLE_COORDINATION, &object, &()))
    }

    /// Returns the controlling object and the others, and asserts that they do not depend on the order of the objects.
    fn order(objects: &[Arc<Group>]) -> Vec<String> {
        let name = |group: &Arc<Group>| format!("{} {}", group.carrier.kind.kind, group.carrier.name);
        let names = |objects: &[Arc<Group>]| {
            let claims = Claims::of(objects.iter().cloned());
            claims.map_or(Vec::new(), |claims| std::iter::once(&claims.group).chain(&claims.others).map(name).collect())
        };
        let (first, mut turned) = (names(objects), objects.to_vec());
        for _ in 0..objects.len() {
            turned.rotate_left(1);
            assert_eq!(names(&turned), first);
            let back: Vec<_> = turned.iter().rev().cloned().collect();
            assert_eq!(names(&back), first);
        }
        first
    }

    const EARLY: &str = "2026-01-01T00:00:00Z";
    const LATE: &str = "2026-01-02T00:00:00Z";

    #[test]
    fn the_oldest_claim_controls_in_whichever_order_they_come() {
        let (entries, none) = (json!([{ "name": "c" }]), json!([]));
        let group = |created, entries| rbg(ROLE_BASED_GROUP, created, None, entries);
        let (a, b) = (coordination("a", Some(LATE)), coordination("b", Some(EARLY)));
        assert_eq!(order(&[a.clone(), b.clone()]), ["RoleCoordination b", "RoleCoordination a"]);
        assert_eq!(order(&[b.clone(), group(LATE, &entries)]), ["RoleCoordination b", "RoleBasedGroup pd"]);
        assert_eq!(order(&[a.clone(), group(EARLY, &entries)]), ["RoleBasedGroup pd", "RoleCoordination a"]);
        // At equal times, the names decide.
        let (c, d) = (coordination("c", Some(EARLY)), coordination("z", Some(EARLY)));
        assert_eq!(order(&[d, group(EARLY, &entries), c])[..2], ["RoleCoordination c", "RoleBasedGroup pd"]);
        // An object that is being created has no time yet; a group without coordinations claims nothing.
        assert_eq!(order(&[coordination("0", None), a.clone()])[0], "RoleCoordination a");
        assert_eq!(order(&[group(EARLY, &none), a]), ["RoleCoordination a"]);
        assert_eq!(order(&[group(EARLY, &none)]), ["RoleBasedGroup pd"]);
        // Coordinations that RBG acts on are no claim, with or without a rolling update; with segments they are.
        let theirs = json!([{ "name": "c", "strategy": { "scaling": {}, "rollingUpdate": { "maxSkew": "10%" } } }]);
        let both = json!([{ "name": "c", "strategy": { "scaling": {}, "segmentPlacement": { "segmentSize": {} } } }]);
        let b = coordination("b", Some(LATE));
        assert_eq!(order(&[group(EARLY, &theirs), b.clone()]), ["RoleCoordination b"]);
        assert_eq!(order(&[group(EARLY, &both), b]), ["RoleBasedGroup pd", "RoleCoordination b"]);
    }

    #[test]
    fn a_group_that_names_a_coordination_waits_for_one() {
        let waits = rbg(ROLE_BASED_GROUP, EARLY, Some("a"), &json!([]));
        assert_eq!(order(std::slice::from_ref(&waits)), Vec::<String>::new());
        assert_eq!(order(&[waits, coordination("b", Some(LATE))]), ["RoleCoordination b"]);
    }

    #[test]
    fn one_object_in_two_versions_does_not_compete_with_itself() {
        let entries = json!([{ "name": "c" }]);
        let versions = [ROLE_BASED_GROUP, ROLE_BASED_GROUP_V1ALPHA2].map(|kind| rbg(kind, EARLY, None, &entries));
        assert_eq!(order(&versions), ["RoleBasedGroup pd"]);
        assert!(!versions[1].comes_after(&versions[0]));
    }
}
