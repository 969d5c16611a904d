//! Whoever has the token of our own account can change what rolegate changes, and nothing else: it runs no code, and sends no
//! admission elsewhere.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;

use crate::common::account::{account, manifests, webhook_policies};
use crate::common::control_plane::{EMULATED, client_of, kubernetes};
use crate::common::policies::policies_fit_the_types;
use crate::common::prelude::*;
use crate::policies::cluster::{Answer, api_of, define, loose_definition};
use crate::rules::desk::stateful_set;

fn held_pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "a", "labels": { "app": "llm" }, "annotations": { "rolegate.dev/held-by": "llm/segments" } },
        "spec": {
            "containers": [{ "name": "main", "image": "none" }],
            "schedulingGates": [{ "name": "rolegate.dev/hold" }, { "name": "example.com/other" }],
        },
    })
}

/// What a thief would like to do to a pod, and where he is stopped.
fn thefts_of_a_pod() -> Vec<(Value, &'static str)> {
    let without = |gate: &str| json!({ "spec": { "schedulingGates": [{ "name": gate, "$patch": "delete" }] } });
    vec![
        (json!({ "spec": { "containers": [{ "name": "main", "image": "theirs" }] } }), "spec[containers]"),
        (json!({ "spec": { "nodeSelector": { "node": "theirs" } } }), "spec[nodeSelector]"),
        (json!({ "spec": { "activeDeadlineSeconds": 1 } }), "spec[activeDeadlineSeconds]"),
        (without("example.com/other"), "spec.schedulingGates"),
        (json!({ "metadata": { "labels": { "app": "other" } } }), "metadata.labels[app]"),
        (json!({ "metadata": { "labels": { "app": null } } }), "metadata.labels[app]"),
        (json!({ "metadata": { "labels": { "rolegate.dev.example.com/x": "y" } } }), "rolegate.dev.example.com/x"),
        // By these it is judged which pods the account may delete.
        (json!({ "metadata": { "labels": { "rolegate.dev/group": "llm" } } }), "metadata.labels[rolegate.dev/group]"),
        (json!({ "metadata": { "labels": { "rolegate.dev/role": "r" } } }), "metadata.labels[rolegate.dev/role]"),
        (
            json!({ "metadata": { "labels": { "rolebasedgroup.workloads.x-k8s.io/name": "llm" } } }),
            "metadata.labels[rolebasedgroup.workloads.x-k8s.io/name]",
        ),
        (
            json!({ "metadata": { "labels": { "rbg.workloads.x-k8s.io/group-name": "llm" } } }),
            "rbg.workloads.x-k8s.io/group-name",
        ),
        (json!({ "metadata": { "annotations": { "cni": "theirs" } } }), "metadata.annotations[cni]"),
        (json!({ "metadata": { "finalizers": ["example.com/for-ever"] } }), "metadata.finalizers"),
    ]
}

/// The same of a workload, whose strategy stands in this field, and in its place the bounds.
fn thefts_of_a_workload(strategy: &str, template: &Value) -> Vec<(Value, String)> {
    let of = |patch: Value, words: &str| (patch, words.to_owned());
    vec![
        of(json!({ "spec": template }), "spec["),
        of(json!({ "spec": { "replicas": 7 } }), "spec[replicas]"),
        of(
            json!({ "spec": { strategy: { "type": "OnDelete", "rollingUpdate": null } } }),
            &format!("spec.{strategy}[type]"),
        ),
        of(
            json!({ "metadata": { "labels": { "rolegate.dev/group": "other" } } }),
            "metadata.labels[rolegate.dev/group]",
        ),
        of(json!({ "metadata": { "annotations": { "a": "b" } } }), "metadata.annotations[a]"),
        of(json!({ "metadata": { "finalizers": ["example.com/for-ever"] } }), "metadata.finalizers"),
    ]
}

async fn patch<K>(api: &Api<K>, name: &str, patch: &Patch<&Value>) -> Answer
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    Answer::of(api.patch(name, &PatchParams::default(), patch).await)
}

/// Every change is refused, for its own reason, once the policies have reached the API server.
async fn refused<K>(api: &Api<K>, name: &str, thefts: &[(Patch<&Value>, &str)])
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    for (change, words) in thefts {
        eventually(PATIENT, "the policy is in force", async || {
            let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
            match Answer::of(api.patch(name, &dry_run, change).await) {
                Answer::Refused(text)
                    if text.starts_with("rolegate itself may not change ") && text.contains(words) =>
                {
                    Ok(())
                }
                answer => Err(format!("{answer:?}, not {words}")),
            }
        })
        .await;
    }
}

/// The version that is built, and older ones whose expressions know fewer functions.
#[tokio::test]
async fn a_stolen_token_does_no_more_than_rolegate_does() {
    let older = if kubernetes().is_none() { &EMULATED[..] } else { &[] };
    for version in std::iter::once(None).chain(older.iter().copied().map(Some)) {
        println!("as Kubernetes {}", version.unwrap_or("is"));
        let start = move || version.map_or_else(ControlPlane::start, ControlPlane::emulating);
        let plane = ControlPlane::own(start).await;
        runs_no_code(plane.clone()).await;
        allows_no_more(plane.clone()).await;
        // Last: its webhooks lead nowhere.
        sends_nothing_elsewhere(plane).await;
    }
}

/// A stolen token runs no code.
async fn runs_no_code(plane: Arc<ControlPlane>) {
    let kind = ("leaderworkerset.x-k8s.io", &["v1"][..], "LeaderWorkerSet", "leaderworkersets", "Namespaced");
    define(&plane, &loose_definition(kind, &json!({})).to_string());
    let stage = Stage::on(plane.clone(), "contained").await;
    let thief = client_of(&account(&plane, &stage.client, "rolegate", &[]).await).await;
    policies_fit_the_types(&stage.client, 4).await;

    let pods: Api<Pod> = Api::namespaced(thief.clone(), &stage.namespace);
    stage.create(held_pod()).await;
    let thefts = thefts_of_a_pod();
    refused(&pods, "a", &thefts.iter().map(|(patch, words)| (Patch::Strategic(patch), *words)).collect::<Vec<_>>())
        .await;
    let release = json!({
        "metadata": {
            "labels": {
                "rolegate.dev/x": "y",
                "rolebasedgroup.workloads.x-k8s.io/role-instance-index": "3",
                "rolebasedgroup.workloads.x-k8s.io/name": "llm",
            },
            "annotations": { "rolegate.dev/held-by": null },
        },
        "spec": {
            "schedulingGates": [{ "name": "rolegate.dev/hold", "$patch": "delete" }],
            "nodeSelector": { "rack": "chosen" },
        },
    });
    assert_eq!(patch(&pods, "a", &Patch::Strategic(&release)).await, Answer::Admitted);
    let image = json!({ "spec": { "containers": [{ "name": "main", "image": "theirs" }] } });
    assert_eq!(patch(&stage.api::<Pod>(), "a", &Patch::Strategic(&image)).await, Answer::Admitted, "others are free");

    let sets: Api<StatefulSet> = Api::namespaced(thief.clone(), &stage.namespace);
    let set = stateful_set("s", "Parallel", &json!({}));
    stage.create(set).await;
    let container = json!([{ "name": "main", "image": "theirs" }]);
    let template = json!({ "template": { "spec": { "containers": container } } });
    let thefts = thefts_of_a_workload("updateStrategy", &template);
    refused(&sets, "s", &thefts.iter().map(|(patch, words)| (Patch::Merge(patch), words.as_str())).collect::<Vec<_>>())
        .await;
    let rolled = json!({
        "metadata": { "annotations": { "rolegate.dev/user-partition": "0" } },
        "spec": { "updateStrategy": { "rollingUpdate": { "partition": 3 } } },
    });
    assert_eq!(patch(&sets, "s", &Patch::Merge(&rolled)).await, Answer::Admitted);

    let kind = rolegate::api::workload::LEADER_WORKER_SET;
    let template = json!({ "size": 2, "workerTemplate": { "spec": { "containers": container } } });
    let set = object(&kind.api_version(), kind.kind, "l").spec(
        json!({ "replicas": 0, "rolloutStrategy": { "type": "RollingUpdate" }, "leaderWorkerTemplate": { "size": 1 } }),
    );
    let all: Api<DynamicObject> = api_of(&stage.client, kind, &stage.namespace);
    all.create(&PostParams::default(), &typed(set)).await.unwrap();
    let sets = api_of(&thief, kind, &stage.namespace);
    let thefts = thefts_of_a_workload("rolloutStrategy", &json!({ "leaderWorkerTemplate": template }));
    refused(&sets, "l", &thefts.iter().map(|(patch, words)| (Patch::Merge(patch), words.as_str())).collect::<Vec<_>>())
        .await;
    let rolled = json!({ "spec": { "rolloutStrategy": { "rollingUpdateConfiguration": { "partition": 3 } } } });
    assert_eq!(patch(&sets, "l", &Patch::Merge(&rolled)).await, Answer::Admitted);
}

/// What is allowed by a word is not refused, and nothing more.
async fn allows_no_more(plane: Arc<ControlPlane>) {
    let stage = Stage::on(plane.clone(), "allowed").await;
    let thief = client_of(&account(&plane, &stage.client, "wider", &["--allow", "scale,recovery"]).await).await;
    policies_fit_the_types(&stage.client, 8).await;
    let (theirs, ours) = (stage.api::<Pod>(), Api::<Pod>::namespaced(thief.clone(), &stage.namespace));
    let mut grouped = held_pod();
    grouped["metadata"]["labels"]["rolegate.dev/group"] = json!("llm");
    grouped["metadata"]["name"] = json!("grouped");
    for pod in [held_pod(), grouped] {
        theirs.create(&PostParams::default(), &typed(pod)).await.unwrap();
    }
    let noted = |key: &str| json!({ "metadata": { "annotations": { key: "-1" }, "labels": { "rolegate.dev/draining": "true" } } });
    let other = noted("example.com/cost");
    refused(&ours, "a", &[(Patch::Merge(&other), "metadata.annotations[example.com/cost]")]).await;
    let cost = noted("controller.kubernetes.io/pod-deletion-cost");
    assert_eq!(patch(&ours, "a", &Patch::Merge(&cost)).await, Answer::Admitted);
    // Of pods those that name a group may be deleted, and no others; nor may one be made such a pod.
    let named = json!({ "metadata": { "labels": { "rolegate.dev/group": "llm" } } });
    refused(&ours, "a", &[(Patch::Merge(&named), "metadata.labels[rolegate.dev/group]")]).await;
    eventually(PATIENT, "the policy of deletions in force", async || {
        let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
        let deleted = ours.delete("a", &dry_run).await.map_err(|error| error.to_string());
        match deleted {
            Err(error) if error.contains("rolegate itself may not delete this pod") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    ours.delete("grouped", &DeleteParams::default()).await.unwrap();
    let set = stateful_set("s", "Parallel", &json!({}));
    stage.create(set).await;
    let sets: Api<StatefulSet> = Api::namespaced(thief, &stage.namespace);
    let scale = json!({ "spec": { "replicas": 2 } });
    // By its scale alone.
    refused(&sets, "s", &[(Patch::Merge(&scale), "spec[replicas]")]).await;
    sets.patch_scale("s", &PatchParams::default(), &Patch::Merge(&scale)).await.unwrap();
}

/// What a thief would like to do to a configuration with this webhook, as strategic merge patches, and where he is stopped.
fn thefts_of_admission(webhook: &str) -> Vec<(Value, String)> {
    let of = |mut fields: Value| {
        fields["name"] = json!(webhook);
        (json!({ "webhooks": [fields] }), format!("webhooks[{webhook}]"))
    };
    let all = json!([{ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"] }]);
    let client = json!({ "service": { "name": "theirs", "namespace": "theirs" } });
    let other = json!({
        "name": "theirs.example.com",
        "clientConfig": client,
        "rules": all,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u" });
    let of_metadata =
        |field: &str, value: Value, words: &str| (json!({ "metadata": { field: value } }), words.to_owned());
    vec![
        of(json!({ "clientConfig": client })),
        of(json!({ "clientConfig": { "service": { "path": "/theirs" } } })),
        of(json!({ "clientConfig": { "service": { "port": 8443 } } })),
        of(json!({ "clientConfig": { "service": null, "url": "https://theirs.example.com" } })),
        of(json!({ "rules": all })),
        of(json!({ "failurePolicy": "Ignore" })),
        of(json!({ "matchPolicy": "Exact" })),
        of(json!({ "namespaceSelector": { "matchExpressions": [] } })),
        of(json!({ "namespaceSelector": { "matchLabels": { "a": "b" } } })),
        of(json!({ "objectSelector": { "matchLabels": { "a": "b" } } })),
        of(json!({ "sideEffects": "NoneOnDryRun" })),
        of(json!({ "timeoutSeconds": 30 })),
        of(json!({ "admissionReviewVersions": ["v1beta1", "v1"] })),
        of(json!({ "matchConditions": [{ "name": "never", "expression": "false" }] })),
        (json!({ "webhooks": [other] }), "webhooks".to_owned()),
        (json!({ "webhooks": [{ "name": webhook, "$patch": "delete" }] }), "webhooks".to_owned()),
        of_metadata("labels", json!({ "a": "b" }), "metadata.labels[a]"),
        of_metadata("annotations", json!({ "a": "b" }), "metadata.annotations[a]"),
        of_metadata("finalizers", json!(["example.com/for-ever"]), "metadata.finalizers"),
        of_metadata("ownerReferences", json!([owner]), "metadata.ownerReferences"),
    ]
}

/// The thief may fill in the bundle of each webhook of a configuration, and change nothing else.
async fn only_bundles<K>(thief: &Api<K>, admin: &Api<K>, bundle: &str)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let webhook = "objects.rolegate.dev";
    let mut thefts = thefts_of_admission(webhook);
    let now = serde_json::to_value(admin.get("rolegate").await.unwrap()).unwrap();
    if now["webhooks"][0].get("reinvocationPolicy").is_some() {
        let never = json!({ "webhooks": [{ "name": webhook, "reinvocationPolicy": "Never" }] });
        thefts.push((never, format!("webhooks[{webhook}]")));
    }
    let patches: Vec<_> = thefts.iter().map(|(patch, words)| (Patch::Strategic(patch), words.as_str())).collect();
    refused(thief, "rolegate", &patches).await;
    for (change, _) in &patches {
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let answer = Answer::of(admin.patch("rolegate", &dry_run, change).await);
        assert_eq!(answer, Answer::Admitted, "others are free: {change:?}");
    }
    let webhooks = now["webhooks"].as_array().unwrap().iter();
    let webhooks: Vec<_> =
        webhooks.map(|webhook| json!({ "name": webhook["name"], "clientConfig": { "caBundle": bundle } })).collect();
    let bundles = json!({ "webhooks": webhooks });
    assert_eq!(patch(thief, "rolegate", &Patch::Strategic(&bundles)).await, Answer::Admitted);
    let then = serde_json::to_value(admin.get("rolegate").await.unwrap()).unwrap();
    assert!(then["webhooks"].as_array().unwrap().iter().all(|webhook| webhook["clientConfig"]["caBundle"] == bundle));
}

/// A stolen token sends no admission elsewhere.
async fn sends_nothing_elsewhere(plane: Arc<ControlPlane>) {
    let client = plane.client().await;
    let kubeconfig = account(&plane, &client, "rolegate", &[]).await;
    plane.must(&["create", "-f", "-"], &webhook_policies("rolegate"));
    let printed = manifests(&["--part", "webhooks", "--namespace", SYSTEM]);
    plane.must(&["create", "-f", "-"], &printed);
    policies_fit_the_types(&client, 10).await;
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let bundle = text.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: ")).unwrap();
    let thief = client_of(&kubeconfig).await;
    only_bundles::<MutatingWebhookConfiguration>(&Api::all(thief.clone()), &Api::all(client.clone()), bundle).await;
    only_bundles::<ValidatingWebhookConfiguration>(&Api::all(thief), &Api::all(client), bundle).await;
}
