//! `rolegate doctor` in the cluster: a pod that runs once, for `helm test` and for `--part doctor`, with rights of its
//! own.

use serde_json::{Value, json};

use super::certificates::serving_secret;
use super::once::Once;
use super::rights::{Role, rule};
use super::settings::Settings;
use crate::cli::rights::{OF_DOCTOR, Scope};

/// Returns the name of the pod and its account.
fn name(settings: &Settings) -> String {
    format!("{}-doctor", settings.name)
}

/// Returns the policy, the account, its rights and the pod, in this order.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let name = name(settings);
    let once = Once { name: &name, when: "test", event: "test" };
    let comment = "The account of `rolegate doctor`. It looks; that the pod which it creates is never one that runs, a policy sees to.";
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
    let mut objects = super::containment::tries(settings, &name, &once.hook(settings, -3)).to_vec();
    objects.push(once.account(settings, comment));
    for (kind, namespace, role, rules) in [
        ("ClusterRole", None, name.clone(), rules(&everywhere)),
        ("Role", Some(own), name.clone(), here),
        ("Role", Some(settings.try_in.as_str()), format!("{name}-tries"), vec![tries]),
    ] {
        let annotations = once.hook(settings, -1);
        let role = Role { kind, namespace, name: &role, account: &name, annotations, when: Some(once.when) };
        objects.extend(role.with_binding(settings, &json!(rules)));
    }
    objects.push(pod(settings, &once));
    objects
}

fn pod(settings: &Settings, once: &Once<'_>) -> Value {
    json!({
        "?": once.when,
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": once.name,
            "namespace": settings.namespace,
            "#labels": "Not those of the replicas: it is no endpoint of their Services.",
            "labels": { super::OWN_LABEL: once.name, "+": settings.common_labels },
            "annotations": once.hook(settings, 0),
        },
        "spec": once.pod_spec(settings, "doctor", &[format!("--try-in={}", settings.try_in)], &json!(120)),
    })
}
