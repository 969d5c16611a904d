use serde_json::json;

use super::*;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::build;
use crate::cluster::index::adoption_tests::stored;

const WATCH: Option<SourceId> = Some(3);

fn object(uid: &str, version: u32) -> CarrierObject {
    stored(build::group("pd", &[], &json!([])), uid, version, &json!({}))
}

fn known(carriers: &Carriers) -> Option<(&str, u64)> {
    let (_, object) = carriers.objects.iter().next()?;
    let (uid, version) = object.version();
    Some((uid, version?))
}

#[test]
fn late_word_of_a_predecessor_changes_nothing() {
    let mut carriers = Carriers::default();
    carriers.apply(WATCH, object("a", 5));
    // The successor was read before the watch reported the deletion of the first object.
    carriers.apply(None, object("b", 9));
    assert_eq!(carriers.apply(None, object("a", 6)), None);
    assert_eq!(carriers.deleted(&object("a", 7)), None);
    assert_eq!(known(&carriers), Some(("b", 9)));
}

#[test]
fn what_is_deleted_stays_deleted() {
    let mut carriers = Carriers::default();
    carriers.apply(WATCH, object("a", 5));
    assert!(carriers.deleted(&object("a", 7)).is_some());
    assert_eq!(carriers.apply(None, object("a", 6)), None);
    assert!(carriers.apply(WATCH, object("b", 8)).is_some());
}

#[test]
fn what_a_list_lacks_is_gone_and_what_it_cannot_know_comes_back() {
    let mut carriers = Carriers::default();
    carriers.apply(WATCH, object("a", 5));
    assert_eq!(carriers.keep_only(3, ROLE_BASED_GROUP, &[]).len(), 1);
    // Written before the deletion, and answered after it.
    assert_eq!(carriers.apply(None, object("a", 6)), None);
    // Read after the list was made; the watch reports it later.
    carriers.apply(None, object("b", 9));
    carriers.keep_only(3, ROLE_BASED_GROUP, &[]);
    assert!(carriers.apply(WATCH, object("b", 9)).is_some());
}

#[test]
fn a_kind_that_is_served_again_brings_its_objects_back() {
    let mut carriers = Carriers::default();
    carriers.apply(WATCH, object("a", 5));
    assert_eq!(carriers.forget_all(3).len(), 1);
    assert!(carriers.apply(WATCH, object("a", 5)).is_some());
}

#[test]
fn a_group_that_its_coordination_leaves_is_looked_at_as_well() {
    let coordination = |of: &str, version: u32| {
        let metadata = json!({ "name": "pd", "namespace": "ns", "uid": "a", "resourceVersion": version.to_string() });
        let object = json!({ "metadata": metadata, "spec": { "groupRef": { "name": of } } });
        CarrierObject::coordination(serde_json::from_value(object).unwrap())
    };
    let group = |name: &str| GroupKey::new("ns", name);
    let mut carriers = Carriers::default();
    assert_eq!(carriers.apply(WATCH, coordination("one", 5)), Some((group("one"), None)));
    assert_eq!(carriers.apply(WATCH, coordination("two", 6)), Some((group("two"), Some(group("one")))));
    assert_eq!(carriers.apply(WATCH, coordination("two", 7)), Some((group("two"), None)));
}
