//! ClusterTopologies, from creation until nothing refers to them any more.

use crate::common::prelude::*;
use crate::rules::desk::{causes, kubectl, put, refused};
use crate::rules::turn::{KEP75, OURS, Turn, group_in, topology};

const FINALIZER: &str = "rolegate.dev/topology-protection";

fn is_kept(found: &Value) -> bool {
    found["metadata"]["finalizers"] == json!([FINALIZER])
}

#[tokio::test]
async fn the_finalizer_is_there_from_creation_and_the_status_follows() {
    let turn = Turn::new("creation").await;
    for (path, name) in [(OURS, "creation-ours"), (KEP75, "creation-kep75")] {
        let created = turn.send("POST", path, &topology(path, name, &["Host", "TOR", "Pod"])).await;
        assert!(created.code == 201 && is_kept(&created.body), "{created:?}");
        let said = json!({ "currentTopologyLevel": "Host < TOR < Pod", "validate": true });
        turn.until(&format!("{path}/{name}"), "its status", |found| found["status"] == said).await;
    }
    for kind in ["clustertopologies.rolegate.dev", "clustertopologies.workloads.x-k8s.io"] {
        let table = kubectl(&turn.plane, &turn.namespace, &["get", kind], "").out;
        assert!(table.contains("Host < TOR < Pod"), "{table}");
    }
}

#[tokio::test]
async fn one_that_was_made_while_rolegate_was_away_is_caught_up_with() {
    let mut turn = Turn::alone("away").await;
    for (path, name) in [(OURS, "away-ours"), (KEP75, "away-kep75")] {
        let created = turn.send("POST", path, &topology(path, name, &["host", "rack"])).await;
        assert!(created.code == 201 && created.body["metadata"]["finalizers"].is_null(), "{created:?}");
    }
    let mut wrong = topology(OURS, "away-wrong", &["host", "rack"]);
    wrong["spec"]["layers"][1]["key"] = wrong["spec"]["layers"][0]["key"].clone();
    put(&turn, &wrong);
    turn.start().await;
    for (path, name) in [(OURS, "away-ours"), (KEP75, "away-kep75")] {
        let done = |found: &Value| is_kept(found) && found["status"]["currentTopologyLevel"] == "host < rack";
        turn.until(&format!("{path}/{name}"), "finalizer and status", done).await;
    }
    let said = |found: &Value| is_kept(found) && found["status"]["validate"] == false;
    turn.until(&format!("{OURS}/away-wrong"), "that it is not valid", said).await;
}

#[tokio::test]
async fn its_layers_do_not_change() {
    let turn = Turn::new("immutable").await;
    for (path, name) in [(OURS, "immutable-ours"), (KEP75, "immutable-kep75")] {
        put(&turn, &topology(path, name, &["host", "rack"]));
        // The definition says so itself, so that it holds without rolegate as well.
        let reason = "spec: Invalid value: the spec may not change";
        refused(&turn, &topology(path, name, &["host", "rack", "block"]), reason);
        let mut labelled = topology(path, name, &["host", "rack"]);
        labelled["metadata"]["labels"] = json!({ "team": "a" });
        put(&turn, &labelled);
    }
}

#[tokio::test]
async fn one_that_is_referred_to_stays_and_goes_when_nothing_refers_to_it() {
    let turn = Turn::new("in-use").await;
    for (path, name) in [(OURS, "in-use-ours"), (KEP75, "in-use-kep75")] {
        put(&turn, &topology(path, name, &["host", "rack"]));
        put(&turn, &group_in("llm", name, "rack"));
        let mut other = group_in("other", name, "host");
        other["apiVersion"] = json!("rolegate.dev/v1alpha1");
        other["kind"] = json!("RoleCoordination");
        put(&turn, &other);
        let refused = turn.delete(&format!("{path}/{name}")).await;
        let why = "metadata.name: Forbidden: may not be deleted while it is referred to by RoleBasedGroup in-use/llm, RoleCoordination in-use/other";
        assert_eq!((refused.code, causes(&refused)), (403, vec![why.to_owned()]), "{refused:?}");
        let shown = kubectl(&turn.plane, "in-use", &["delete", "-f", "-"], &topology(path, name, &[]).to_string());
        assert!(!shown.done && shown.err.contains("(Forbidden)") && shown.err.contains(why), "{shown:?}");
        turn.kubectl(&["delete", "rolebasedgroups.workloads.x-k8s.io/llm", "rcoord/other"]);
        let gone = turn.delete(&format!("{path}/{name}")).await;
        assert_eq!(gone.code, 200, "{gone:?}");
        turn.until(&format!("{path}/{name}"), "the end of the topology", Value::is_null).await;
    }
}

#[tokio::test]
async fn a_deletion_that_nobody_refused_waits_for_the_last_referrer() {
    let mut turn = Turn::new("unnoticed").await;
    put(&turn, &topology(OURS, "unnoticed", &["host", "rack"]));
    put(&turn, &group_in("one", "unnoticed", "rack"));
    put(&turn, &group_in("two", "unnoticed", "host"));
    turn.stop();
    let path = format!("{OURS}/unnoticed");
    let marked = turn.delete(&path).await;
    assert!(marked.code == 200 && is_kept(&marked.body), "{marked:?}");
    turn.start().await;
    let group = |name: &str| format!("/apis/workloads.x-k8s.io/v1alpha1/namespaces/unnoticed/rolebasedgroups/{name}");
    assert_eq!(turn.delete(&group("one")).await.code, 200);
    // Longer than it takes to look again: one is left, and so is the topology.
    let time = Duration::from_secs(3);
    let look = async || turn.get(&path).await.unwrap_or_default();
    holds(time, "the topology is kept", look, is_kept).await;
    assert_eq!(turn.delete(&group("two")).await.code, 200);
    turn.until(&path, "the end of the topology", Value::is_null).await;
}
