use serde_json::json;

use super::adoption_tests::{key, running};
use super::*;
use crate::plan::LossKind;

/// Returns a running pod at a resource version; `more` is merged into its metadata.
fn pod(uid: &str, version: u64, more: &serde_json::Value, status: &serde_json::Value) -> Pod {
    running(("p", "prefill"), 0, (uid, version), &json!({ "metadata": more, "status": status }))
}

fn leaving(index: &Index) -> Vec<String> {
    index.snapshot(&key()).leaving.iter().map(|pod| pod.pod.uid.to_string()).collect()
}

#[test]
fn a_pod_that_is_deleted_is_there_until_it_is_gone_and_what_it_said_stays() {
    let (none, deleted) = (json!({}), json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    let mut index = Index::default();
    index.pod_change(0, Change::Applied(pod("a", 1, &none, &none)));
    assert!(leaving(&index).is_empty() && index.last_words(&key(), "prefill", 0).is_none());
    index.pod_change(0, Change::Applied(pod("a", 2, &deleted, &none)));
    assert_eq!((leaving(&index), index.snapshot(&key()).pods.is_empty()), (vec!["a".to_owned()], true));
    index.take_dirty();
    index.pod_change(0, Change::Deleted(pod("a", 3, &deleted, &none)));
    assert!(leaving(&index).is_empty() && index.take_dirty().contains(&key()), "who waits for it hears of it");
    index.pod_change(0, Change::Applied(pod("a", 2, &deleted, &none)));
    assert!(leaving(&index).is_empty(), "what comes late does not bring it back");
    let words = index.last_words(&key(), "prefill", 0).unwrap();
    assert_eq!((words.kind, words.pod.as_str(), words.node.as_str()), (LossKind::PodDeleted, "p-0", "n"));

    index.pod_change(0, Change::Applied(pod("b", 4, &none, &none)));
    let failed = json!({ "phase": "Failed", "reason": "Evicted" });
    index.pod_change(0, Change::Applied(pod("b", 5, &none, &failed)));
    assert!(leaving(&index).is_empty(), "one that has failed does not run");
    index.pod_change(0, Change::Deleted(pod("b", 6, &deleted, &none)));
    assert_eq!(index.last_words(&key(), "prefill", 0).unwrap().kind, LossKind::PodEvicted);
}

#[test]
fn a_pod_that_is_on_its_way_out_when_it_is_first_seen_is_there_until_a_list_lacks_it_or_another_has_its_name() {
    let (none, deleted) = (json!({}), json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    let mut index = Index::default();
    index.pod_change(0, Change::Listed(vec![pod("a", 1, &deleted, &none)]));
    assert_eq!(leaving(&index), ["a"]);
    index.pod_change(0, Change::Listed(Vec::new()));
    assert!(leaving(&index).is_empty());
    index.pod_change(0, Change::Applied(pod("c", 7, &deleted, &none)));
    assert_eq!(leaving(&index), ["c"]);
    index.pod_change(0, Change::Applied(pod("d", 8, &none, &none)));
    assert!(leaving(&index).is_empty());
}
