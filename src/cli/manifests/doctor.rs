//! `rolegate doctor` in the cluster: a pod that looks once, for `helm test` and for whoever asks for this part. Its rights are
//! beside it and go with it.

use serde_json::{Value, json};

use super::certificates::serving_secret;
use super::rights::{Role, rule};
use super::settings::Settings;
use crate::cli::rights::{OF_DOCTOR, Scope};

/// Name of the pod and of its account.
fn name(settings: &Settings) -> String {
    format!("{}-doctor", settings.name)
}

/// What contains the account, itself, its rights, and the pod, which comes last.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let name = name(settings);
    let account = json!({
        "?": "test",
        "#": "The account of `rolegate doctor`. It looks; that the pod which it creates is never one that runs, a policy sees to.",
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": name,
            "namespace": settings.namespace,
            "labels": super::labels(settings),
            "annotations": hook(settings, -2),
        },
        "automountServiceAccountToken": false,
    });
    let (everywhere, here): (Vec<_>, Vec<_>) = OF_DOCTOR.iter().partition(|right| right.scope == Scope::Cluster);
    let rules = |rights: &[&_]| rights.iter().map(|right| rule(settings, right)).collect::<Vec<_>>();
    let mut here = rules(&here);
    here.push(json!({
        "#": "The certificate that is served, and the CAs that callers trust. No other Secret can be read.",
        "=": {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [format!("{}-certificates", settings.name), serving_secret(&settings.name)],
            "verbs": ["get"],
        },
    }));
    let tries = json!({
        "#": "A pod of a group, as a dry run: is it held?",
        "=": { "apiGroups": [""], "resources": ["pods"], "verbs": ["create"] },
    });
    let own = settings.namespace.as_str();
    let mut objects = super::containment::tries(settings, &name, &hook(settings, -3)).to_vec();
    objects.push(account);
    for (kind, namespace, role, rules) in [
        ("ClusterRole", None, name.clone(), rules(&everywhere)),
        ("Role", Some(own), name.clone(), here),
        ("Role", Some(settings.try_in.as_str()), format!("{name}-tries"), vec![tries]),
    ] {
        let annotations = hook(settings, -1);
        let role = Role { kind, namespace, name: &role, account: &name, annotations, when: Some("test") };
        objects.extend(role.with_binding(settings, &json!(rules)));
    }
    objects.push(pod(settings, &name));
    objects
}

/// By which Helm makes an object for a test only, and takes it away after it; `null` for a cluster. Of the pod the last one
/// that failed stays, to be asked for its log.
fn hook(settings: &Settings, weight: i32) -> Value {
    if !settings.more.by_helm {
        return Value::Null;
    }
    json!({
        "helm.sh/hook": "test",
        "helm.sh/hook-weight": weight.to_string(),
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    })
}

fn pod(settings: &Settings, name: &str) -> Value {
    json!({
        "?": "test",
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": settings.namespace,
            "#labels": "Not those of the replicas: it is no endpoint of their Services.",
            "labels": { super::OWN_LABEL: name, "+": settings.common_labels },
            "annotations": hook(settings, 0),
        },
        "spec": {
            "serviceAccountName": name,
            "automountServiceAccountToken": true,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 120,
            "imagePullSecrets": settings.more.pull_secrets,
            "nodeSelector": settings.more.node_selector,
            "tolerations": settings.more.tolerations,
            "securityContext": super::workload::security_of_pods(settings),
            "containers": [{
                "name": "doctor",
                "image": settings.image,
                "imagePullPolicy": settings.pull_policy,
                "args": [
                    "doctor",
                    format!("--namespace={}", settings.namespace),
                    format!("--name={}", settings.name),
                    format!("--try-in={}", settings.try_in),
                ],
                "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "256Mi" } },
                "securityContext": super::workload::container_security(),
            }],
        },
    })
}
