//! Rights of whoever applies an object: rolegate does not do for them what they may not do themselves.

use crate::common::prelude::*;
use crate::rules::desk::{Shown, coordination, kubectl, put, stage};

/// Lets a user write RoleCoordinations, and these resources besides.
fn allow(stage: &Stage, user: &str, more: &[Value]) {
    let own = json!({ "apiGroups": ["rolegate.dev"], "resources": ["rolecoordinations"], "verbs": ["*"] });
    let rules: Vec<_> = [own].into_iter().chain(more.iter().cloned()).collect();
    let rbac = "rbac.authorization.k8s.io";
    let head = |kind: &str| json!({ "apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": { "name": user } });
    let (mut role, mut binding) = (head("Role"), head("RoleBinding"));
    role["rules"] = json!(rules);
    binding["roleRef"] = json!({ "apiGroup": rbac, "kind": "Role", "name": user });
    binding["subjects"] = json!([{ "apiGroup": rbac, "kind": "User", "name": user }]);
    put(stage, &role);
    put(stage, &binding);
}

fn apply_as(stage: &Stage, user: &str, object: &Value) -> Shown {
    kubectl(&stage.plane, &stage.namespace, &["apply", "--as", user, "-f", "-"], &object.to_string())
}

fn with_policy(name: &str, policy: &Value, annotations: &Value) -> Value {
    let deploy = json!({
        "roleDeployStep": { "prefill": 4 },
        "deployTopologyConstraint": { "topologyLayerName": "host", "podGroupPolicy": policy },
    });
    let spec = json!({
        "roles": [{ "name": "prefill", "replicas": 8 }],
        "coordination": [{ "name": "pd", "strategy": { "rollingDeploy": deploy } }],
    });
    let mut object = coordination(name, &spec);
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
    let shown = apply_as(&stage, "without", &kai);
    let path = "spec.coordination[0].strategy.rollingDeploy.deployTopologyConstraint.podGroupPolicy";
    let reason = format!(
        r#"{path}: Forbidden: whoever sets it must be allowed to create podgroups.scheduling.run.ai in namespace "rights""#
    );
    assert!(!shown.done && shown.err.contains("(Forbidden)") && shown.err.contains(&reason), "{shown:?}");
    // The right over one scheduler's PodGroups is none over another's.
    let volcano = with_policy("llm", &json!({ "volcanoScheduling": {} }), &json!({}));
    let shown = apply_as(&stage, "with", &volcano);
    assert!(!shown.done && shown.err.contains("podgroups.scheduling.volcano.sh"), "{shown:?}");
    let shown = apply_as(&stage, "with", &kai);
    assert!(shown.done, "{shown:?}");
    // What is stored stays, also when somebody without the right changes something else.
    let shown = apply_as(
        &stage,
        "without",
        &with_policy("llm", &json!({ "kai": { "queue": "q" } }), &json!({ "rolegate.dev/discovery": "disabled" })),
    );
    assert!(shown.done && shown.warnings().contains(&reason.as_str()), "{shown:?}");
    // Without a policy nobody needs the right.
    let shown = apply_as(&stage, "without", &with_policy("plain", &Value::Null, &json!({})));
    assert!(shown.done, "{shown:?}");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn who_may_not_get_an_object_may_not_wait_for_it() {
        let stage = stage("rights-ready-when").await;
        let _rolegate = stage.launch().flag("ready-kinds", "Job=jobs.v1.batch").start().await;
        allow(&stage, "without", &[]);
        allow(&stage, "with", &[json!({ "apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"] })]);
        let waiting_for = |api_version: &str, kind: &str| {
            let object =
                json!({ "apiVersion": api_version, "kind": kind, "name": "warm-$(SEGMENT)", "condition": "Complete" });
            let segments = json!({ "segmentSize": { "prefill": 4 }, "readyWhen": { "object": object } });
            let spec = json!({
                "roles": [{ "name": "prefill", "replicas": 8 }],
                "coordination": [{ "name": "pd", "strategy": { "segmentPlacement": segments } }],
            });
            coordination("llm", &spec)
        };
        let shown = apply_as(&stage, "without", &waiting_for("batch/v1", "Job"));
        let path = "spec.coordination[0].strategy.segmentPlacement.readyWhen.object";
        let reason = format!("{path}: Forbidden: whoever names it must be allowed to get Job.batch in namespace");
        assert!(!shown.done && shown.err.contains(&reason), "{shown:?}");
        // Nobody may wait for a kind that rolegate does not watch.
        let shown = apply_as(&stage, "with", &waiting_for("v1", "Pod"));
        let reason =
            format!("{path}: Forbidden: must be of a kind that rolegate watches: `--ready-kinds` does not name Pod");
        assert!(!shown.done && shown.err.contains(&reason), "{shown:?}");
        let shown = apply_as(&stage, "with", &waiting_for("batch/v1", "Job"));
        assert!(shown.done, "{shown:?}");
    }

    /// By a setting, and by hand.
    #[tokio::test]
    async fn who_may_not_delete_pods_may_not_send_a_rollout_back() {
        let stage = stage("rights-rollback").await;
        let _rolegate = stage.launch().flag("allow", "recovery").start().await;
        allow(&stage, "without", &[]);
        allow(&stage, "with", &[json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["delete"] })]);
        let rolled = |name: &str, on_failure: &str, annotations: &Value| {
            let roll = json!({ "rollingUpdate": { "maxSkew": "10%", "onFailure": on_failure } });
            let spec = json!({
                "roles": [{ "name": "prefill", "replicas": 2 }, { "name": "decode", "replicas": 2 }],
                "coordination": [{ "name": "roll", "roles": ["prefill", "decode"], "strategy": roll }],
            });
            let mut object = coordination(name, &spec);
            object["metadata"]["annotations"] = annotations.clone();
            object
        };
        let refuses = |shown: &Shown, path: &str| {
            let reason = format!("{path}: Forbidden: whoever sets it must be allowed to delete pods in namespace");
            assert!(!shown.done && shown.err.contains("(Forbidden)") && shown.err.contains(&reason), "{shown:?}");
        };
        let back = rolled("llm", "Rollback", &json!({}));
        refuses(&apply_as(&stage, "without", &back), "spec.coordination[0].strategy.rollingUpdate.onFailure");
        let shown = apply_as(&stage, "with", &back);
        assert!(shown.done, "{shown:?}");
        let shown = apply_as(&stage, "without", &rolled("plain", "Pause", &json!({})));
        assert!(shown.done, "{shown:?}");
        let key = "rolegate.dev/rollout-rolled-back-at";
        let asked = rolled("plain", "Pause", &json!({ key: "2026-01-01T00:00:00Z" }));
        refuses(&apply_as(&stage, "without", &asked), &format!("metadata.annotations[{key}]"));
        let shown = apply_as(&stage, "with", &asked);
        assert!(shown.done, "{shown:?}");
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
