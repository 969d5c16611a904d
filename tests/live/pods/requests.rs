//! What is asked of the API server while pods come in: nothing that the caches know, but for the group itself.

use crate::common::prelude::*;
use crate::pods::support::{BATCH, rolling_deploy, stage};

#[tokio::test]
async fn a_hundred_new_pods_cost_no_read_but_that_of_their_group() {
    let stage = stage("no-reads").await.with_room(102).await;
    let account = Account::of(&stage);
    let _rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("prefill", 1, 10).role("decode", 1, 10);
    let strategy = rolling_deploy("host", "soft", &json!({ "prefill": 10, "decode": 10 }));
    crate::pods::support::deploy(&stage, &group, &strategy).await;
    stage.pods.until("the first of each role", |now| now.count_all(Pod::is_ready) == 2).await;

    // The group is judged when it changes, by what is there then: that is not the path of pods.
    let group = group.role("prefill", 51, 10).role("decode", 51, 10);
    stage.patch_group(&group, json!({ "spec": { "roles": group.object()["spec"]["roles"] } })).await;
    stage.statuses(&group).until("the loop knows", |status| status.ready().ends_with("2/102 pods ready")).await;
    let before = account.counts();
    assert!(before.keys().any(|what| what.starts_with("list ")), "{before:?}");
    for role in ["prefill", "decode"] {
        stage.scale_set(&group, role, 51).await;
    }
    stage.pods.until("100 more", |now| now.count_all(Pod::is_scheduled) == 102).await;
    stage.pods.now(|now| assert!(now.all().all(|pod| pod.labels.contains_key(BATCH))));
    let mut new = eventually(PATIENT, "the releases are in the log", async || {
        let mut new = account.counts();
        for (what, count) in &before {
            *new.entry(what.clone()).or_default() -= count;
        }
        new.retain(|what, count| *count > 0 && !what.ends_with(" leases"));
        let released = new.get("patch pods").copied().unwrap_or_default();
        if released >= 100 { Ok(new) } else { Err(format!("{new:?}")) }
    })
    .await;
    // The group is looked at before pods go that came after the last look: once for those that came meanwhile.
    for carrier in ["get rolebasedgroups", "get rolecoordinations"] {
        let looks = new.remove(carrier).unwrap_or_default();
        assert!(looks <= 100, "{carrier}: {looks} for 100 pods");
    }
    // Beside that, only what the loop writes, and watches that ended and were taken up again.
    let read: Vec<_> = new.iter().filter(|(what, _)| what.starts_with("get ") || what.starts_with("list ")).collect();
    assert!(read.is_empty(), "{new:?}");
    let known = [
        "patch pods",
        "patch rolebasedgroups/status",
        "update rolebasedgroups/status",
        "create events",
        "patch events",
    ];
    let writes = new.keys().filter(|what| !what.starts_with("watch "));
    let others: Vec<_> = writes.filter(|what| !known.contains(&what.as_str())).collect();
    assert!(others.is_empty(), "{new:?}");
}
