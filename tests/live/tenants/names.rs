//! Names that no object can have: they never become part of a request.

use crate::common::audit::Request;
use crate::common::prelude::*;
use crate::tenants::stage;

/// As a path or a query they would be other requests.
const IMPOSSIBLE: [&str; 4] = ["/", "a?watch=true", "x/status", "My_Group"];

/// A group that is deployed in steps under a constraint.
fn in_steps(constraint: &Value) -> Value {
    let deploy = json!({ "roleDeployStep": { "prefill": 1 }, "deployTopologyConstraint": constraint });
    let steps = json!([{ "name": "steps", "strategy": { "rollingDeploy": deploy } }]);
    Group::new("llm").role("prefill", 1, 1).coordinated(&steps)
}

#[tokio::test]
async fn a_pod_that_names_an_impossible_group_is_refused_before_anything_is_read() {
    let (stage, _rolegate) = stage("impossible").await.serve().await;
    let account = Account::of(&stage);
    let is_read = |request: &Request| ["get role", "list role"].iter().any(|read| request.what.starts_with(read));
    let reads = |requests: Vec<Request>| requests.into_iter().filter(is_read).count();
    let before = reads(account.requests());
    for name in IMPOSSIBLE {
        let mut pod = Group::new("llm").pod("prefill", "pod", &stage.namespace);
        pod["metadata"]["labels"]["rolegate.dev/group"] = json!(name);
        let answer = stage.post(CORE, "pods", &pod).await;
        let causes = &answer.body["details"]["causes"];
        assert_eq!((answer.code, causes[0]["field"].as_str()), (422, Some("metadata.labels[rolegate.dev/group]")));
        let why = causes[0]["message"].as_str().unwrap();
        assert!(why.starts_with(&format!("Invalid value: {name:?}: no group can have this name: ")), "{why}");
    }
    assert_eq!(reads(account.requests()), before);
}

#[tokio::test]
async fn a_pod_of_an_impossible_pod_group_owner_or_set_is_admitted_without_asking_for_them() {
    let (stage, _rolegate) = stage("impossible-owner").await.serve().await;
    let account = Account::of(&stage);
    let mut pod = Group::new("llm").pod("prefill", "pod", &stage.namespace);
    pod["metadata"]["annotations"] = json!({ "pod-group-name": "x/status" });
    pod["metadata"]["ownerReferences"] = json!([owner("apps/v1", "StatefulSet", "a?watch=true", "u")]);
    let answer = stage.post(CORE, "pods", &pod).await;
    assert_eq!(answer.code, 201, "{answer:?}");
    assert!(answer.warnings.iter().any(|text| text.contains("no PodGroup can have this name")), "{answer:?}");
    let asked = |request: &Request| request.what.contains("podgroups") && request.what.starts_with("get");
    assert!(!account.requests().iter().any(|request| asked(request) || request.name.contains('?')));
}

#[tokio::test]
async fn a_name_in_an_object_is_a_violation_and_no_request() {
    let (stage, _rolegate) = stage("impossible-names").await.serve().await;
    let mut group = in_steps(&json!({ "clusterTopologyName": "../secrets", "topologyLayerName": "rack" }));
    group["metadata"]["annotations"] = json!({ "rolegate.dev/group": "/" });
    let answer = stage.post(GROUPS, "rolebasedgroups", &group).await;
    let fields = |body: &Value| -> Vec<String> {
        let causes = body["details"]["causes"].as_array().unwrap();
        causes.iter().map(|cause| cause["field"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(answer.code, 422, "{answer:?}");
    let topology = "spec.coordination[0].strategy.rollingDeploy.deployTopologyConstraint.clusterTopologyName";
    assert_eq!(fields(&answer.body), ["metadata.annotations[rolegate.dev/group]", topology]);
    let reference = object("rolegate.dev/v1alpha1", "RoleCoordination", "llm").spec(json!({
        "roles": [{ "name": "prefill", "workloadRef": { "kind": "StatefulSet", "name": "prefill/scale" } }],
        "coordination": [{ "name": "s", "strategy": { "segmentPlacement": { "segmentSize": { "prefill": 1 } } } }],
    }));
    let answer = stage.post("/apis/rolegate.dev/v1alpha1", "rolecoordinations", &reference).await;
    assert_eq!((answer.code, fields(&answer.body)), (422, vec!["spec.roles[0].workloadRef.name".to_owned()]));
    let requests = Account::of(&stage).requests();
    assert!(!requests.iter().any(|request| request.what.ends_with("/scale") || request.what.contains("secrets/")));
}

#[tokio::test]
async fn nobody_may_make_a_pod_group() {
    let stage = stage("nobody").await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    let mut caller = launch.caller(&rolegate).await;
    let mut group = in_steps(&json!({ "topologyLayerName": "rack", "podGroupPolicy": { "kai": {} } }));
    group["metadata"]["namespace"] = json!(stage.namespace);
    let (api, version) = ("workloads.x-k8s.io", "v1alpha1");
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "42", "operation": "CREATE", "namespace": stage.namespace, "object": group, "userInfo": { "username": "" },
        "kind": { "group": api, "version": version, "kind": "RoleBasedGroup" },
        "resource": { "group": api, "version": version, "resource": "rolebasedgroups" },
    }});
    let (status, answer) = caller.post("/validate", review.to_string()).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let code = &answer["response"]["status"]["code"];
    assert_eq!((status, code), (200, &json!(403)), "{answer:#}");
}
