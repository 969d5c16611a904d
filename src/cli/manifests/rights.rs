//! The ServiceAccount and its roles, from the table of rights.

use serde_json::{Value, json};

use super::settings::Settings;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::cli::rights::{OF_CERTIFICATES, OF_CONVERSION, OF_RECOVERY, OF_RECREATION, OF_SCALE, RIGHTS, Right, Scope};

/// The ServiceAccount, its roles and bindings.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": settings.name, "namespace": settings.namespace, "labels": super::labels(settings) },
        "#automountServiceAccountToken": "Whoever else runs under this account gets no token by accident.",
        "automountServiceAccountToken": false,
    });
    let named = |part: &str| format!("{}-{part}", settings.name);
    let mut objects = vec![account];
    for (name, rights, when) in [
        (settings.name.clone(), RIGHTS, None),
        (named("certificates"), OF_CERTIFICATES, Some("self-managed")),
        (named("conversion"), OF_CONVERSION, Some("conversion")),
        (named("recreation"), OF_RECREATION, Some("recreate-mis-stamped")),
        (named("scale"), OF_SCALE, Some("scale")),
        (named("recovery"), OF_RECOVERY, Some("recovery")),
    ] {
        let (cluster, own): (Vec<_>, Vec<_>) = rights.iter().partition(|right| right.scope.place("", "").0.is_none());
        let kinds = [("ClusterRole", cluster), ("Role", own)];
        for (kind, rights) in kinds.into_iter().filter(|(_, rights)| !rights.is_empty()) {
            objects.extend(role_and_binding(settings, kind, &name, &rights, when));
        }
    }
    objects
}

fn role_and_binding(settings: &Settings, kind: &str, name: &str, rights: &[&Right], when: Option<&str>) -> [Value; 2] {
    let namespace = if kind == "Role" { json!(settings.namespace) } else { Value::Null };
    let metadata = json!({ "name": name, "namespace": namespace, "labels": super::labels(settings) });
    let rules: Vec<_> = rights.iter().map(|right| rule(settings, right)).collect();
    let role = json!({
        "?": when,
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": rules,
    });
    let binding = json!({
        "?": when,
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": settings.name, "namespace": settings.namespace }],
    });
    [role, binding]
}

fn rule(settings: &Settings, right: &Right) -> Value {
    let names = match right.scope {
        Scope::Cluster | Scope::Own => Value::Null,
        Scope::Webhooks | Scope::OwnLease => json!([settings.name]),
        Scope::Definition => json!([ROLE_COORDINATION.crd_name()]),
        Scope::OwnSecret => json!([format!("{}-certificates", settings.name)]),
    };
    json!({
        "#": right.why,
        "=": {
            "apiGroups": right.groups,
            "resources": right.resources,
            "resourceNames": names,
            "verbs": right.verbs,
        },
    })
}
