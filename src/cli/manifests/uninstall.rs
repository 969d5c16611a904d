//! `rolegate uninstall` in the cluster: a Job that runs once, for `helm uninstall` and for `--part uninstall`, with
//! rights of its own.

use serde_json::{Value, json};

use super::once::Once;
use super::rights::{Role, rule};
use super::settings::Settings;
use crate::cli::rights::{OF_UNINSTALL, Scope};

/// Returns the name of the Job and its account.
pub fn name(settings: &Settings) -> String {
    format!("{}-uninstall", settings.name)
}

/// Returns the account, its rights and the Job, in this order.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let name = name(settings);
    let once = Once { name: &name, when: "uninstall", event: "pre-delete" };
    let comment = "The account of `rolegate uninstall`: it is there for as long as that runs, and contained as that of the replicas.";
    let mut objects = vec![once.account(settings, comment)];
    let (own, everywhere): (Vec<_>, Vec<_>) =
        OF_UNINSTALL.iter().partition(|right| matches!(right.scope, Scope::Own | Scope::OwnLease | Scope::OwnSecret));
    for (kind, namespace, rights) in
        [("ClusterRole", None, everywhere), ("Role", Some(settings.namespace.as_str()), own)]
    {
        let annotations = once.hook(settings, -1);
        let role = Role { kind, namespace, name: &name, account: &name, annotations, when: Some(once.when) };
        objects
            .extend(role.with_binding(settings, &rights.iter().map(|right| rule(settings, right)).collect::<Value>()));
    }
    objects.push(job(settings, &once));
    objects
}

fn job(settings: &Settings, once: &Once<'_>) -> Value {
    json!({
        "?": once.when,
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": super::metadata(settings, once.name, &once.hook(settings, 0)),
        "spec": {
            "#backoffLimit": "It may be called again: rights reach the API server a moment later.",
            "backoffLimit": 5,
            "activeDeadlineSeconds": settings.uninstall_deadline,
            "template": {
                "metadata": {
                    "#labels": "Not those of the replicas: it is no endpoint of their Services.",
                    "labels": { super::OWN_LABEL: once.name, "+": settings.common_labels },
                },
                "spec": once.pod_spec(settings, "uninstall", &["--yes".to_owned()], &Value::Null),
            },
        },
    })
}
