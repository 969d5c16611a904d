//! Rights of whoever applies an object: rolegate does not do for them what they may not do themselves.

use crate::common::prelude::*;
use crate::policies::cluster;
use crate::rollouts::support::rolling;
use crate::rules::desk::{Shown, kubectl, stage};

/// Lets a user write RoleCoordinations, and these resources besides.
fn allow(stage: &Stage, user: &str, more: &[Value]) {
    let own = json!({ "apiGroups": ["rolegate.dev"], "resources": ["rolecoordinations"], "verbs": ["*"] });
    cluster::allow(&stage.plane, &stage.namespace, user, &[&[own], more].concat());
}

/// It is applied by this user, and taken.
fn put_as(stage: &Stage, user: &str, object: &Value) {
    let shown = apply_as(stage, user, object);
    assert!(shown.done, "{shown:?}");
}

/// It is applied by this user, and refused in these words.
fn refuses(stage: &Stage, user: &str, object: &Value, words: &[&str]) {
    let shown = apply_as(stage, user, object);
    assert!(!shown.done && words.iter().all(|word| shown.err.contains(word)), "{shown:?}");
}

fn apply_as(stage: &Stage, user: &str, object: &Value) -> Shown {
    kubectl(&stage.plane, &stage.namespace, &["apply", "--as", user, "-f", "-"], &object.to_string())
}

fn with_policy(name: &str, policy: &Value, annotations: &Value) -> Value {
    let deploy = json!({
        "roleDeployStep": { "prefill": 4 },
        "deployTopologyConstraint": { "topologyLayerName": "host", "podGroupPolicy": policy },
    });
    let coordination = json!([{ "name": "pd", "strategy": { "rollingDeploy": deploy } }]);
    let mut object = Group::new(name).role("prefill", 8, 1).numbered(&coordination);
    object["metadata"]["annotations"] = annotations.clone();
    object
}

#[tokio::test]
async fn who_may_not_create_a_pod_group_may_not_ask_for_one() {
    let (stage, _rolegate) = stage("rights").await.serve().await;
    let pod_groups = json!({ "apiGroups": ["scheduling.run.ai"], "resources": ["podgroups"], "verbs": ["create"] });
    allow(&stage, "without", &[]);
    allow(&stage, "with", &[pod_groups]);
    let kai = with_policy("llm", &json!({ "kai": { "queue": "q" } }), &json!({}));
    let path = "spec.coordination[0].strategy.rollingDeploy.deployTopologyConstraint.podGroupPolicy";
    let reason = format!(
        r#"{path}: Forbidden: whoever sets it must be allowed to create podgroups.scheduling.run.ai in namespace "rights""#
    );
    refuses(&stage, "without", &kai, &["(Forbidden)", &reason]);
    // The right over one scheduler's PodGroups is none over another's.
    let volcano = with_policy("llm", &json!({ "volcanoScheduling": {} }), &json!({}));
    refuses(&stage, "with", &volcano, &["podgroups.scheduling.volcano.sh"]);
    put_as(&stage, "with", &kai);
    // What is stored stays, also when somebody without the right changes something else.
    let mut changed = kai;
    changed["metadata"]["annotations"] = json!({ "rolegate.dev/discovery": "disabled" });
    let shown = apply_as(&stage, "without", &changed);
    assert!(shown.done && shown.warnings().contains(&reason.as_str()), "{shown:?}");
    // Without a policy nobody needs the right.
    put_as(&stage, "without", &with_policy("plain", &Value::Null, &json!({})));
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn who_may_not_get_an_object_may_not_wait_for_it() {
        let (stage, _rolegate) = stage("rights-ready-when").await.serve_with("ready-kinds", "Job=jobs.v1.batch").await;
        allow(&stage, "without", &[]);
        allow(&stage, "with", &[json!({ "apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"] })]);
        let waiting_for = |api_version: &str, kind: &str| {
            let object =
                json!({ "apiVersion": api_version, "kind": kind, "name": "warm-$(SEGMENT)", "condition": "Complete" });
            let waits = json!({ "readyWhen": { "object": object } });
            Group::new("llm").role("prefill", 8, 4).coordination_of_numbers(&waits)
        };
        let path = "spec.coordination[0].strategy.segmentPlacement.readyWhen.object: Forbidden";
        let reason = format!("{path}: whoever names it must be allowed to get Job.batch in namespace");
        refuses(&stage, "without", &waiting_for("batch/v1", "Job"), &["(Forbidden)", &reason]);
        // Nobody may wait for a kind that rolegate does not watch.
        let reason = format!("{path}: must be of a kind that rolegate watches: `--ready-kinds` does not name Pod");
        refuses(&stage, "with", &waiting_for("v1", "Pod"), &[&reason]);
        put_as(&stage, "with", &waiting_for("batch/v1", "Job"));
    }

    /// By a setting, and by hand.
    #[tokio::test]
    async fn who_may_not_delete_pods_may_not_send_a_rollout_back() {
        let (stage, _rolegate) = stage("rights-rollback").await.serve_with("allow", "recovery").await;
        allow(&stage, "without", &[]);
        allow(&stage, "with", &[json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["delete"] })]);
        let rolled = |name: &str, on_failure: &str, annotations: &Value| {
            let roll = rolling(json!({ "maxSkew": "10%", "onFailure": on_failure }));
            let mut object = Group::new(name).role("prefill", 2, 1).role("decode", 2, 1).numbered(&roll);
            object["metadata"]["annotations"] = annotations.clone();
            object
        };
        let why = "Forbidden: whoever sets it must be allowed to delete pods in namespace";
        let back = rolled("llm", "Rollback", &json!({}));
        let path = "spec.coordination[0].strategy.rollingUpdate.onFailure";
        refuses(&stage, "without", &back, &["(Forbidden)", &format!("{path}: {why}")]);
        put_as(&stage, "with", &back);
        put_as(&stage, "without", &rolled("plain", "Pause", &json!({})));
        let key = "rolegate.dev/rollout-rolled-back-at";
        let asked = rolled("plain", "Pause", &json!({ key: "2026-01-01T00:00:00Z" }));
        refuses(&stage, "without", &asked, &["(Forbidden)", &format!("metadata.annotations[{key}]: {why}")]);
        put_as(&stage, "with", &asked);
    }

    #[tokio::test]
    async fn the_answer_is_403_and_names_the_field() {
        let (stage, _rolegate) = stage("rights-code").await.serve().await;
        allow(&stage, "without", &[]);
        let object = with_policy("llm", &json!({ "kai": {} }), &json!({})).to_string();
        let create = ["create", "--as", "without", "-f", "-", "-v=8"];
        let shown = kubectl(&stage.plane, &stage.namespace, &create, &object);
        assert!(!shown.done, "{shown:?}");
        assert!(shown.err.contains(r#""code":403"#) || shown.err.contains("403 Forbidden"), "{shown:?}");
    }
}
