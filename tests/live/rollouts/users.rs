//! What users do to a workload in the middle of a rollout: the live partition stays, what they asked for is kept.

use crate::common::prelude::*;
use crate::rollouts::support::{Duo, FROZEN};

/// A rollout that stands: one pod of each role is new and does not get ready.
async fn standing(namespace: &str) -> Duo {
    let bounds = json!({ "maxSkew": "25%", "maxUnavailable": 1 });
    let duo = Duo::serve(namespace, 8, 4, bounds, &[]).await.ready().await;
    duo.edit_both_held_back("registry.invalid/x:2");
    duo.until_partition("prefill", 7).await;
    duo.until_partition("decode", 3).await;
    duo.stage.pods.until("one of each is new", |now| now.count_all(|pod| duo.is_new(pod)) == 2).await;
    duo
}

/// The manifest of prefill as the standing rollout has it, with a partition or without.
fn manifest(duo: &Duo, partition: Option<u32>) -> Value {
    let mut set = duo.group.claimed("prefill", &duo.stage.namespace);
    set["spec"]["template"]["metadata"]["annotations"] = json!({ "kwok.rolegate.dev/not-ready": "" });
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.invalid/x:2");
    if let Some(partition) = partition {
        set["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": partition } });
    }
    set
}

async fn goes_on_to_the_end(duo: &Duo) {
    let ready = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
    duo.let_ready_until(|_| true, |now| now.count_all(ready) == 12).await;
    duo.until_over().await;
    duo.assert_bounds(25, &|_| 1);
}

#[tokio::test]
async fn server_side_apply_conflicts_only_over_the_partition() {
    let duo = standing("server-side").await;
    let apply = |manifest: &Value, more: &[&str]| {
        let arguments = [&["-n", &duo.stage.namespace, "apply", "--server-side", "-f", "-"], more].concat();
        duo.stage.plane.kubectl(&arguments, &manifest.to_string())
    };
    let refused = apply(&manifest(&duo, Some(0)), &["--field-manager=ci"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("partition") && said.contains("rolegate"), "{said}");
    // Without a partition there is nothing to argue about.
    let mut without = manifest(&duo, None);
    without["metadata"]["annotations"] = json!({ "example.com/by": "ci" });
    let applied = apply(&without, &["--field-manager=ci"]);
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    assert_eq!(duo.partition("prefill").await, 7);
    // Forced, it is overruled while the rollout is open, and is where that stops.
    let forced = apply(&manifest(&duo, Some(2)), &["--field-manager=ci", "--force-conflicts"]);
    assert!(forced.status.success(), "{}", String::from_utf8_lossy(&forced.stderr));
    assert_eq!((duo.partition("prefill").await, duo.user_partition("prefill").await), (7, Some("2".to_owned())));
    let ready = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
    duo.let_ready_until(|_| true, |now| now.count_all(ready) == 10).await;
    duo.until_partition("prefill", 2).await;
    // By now it asks for what rolegate has written. Both own the field, which stays when this manager leaves it out.
    assert!(apply(&manifest(&duo, Some(2)), &["--field-manager=ci"]).status.success());
    assert!(apply(&manifest(&duo, None), &["--field-manager=ci"]).status.success());
    assert_eq!(duo.user_partition("prefill").await, Some("0".to_owned()));
    goes_on_to_the_end(&duo).await;
}

/// KEP-75, Workload Label Example.
#[tokio::test]
async fn a_claimed_workload_is_labelled_when_it_is_made() {
    let (stage, _rolegate) = Stage::new("workload-labels").await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    stage.create_group(&group).await;
    let key = |name: &str| format!("rolebasedgroup.workloads.x-k8s.io/{name}");
    for (role, size) in [("prefill", "2"), ("decode", "1")] {
        let mut set = group.claimed(role, &stage.namespace);
        // Somebody's selector may count on it.
        set["metadata"]["labels"][key("role")] = json!("theirs");
        let made = stage.create(set).await;
        let labels = made.metadata.labels.unwrap();
        let expected = [("name", "llm"), ("role", "theirs"), ("role-subgroup-size", size)];
        assert!(expected.iter().all(|(name, value)| labels[&key(name)] == *value), "{labels:?}");
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn applying_the_same_manifest_again_changes_nothing() {
        let duo = standing("apply-again").await;
        for _ in 0..2 {
            duo.kubectl(&["apply", "-f", "-"], &manifest(&duo, Some(0)).to_string());
            assert_eq!(duo.partition("prefill").await, 7);
            assert_eq!(duo.user_partition("prefill").await, Some("0".to_owned()));
        }
        // Replacing the object without a partition asks for the default, which is 0.
        let mut whole = serde_json::to_value(duo.set("prefill").await).unwrap();
        whole["spec"].as_object_mut().unwrap().remove("updateStrategy");
        duo.kubectl(&["replace", "-f", "-"], &whole.to_string());
        assert_eq!(duo.partition("prefill").await, 7);
        goes_on_to_the_end(&duo).await;
        assert_eq!(duo.partition("prefill").await, 0);
    }

    #[tokio::test]
    async fn a_restart_in_the_middle_freezes_again() {
        let duo = standing("restart").await;
        duo.kubectl(&["rollout", "restart", &duo.target("prefill")], "");
        assert_eq!(duo.user_partition("prefill").await, Some("0".to_owned()));
        duo.kubectl(&["rollout", "restart", &duo.target("decode")], "");
        goes_on_to_the_end(&duo).await;
    }

    /// Scaling comes as `statefulsets/scale`, of which the webhook is not asked: the partition is not a part of it.
    #[tokio::test]
    async fn scaling_in_the_middle_keeps_the_partition() {
        let duo = standing("scale").await;
        let larger = duo.group.clone().role("prefill", 7, 1);
        duo.stage.patch_group(&duo.group, json!({ "spec": { "roles": larger.object()["spec"]["roles"] } })).await;
        duo.kubectl(&["scale", &duo.target("prefill"), "--replicas=7"], "");
        duo.stage.pods.until("the new one went", |now| now.count("prefill", |_| true) == 7).await;
        duo.until_partition("prefill", 6).await;
        let ready = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
        duo.let_ready_until(|_| true, |now| now.count_all(ready) == 11).await;
        duo.until_over().await;
    }

    /// A canary by the workload's own partition: it is a floor, and goes on when its user lowers it.
    #[tokio::test]
    async fn the_partition_of_its_user_is_a_floor() {
        let bounds = json!({ "maxSkew": "50%", "maxUnavailable": 1 });
        let duo = Duo::serve("user-floor", 4, 4, bounds, &[]).await.ready().await;
        for role in ["prefill", "decode"] {
            let template = json!({ "spec": { "containers": [{ "name": "main", "image": "registry.invalid/x:2" }] } });
            let patch =
                json!({ "spec": { "template": template, "updateStrategy": { "rollingUpdate": { "partition": 3 } } } });
            duo.kubectl(&["patch", &duo.target(role), "--type=strategic", "-p", &patch.to_string()], "");
        }
        let paused = |status: &Status| ["prefill", "decode"].iter().all(|role| status.state(role) == "Paused");
        duo.statuses.until("both pause", paused).await;
        duo.until_new_ordinals("prefill", 3..4).await;
        duo.until_new_ordinals("decode", 3..4).await;
        for role in ["prefill", "decode"] {
            let patch = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } }).to_string();
            duo.kubectl(&["patch", &duo.target(role), "-p", &patch], "");
        }
        duo.until_over().await;
        duo.assert_bounds(50, &|_| 1);
    }

    /// What `kubectl rollout status` says: a partition is all that it knows of.
    #[tokio::test]
    async fn rollout_status_takes_a_frozen_workload_for_done() {
        let bounds = json!({ "maxSkew": "25%" });
        let duo = Duo::serve("rollout-status", 4, 2, bounds, &[("settle", "1h")]).await.ready().await;
        duo.set_image("prefill", "registry.invalid/x:2");
        assert_eq!(duo.partition("prefill").await, FROZEN);
        let said = duo.kubectl(&["rollout", "status", &duo.target("prefill"), "--timeout=20s"], "");
        assert!(said.contains("partitioned roll out complete: 0 new pods have been updated"), "{said}");
    }
}
