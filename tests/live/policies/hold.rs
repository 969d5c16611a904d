//! Pods are held by the API server itself: there is no webhook here.

use k8s_openapi::api::core::v1::Pod;

use crate::common::prelude::*;
use crate::policies::cluster::{WITH_POLICIES, define_ours};
use crate::policies::labeller;

const GATE: &str = "rolegate.dev/hold";

/// A client, and a namespace where pods are held.
async fn scene(name: &str) -> Client {
    let client = WITH_POLICIES.get().client().await;
    make_namespace(&client, name, &json!({"rolegate.dev/hold": "always"})).await;
    let pod = pod(&json!({"rolegate.dev/group": "probe"}), &json!({}));
    until_is("the policy is in force", async || gates(&client, name, pod.clone()).await, [GATE]).await;
    client
}

fn pod(labels: &Value, spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"generateName": "p-", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "none"}]}});
    json_patch::merge(&mut pod["spec"], spec);
    pod
}

/// The gates that a pod would be born with.
async fn gates(client: &Client, namespace: &str, pod: Value) -> Vec<String> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let born = Api::<Pod>::namespaced(client.clone(), namespace).create(&params, &typed(pod)).await.unwrap();
    born.spec.unwrap().scheduling_gates.into_iter().flatten().map(|gate| gate.name).collect()
}

#[tokio::test]
async fn pods_that_name_a_group_are_born_held() {
    let client = scene("hold-schemes").await;
    let keys = ["rolegate.dev/group", "rbg.workloads.x-k8s.io/group-name", "rolebasedgroup.workloads.x-k8s.io/name"];
    for key in keys {
        assert_eq!(gates(&client, "hold-schemes", pod(&json!({key: "llm"}), &json!({}))).await, [GATE], "{key}");
        let none: [&str; 0] = [];
        assert_eq!(gates(&client, "hold-schemes", pod(&json!({key: ""}), &json!({}))).await, none, "{key}: empty");
    }
    let in_group = json!({"rolegate.dev/group": "llm"});
    // Gates of others stay, and ours comes once.
    let with = |names: &[&str]| {
        let gates: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        pod(&in_group, &json!({"schedulingGates": gates}))
    };
    assert_eq!(gates(&client, "hold-schemes", with(&["example.com/other"])).await, ["example.com/other", GATE]);
    assert_eq!(gates(&client, "hold-schemes", with(&[GATE])).await, [GATE]);
    assert_eq!(gates(&client, "hold-schemes", with(&[GATE, "example.com/other"])).await, [GATE, "example.com/other"]);
}

#[tokio::test]
async fn other_pods_are_not_held() {
    let client = scene("hold-others").await;
    let none: [&str; 0] = [];
    let in_group = json!({"rolegate.dev/group": "llm"});
    assert_eq!(gates(&client, "hold-others", pod(&json!({"app": "web"}), &json!({}))).await, none);
    assert_eq!(gates(&client, "hold-others", pod(&json!(null), &json!({}))).await, none);
    // The API server refuses a gate beside a node.
    assert_eq!(gates(&client, "hold-others", pod(&in_group, &json!({"nodeName": "n"}))).await, none);
    // A trial of a pod of a request for nodes. The other tests try pods as well.
    let trial = json!({"rolegate.dev/group": "llm", "rolegate.dev/request": "pd-s-0-1"});
    assert_eq!(gates(&client, "hold-others", pod(&trial, &json!({}))).await, none);
    make_namespace(&client, "hold-not-asked", &json!({})).await;
    make_namespace(&client, "hold-ignored", &json!({"rolegate.dev/hold": "always", "rolegate.dev/ignore": ""})).await;
    let plane = WITH_POLICIES.get();
    for name in ["kube-system", "rolegate-system"] {
        plane.must(&["label", "namespace", name, "rolegate.dev/hold=always", "--overwrite"], "");
    }
    for name in ["hold-not-asked", "hold-ignored", "kube-system", "rolegate-system"] {
        assert_eq!(gates(&client, name, pod(&in_group, &json!({}))).await, none, "{name}");
    }
}

#[tokio::test]
async fn pods_of_controllers_are_held_too() {
    let client = scene("hold-controllers").await;
    let labels = json!({"app": "llm", "rolegate.dev/group": "llm", "rolegate.dev/role": "prefill"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}});
    let workload = |more: Value| {
        let mut spec = json!({"replicas": 3, "selector": {"matchLabels": labels}, "template": template});
        json_patch::merge(&mut spec, &more);
        json!({"metadata": {"name": "llm"}, "spec": spec})
    };
    let set: StatefulSet = typed(workload(json!({"serviceName": "llm", "podManagementPolicy": "Parallel"})));
    let deployment: Deployment = typed(workload(json!({})));
    Api::namespaced(client.clone(), "hold-controllers").create(&PostParams::default(), &set).await.unwrap();
    Api::namespaced(client.clone(), "hold-controllers").create(&PostParams::default(), &deployment).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "hold-controllers");
    let reasons_of = |pod: Pod| {
        let conditions = pod.status.into_iter().filter_map(|status| status.conditions).flatten();
        conditions.filter_map(|condition| condition.reason).collect::<Vec<_>>()
    };
    let reasons = async || {
        let all = pods.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().map(reasons_of).collect::<Vec<_>>()
    };
    until_is("six pods, all held", reasons, vec![vec!["SchedulingGated"]; 6]).await;
}

/// A webhook that adds the labels comes later: then the policy is asked again.
#[tokio::test]
async fn pods_that_a_webhook_labels_are_held() {
    let client = scene("hold-late").await;
    let webhook = webhook("hold-late", &labeller::serve().await, "Fail");
    WITH_POLICIES.get().must(&["apply", "-f", "-"], &webhook.to_string());
    let none: [&str; 0] = [];
    let late = async || gates(&client, "hold-late", pod(&json!({"late": "yes"}), &json!({}))).await;
    until_is("a pod that is labelled late and held", late, [GATE]).await;
    assert_eq!(gates(&client, "hold-late", pod(&json!({"app": "web"}), &json!({}))).await, none);
}

/// A webhook for the pods of a namespace.
pub fn webhook(namespace: &str, client_config: &Value, failure_policy: &str) -> Value {
    let name = format!("{namespace}.example.com");
    let webhook = json!({
        "name": name,
        "clientConfig": client_config,
        "failurePolicy": failure_policy,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    });
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [webhook]})
}

/// What this is for: the webhook does not answer, and is told to be ignored then.
#[tokio::test]
async fn an_outage_of_the_webhook_frees_no_pod() {
    let client = scene("hold-outage").await;
    // Nothing listens on port 1.
    let nobody = json!({"url": "https://127.0.0.1:1/"});
    let plane = WITH_POLICIES.get();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "hold-outage");
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let in_group: Pod = typed(pod(&json!({"rolegate.dev/group": "llm"}), &json!({})));
    // As long as it may not be ignored one can see that it is asked, and down.
    plane.must(&["apply", "-f", "-"], &webhook("hold-outage", &nobody, "Fail").to_string());
    eventually(PATIENT, "the webhook is asked", async || match pods.create(&dry_run, &in_group).await {
        Err(kube::Error::Api(status)) if status.message.contains("failed calling webhook") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    plane.must(&["apply", "-f", "-"], &webhook("hold-outage", &nobody, "Ignore").to_string());
    let born = eventually(PATIENT, "the webhook is ignored", async || {
        pods.create(&PostParams::default(), &in_group).await.map_err(|error| error.to_string())
    })
    .await;
    let gates: Vec<_> = born.spec.unwrap().scheduling_gates.into_iter().flatten().map(|gate| gate.name).collect();
    assert_eq!(gates, [GATE]);
}

/// All together: the policies hold and guard, the webhook labels, the loop releases.
#[tokio::test]
async fn a_group_comes_up_under_policies_webhook_and_loop() {
    let plane = WITH_POLICIES.get();
    define_ours(&plane);
    let stage = Stage::on(plane.clone(), "hold-together").await;
    plane.must(&["label", "namespace", "hold-together", "rolegate.dev/hold=always"], "");
    stage.add_node("n", 20).await;
    // The guard knows the account that is shipped.
    let _rolegate = stage.launch().flag("name", "rolegate").start().await;
    let group = Group::new("llm").role("prefill", 6, 2).role("decode", 3, 1);
    stage.deploy(&group).await;
    // A group that nothing coordinates: the webhook would hold none of its pods, the policy does.
    let plain = Group::new("plain").role("router", 2, 0);
    let mut uncoordinated = plain.object();
    uncoordinated["spec"].as_object_mut().unwrap().remove("coordination");
    stage.create(uncoordinated).await;
    stage.create_sets(&plain).await;
    stage.pods.until("all pods ready", |now| now.count_all(crate::common::pods::Pod::is_ready) == 11).await;
    for pod in stage.pods.births() {
        assert_eq!(pod.gates, [GATE], "{}", pod.name);
    }
}
