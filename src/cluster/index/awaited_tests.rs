use serde_json::{Value, json};

use super::*;
use crate::build;
use crate::cluster::index::CarrierObject;
use crate::cluster::index::adoption_tests::stored;

const JOB: ObjectKind = ObjectKind { group: "batch", version: "v1", kind: "Job", plural: "jobs", namespaced: true };

fn job(namespace: &str, name: &str, status: &str) -> ConditionedObject {
    let conditions = json!([{ "type": "Complete", "status": status }]);
    let object = json!({"metadata": {"namespace": namespace, "name": name}, "status": {"conditions": conditions}});
    serde_json::from_value(object).unwrap()
}

/// A group in namespace `ns` that waits for Jobs, or for nothing.
fn group(name: &str, waits: bool) -> CarrierObject {
    let object = json!({"object": {"apiVersion": "batch/v1", "kind": "Job", "name": "warm-$(SEGMENT)"}});
    let segments = json!({"segmentSize": {"a": 1}, "readyWhen": if waits { object } else { Value::Null }});
    let coordination = json!([build::coordination("s", &json!({"segmentPlacement": segments}))]);
    stored(build::group(name, &[("a", 2)], &coordination), name, if waits { 1 } else { 2 }, &json!({}))
}

fn index() -> Index {
    let mut index = Index::default();
    index.apply_carrier(None, group("waits", true));
    index.apply_carrier(None, group("other", false));
    index.take_dirty();
    index
}

fn waits() -> GroupKey {
    GroupKey::new("ns", "waits")
}

#[test]
fn a_change_of_an_object_concerns_the_groups_of_its_namespace_that_name_its_kind() {
    let mut index = index();
    index.await_kind(JOB, None);
    let mut change = |change| {
        index.awaited_change(JOB, None, change);
        index.take_dirty().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(change(Change::Listed(vec![])), [waits()]);
    assert_eq!(change(Change::Applied(job("ns", "warm-0", "False"))), [waits()]);
    assert_eq!(change(Change::Applied(job("ns", "warm-0", "False"))), [], "nothing has changed");
    assert_eq!(change(Change::Applied(job("elsewhere", "warm-0", "True"))), []);
    assert_eq!(change(Change::Applied(job("ns", "warm-0", "True"))), [waits()]);
    assert_eq!(change(Change::Deleted(job("ns", "warm-0", "True"))), [waits()]);
    assert_eq!(change(Change::NotServed), [waits()]);
    assert_eq!(change(Change::NotServed), [], "it is told again and again");
}

#[test]
fn only_kinds_that_a_group_names_are_waited_for() {
    let mut index = index();
    assert_eq!(index.waited_for(), BTreeSet::from([AwaitedKind::of(JOB)]));
    index.apply_carrier(None, group("waits", false));
    assert_eq!(index.waited_for(), BTreeSet::new());
}

#[test]
fn what_is_known_of_a_kind_is_told_apart() {
    let mut index = index();
    let seen = |index: &Index| index.snapshot(&waits()).objects;
    assert_eq!(seen(&index), AwaitedObjects::Unknown, "a command has not looked at objects");
    index.await_no_kinds();
    assert_eq!(seen(&index), AwaitedObjects::Seen(BTreeMap::new()));
    index.await_kind(JOB, Some("ns"));
    index.await_kind(JOB, Some("elsewhere"));
    let of = |kind| AwaitedObjects::Seen(BTreeMap::from([(AwaitedKind::of(JOB), kind)]));
    assert_eq!(seen(&index), of(SeenKind::Unread));
    index.awaited_change(JOB, Some("elsewhere"), Change::Listed(vec![job("elsewhere", "warm-0", "True")]));
    assert_eq!(seen(&index), of(SeenKind::Unread), "the list of another namespace says nothing of this one");
    index.awaited_change(JOB, Some("ns"), Change::Listed(vec![job("ns", "warm-0", "True")]));
    let warm = Arc::new(SeenObject::of(&job("ns", "warm-0", "True")));
    assert_eq!(seen(&index), of(SeenKind::Known(Arc::new(BTreeMap::from([("warm-0".into(), warm)])))));
    assert_eq!(index.snapshot(&GroupKey::new("ns", "other")).objects, AwaitedObjects::Unknown, "it names no object");
}
