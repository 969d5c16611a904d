//! The ServiceAccount and its roles, from the table of rights.

use serde_json::{Map, Value, json};

use super::settings::Settings;
use crate::api::ObjectKind;
use crate::cli::ready_kinds;
use crate::cli::rights::{
    OF_CERTIFICATES, OF_PEOPLE, OF_PROVISION, OF_RECOVERY, OF_RECREATION, OF_SCALE, OF_SELECTION, RIGHTS, Right, Scope,
};
use crate::model::installation::HOLD_POLICY;

pub fn objects(settings: &Settings) -> Vec<Value> {
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": super::metadata(settings, &settings.name, &settings.more.account_annotations),
        "#automountServiceAccountToken": "Whoever else runs under this account gets no token by accident.",
        "automountServiceAccountToken": false,
    });
    let named = |part: &str| format!("{}-{part}", settings.name);
    let of_selection = if settings.selector_argument.is_some() { OF_SELECTION } else { &[] };
    let mut objects = vec![account];
    for (name, rights, when) in [
        (settings.name.clone(), RIGHTS, None),
        (named("certificates"), OF_CERTIFICATES, Some("self-managed")),
        (named("selection"), of_selection, Some("selector")),
        (named("recreation"), OF_RECREATION, Some("recreate-mis-stamped")),
        (named("scale"), OF_SCALE, Some("scale")),
        (named("recovery"), OF_RECOVERY, Some("recovery")),
        (named("provision"), OF_PROVISION, Some("provision")),
    ] {
        let (cluster, own): (Vec<_>, Vec<_>) = rights.iter().partition(|right| right.scope.place("", "").0.is_none());
        let kinds = [("ClusterRole", cluster), ("Role", own)];
        for (kind, rights) in kinds.into_iter().filter(|(_, rights)| !rights.is_empty()) {
            let role = Role {
                kind,
                namespace: (kind == "Role").then_some(settings.namespace.as_str()),
                name: &name,
                account: &settings.name,
                annotations: Value::Null,
                when,
            };
            objects.extend(
                role.with_binding(settings, &rights.iter().map(|right| rule(settings, right)).collect::<Value>()),
            );
        }
    }
    let ready = Role {
        kind: "ClusterRole",
        namespace: None,
        name: &named("ready-kinds"),
        account: &settings.name,
        annotations: Value::Null,
        when: Some("ready-kinds"),
    };
    objects.extend(ready.with_binding(settings, &settings.ready_rules));
    objects.extend(of_people(settings));
    objects
}

/// Returns the rules of the role that watches the kinds whose objects groups wait for.
pub fn to_watch(kinds: &[ObjectKind]) -> Value {
    kinds.iter().map(|kind| rule(&Settings::default(), &ready_kinds::right(*kind))).collect()
}

/// Returns the roles that aggregate into the cluster's roles for users.
fn of_people(settings: &Settings) -> impl Iterator<Item = Value> {
    OF_PEOPLE.iter().map(|(part, added_to, rights)| {
        let added_to =
            added_to.iter().map(|role| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), json!("true")));
        let mut labels: Map<_, _> = added_to.collect();
        labels.insert(super::OWN_LABEL.to_owned(), json!(settings.name));
        labels.insert("+".to_owned(), settings.common_labels.clone());
        json!({
            "?": "aggregated-roles",
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": format!("{}-{part}", settings.name), "labels": labels },
            "rules": rights.iter().map(|right| rule(settings, right)).collect::<Value>(),
        })
    })
}

/// A role and its binding to one of our accounts.
pub struct Role<'a> {
    /// `Role` or `ClusterRole`.
    pub kind: &'a str,
    /// Namespace of a Role; `None` for a ClusterRole.
    pub namespace: Option<&'a str>,
    /// Name of both objects.
    pub name: &'a str,
    /// ServiceAccount that gets the role.
    pub account: &'a str,
    /// Annotations of both objects.
    pub annotations: Value,
    /// Condition on both objects.
    pub when: Option<&'a str>,
}

impl Role<'_> {
    /// Returns the role with these rules, and its binding.
    pub fn with_binding(self, settings: &Settings, rules: &Value) -> [Value; 2] {
        let Self { kind, namespace, name, account, annotations, when } = self;
        let metadata = json!({
            "name": name,
            "namespace": namespace,
            "labels": super::labels(settings),
            "annotations": annotations,
        });
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
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": settings.namespace }],
        });
        [role, binding]
    }
}

/// Returns the rule of a right.
pub fn rule(settings: &Settings, right: &Right) -> Value {
    let names = match right.scope {
        Scope::Cluster | Scope::Own => Value::Null,
        Scope::Webhooks | Scope::OwnLease => json!([settings.name]),
        Scope::OwnSecret => json!([format!("{}-certificates", settings.name)]),
        Scope::Hold => json!([HOLD_POLICY]),
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
