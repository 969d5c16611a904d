//! `rolegate uninstall` in the cluster: a Job that does it once, for `helm uninstall` and for whoever asks for this part. Its rights
//! are beside it and go with it.

use serde_json::{Value, json};

use super::rights::{Role, rule};
use super::settings::Settings;
use crate::cli::rights::{OF_UNINSTALL, Scope};

/// The account, its rights, and the Job, which comes last.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let name = format!("{}-uninstall", settings.name);
    let account = json!({
        "?": "uninstall",
        "#": "The account of `rolegate uninstall`: it is there for as long as that runs.",
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
    let mut objects = vec![account];
    let (own, everywhere): (Vec<_>, Vec<_>) =
        OF_UNINSTALL.iter().partition(|right| matches!(right.scope, Scope::Own | Scope::OwnLease | Scope::OwnSecret));
    for (kind, namespace, rights) in
        [("ClusterRole", None, everywhere), ("Role", Some(settings.namespace.as_str()), own)]
    {
        let annotations = hook(settings, -1);
        let role = Role { kind, namespace, name: &name, account: &name, annotations, when: Some("uninstall") };
        objects
            .extend(role.with_binding(settings, &rights.iter().map(|right| rule(settings, right)).collect::<Value>()));
    }
    objects.push(job(settings, &name));
    objects
}

/// By which Helm makes an object for an uninstall only, and takes it away after it; `null` for a cluster. A Job that failed stays, to
/// be asked for its log.
fn hook(settings: &Settings, weight: i32) -> Value {
    if !settings.more.by_helm {
        return Value::Null;
    }
    json!({
        "helm.sh/hook": "pre-delete",
        "helm.sh/hook-weight": weight.to_string(),
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    })
}

fn job(settings: &Settings, name: &str) -> Value {
    json!({
        "?": "uninstall",
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": settings.namespace,
            "labels": super::labels(settings),
            "annotations": hook(settings, 0),
        },
        "spec": {
            "#backoffLimit": "It may be called again: rights reach the API server a moment later.",
            "backoffLimit": 5,
            "activeDeadlineSeconds": settings.uninstall_deadline,
            "template": {
                "metadata": {
                    "#labels": "Not those of the replicas: it is no endpoint of their Services.",
                    "labels": { super::OWN_LABEL: name, "+": settings.common_labels },
                },
                "spec": {
                    "serviceAccountName": name,
                    "automountServiceAccountToken": true,
                    "restartPolicy": "Never",
                    "imagePullSecrets": settings.more.pull_secrets,
                    "nodeSelector": settings.more.node_selector,
                    "tolerations": settings.more.tolerations,
                    "securityContext": super::workload::security_of_pods(settings),
                    "containers": [{
                        "name": "uninstall",
                        "image": settings.image,
                        "imagePullPolicy": settings.pull_policy,
                        "args": [
                            "uninstall",
                            "--yes",
                            format!("--namespace={}", settings.namespace),
                            format!("--name={}", settings.name),
                        ],
                        "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "256Mi" } },
                        "securityContext": super::workload::container_security(),
                    }],
                },
            },
        },
    })
}
