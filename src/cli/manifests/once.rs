//! Commands that run once, with an account and rights of their own; Helm hooks in the chart.

use serde_json::{Value, json};

use super::settings::Settings;

pub struct Once<'a> {
    /// Name of all its objects.
    pub name: &'a str,
    /// Condition on its objects.
    pub when: &'a str,
    /// Event at which Helm runs it.
    pub event: &'a str,
}

impl Once<'_> {
    /// Returns annotations that make an object a Helm hook, deleted when it succeeds; a failed one is kept for its
    /// log. `null` without Helm.
    pub fn hook(&self, settings: &Settings, weight: i32) -> Value {
        if !settings.more.by_helm {
            return Value::Null;
        }
        json!({
            "helm.sh/hook": self.event,
            "helm.sh/hook-weight": weight.to_string(),
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        })
    }

    /// Returns the ServiceAccount, with a comment on its purpose.
    pub fn account(&self, settings: &Settings, comment: &str) -> Value {
        json!({
            "?": self.when,
            "#": comment,
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": super::metadata(settings, self.name, &self.hook(settings, -2)),
            "automountServiceAccountToken": false,
        })
    }

    /// Returns the pod spec for a rolegate command on the installation; `more` are further flags.
    pub fn pod_spec(&self, settings: &Settings, command: &str, more: &[String], deadline: &Value) -> Value {
        let flags = [format!("--namespace={}", settings.namespace), format!("--name={}", settings.name)];
        let args: Vec<_> = [command.to_owned()].into_iter().chain(flags).chain(more.iter().cloned()).collect();
        json!({
            "serviceAccountName": self.name,
            "automountServiceAccountToken": true,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": deadline,
            "imagePullSecrets": settings.more.pull_secrets,
            "nodeSelector": settings.more.node_selector,
            "tolerations": settings.more.tolerations,
            "securityContext": super::workload::security_of_pods(settings),
            "containers": [{
                "name": command,
                "image": settings.image,
                "imagePullPolicy": settings.pull_policy,
                "args": args,
                "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "256Mi" } },
                "securityContext": super::workload::container_security(),
            }],
        })
    }
}
