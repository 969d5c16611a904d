//! ClusterTopologies under several hands at once.

use crate::common::prelude::*;
use crate::rules::turn::{OURS, Turn, group_in, topology};

/// Whoever wins: either the topology stays, or the group's author was warned, or the group itself says that it is missing.
#[tokio::test]
async fn a_deletion_that_meets_a_new_referrer_is_never_silent() {
    let turn = Turn::new("delete-race").await;
    let mut silent = Vec::new();
    for number in 0..12 {
        let name = format!("delete-race-{number}");
        let path = format!("{OURS}/{name}");
        assert_eq!(turn.send("POST", OURS, &topology(OURS, &name, &["rack"])).await.code, 201);
        let group = group_in(&name, &name, "rack");
        let create = turn.post(GROUPS, "rolebasedgroups", &group);
        let (deleted, created) = if number % 2 == 0 {
            tokio::join!(turn.delete(&path), create)
        } else {
            let (created, deleted) = tokio::join!(create, turn.delete(&path));
            (deleted, created)
        };
        assert!(created.code == 201 && matches!(deleted.code, 200 | 403), "{created:?} {deleted:?}");
        if deleted.code == 403 {
            assert!(turn.get(&path).await.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_null()));
        } else if created.warnings.is_empty() {
            silent.push(name);
        } else {
            assert!(created.warnings[0].contains(&name), "{created:?}");
        }
    }
    // Admitted on the strength of a topology that was there: it stays as long as the group, or the group says that it is
    // gone.
    for name in silent {
        eventually(PATIENT, "a topology that stays, or a group that misses it", async || {
            let group = turn.get(&format!("{GROUPS}/namespaces/delete-race/rolebasedgroups/{name}")).await.unwrap();
            let status = group["status"].to_string();
            let is_there = turn.get(&format!("{OURS}/{name}")).await.is_some();
            let says = if is_there { "conditions" } else { "TopologyMissing" };
            if status.contains(says) { Ok(()) } else { Err(format!("there: {is_there}, {status}")) }
        })
        .await;
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn two_writers_end_with_what_both_wrote() {
        let turn = Turn::new("two-writers").await;
        let path = format!("{OURS}/two-writers");
        let created = turn.send("POST", OURS, &topology(OURS, "two-writers", &["host", "rack"])).await;
        assert_eq!(created.code, 201, "{created:?}");
        // Both start from what they read, and read again after a conflict; rolegate writes the status meanwhile.
        let conflicts = std::sync::atomic::AtomicU32::new(0);
        let write = async |label: &str| {
            eventually(PATIENT, "a write without conflict", async || {
                let mut object = turn.get(&path).await.unwrap();
                object["metadata"]["labels"][label] = json!("here");
                let answer = turn.send("PUT", &path, &object).await;
                assert!(matches!(answer.code, 200 | 409), "{answer:?}");
                if answer.code == 200 {
                    return Ok(());
                }
                conflicts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Err("a conflict")
            })
            .await;
        };
        let labels: Vec<_> = (0..8).map(|number| format!("writer-{number}")).collect();
        futures::future::join_all(labels.iter().map(|label| write(label))).await;
        assert!(conflicts.into_inner() > 0, "they did not meet");
        turn.until(&path, "all that was written, and the status", |found| {
            let all = labels.iter().all(|label| found["metadata"]["labels"][label] == "here");
            let kept = found["metadata"]["finalizers"] == json!(["rolegate.dev/topology-protection"]);
            all && kept && found["status"]["currentTopologyLevel"] == "host < rack"
        })
        .await;
        // A write from before is refused, and changes nothing.
        let mut stale = created.body;
        stale["metadata"]["labels"] = json!({ "late": "x" });
        assert_eq!(turn.send("PUT", &path, &stale).await.code, 409);
    }

    #[tokio::test]
    async fn a_group_that_refers_to_a_topology_on_its_way_out_is_warned() {
        let turn = Turn::new("on-its-way").await;
        let mut object = topology(OURS, "on-its-way", &["rack"]);
        object["metadata"]["finalizers"] = json!(["example.com/slow"]);
        assert_eq!(turn.send("POST", OURS, &object).await.code, 201);
        let path = format!("{OURS}/on-its-way");
        assert_eq!(turn.delete(&path).await.code, 200);
        let created = turn.post(GROUPS, "rolebasedgroups", &group_in("late", "on-its-way", "rack")).await;
        let at = "spec.coordination[0].strategy.rollingDeploy.deployTopologyConstraint.clusterTopologyName";
        let leaving = format!(
            r#"{at}: Not found: "on-its-way": this ClusterTopology is being deleted: the batches are held once it is gone"#
        );
        assert_eq!((created.code, created.warnings), (201, vec![leaving]));
        let freed = json!({ "metadata": { "finalizers": null } });
        assert_eq!(turn.send("PATCH", &path, &freed).await.code, 200);
        let late = format!("{GROUPS}/namespaces/on-its-way/rolebasedgroups/late");
        let misses = |group: &Value| group["status"]["summary"]["reason"] == "TopologyMissing";
        turn.until(&late, "the group misses it before it has pods", misses).await;
    }
}
