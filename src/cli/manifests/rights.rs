//! Roles and their rules, from the table of rights.

use serde_json::{Map, Value, json};

use super::installation::{Choice, Installation};
use super::serving_secret;
use crate::api::ObjectKind;
use crate::cli::allow::Allow;
use crate::cli::ready_kinds;
use crate::cli::rights::{
    OF_CERTIFICATES, OF_DOCTOR, OF_PEOPLE, OF_PROVISION, OF_RECOVERY, OF_RECREATION, OF_SCALE, OF_SELECTION,
    OF_UNINSTALL, RIGHTS, Right, Scope,
};
use crate::model::installation::HOLD_POLICY;

/// Rights of the replicas: what the names of their roles end with, and where they are given.
const OF_REPLICAS: &[(&str, &[Right], Option<Choice>)] = &[
    ("", RIGHTS, None),
    ("certificates", OF_CERTIFICATES, Some(Choice::SelfManaged)),
    ("selection", OF_SELECTION, Some(Choice::Selection)),
    ("recreation", OF_RECREATION, Some(Choice::Recreation)),
    ("scale", OF_SCALE, Some(Choice::Allow(Allow::Scale))),
    ("recovery", OF_RECOVERY, Some(Choice::Allow(Allow::Recovery))),
    ("provision", OF_PROVISION, Some(Choice::Allow(Allow::Provision))),
];

/// A role of one of our accounts.
pub struct Role {
    /// `Role` or `ClusterRole`.
    kind: &'static str,
    /// What its name ends with; empty for the first of the replicas.
    suffix: &'static str,
    /// What the name of the account ends with; empty for that of the replicas.
    account: &'static str,
    rules: Vec<Value>,
}

/// Returns the roles of the replicas.
pub fn of_replicas(installation: &Installation, ready: &[ObjectKind]) -> Vec<Role> {
    let there = OF_REPLICAS.iter().filter(|(_, _, when)| installation.has(*when));
    let mut roles: Vec<_> = there.flat_map(|(suffix, rights, _)| of(installation, suffix, "", rights)).collect();
    let ready: Vec<_> = ready.iter().map(|kind| rule(installation, &ready_kinds::right(*kind))).collect();
    if !ready.is_empty() {
        roles.push(Role { kind: "ClusterRole", suffix: "ready-kinds", account: "", rules: ready });
    }
    roles
}

/// Returns the roles of `doctor`; the last one is for the namespace of its dry-run pod.
pub fn of_doctor(installation: &Installation) -> Vec<Role> {
    let mut roles = of(installation, "doctor", "doctor", OF_DOCTOR);
    let secrets = json!({
        "#": "The certificate that is served, and the CAs that callers trust. No other Secret can be read.",
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [format!("{}-certificates", installation.name), serving_secret(&installation.name)],
        "verbs": ["get"],
    });
    roles.iter_mut().filter(|role| role.kind == "Role").for_each(|role| role.rules.push(secrets.clone()));
    let tries = json!({
        "#": "A pod of a group, as a dry run: is it held?",
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["create"],
    });
    roles.push(Role { kind: "Role", suffix: TRIES, account: "doctor", rules: vec![tries] });
    roles
}

/// What the name of the role ends with that is for the dry-run pod.
const TRIES: &str = "doctor-tries";

/// Returns the roles of `uninstall`.
pub fn of_uninstall(installation: &Installation) -> Vec<Role> {
    of(installation, "uninstall", "uninstall", OF_UNINSTALL)
}

/// Returns the roles with these rights: one for the cluster, one for our namespace.
fn of(installation: &Installation, suffix: &'static str, account: &'static str, rights: &[Right]) -> Vec<Role> {
    let (cluster, own): (Vec<_>, Vec<_>) = rights.iter().partition(|right| right.scope.place("", "").0.is_none());
    let kinds = [("ClusterRole", cluster), ("Role", own)].into_iter().filter(|(_, rights)| !rights.is_empty());
    let rules = |rights: Vec<&Right>| rights.into_iter().map(|right| rule(installation, right)).collect();
    kinds.map(|(kind, rights)| Role { kind, suffix, account, rules: rules(rights) }).collect()
}

impl Role {
    /// Returns the name of the file with its rules in the chart, and these.
    pub fn file(self) -> (String, Value) {
        let suffix = if self.suffix.is_empty() { "replicas" } else { self.suffix };
        (format!("{suffix}.{}", self.kind.to_lowercase()), self.rules.into())
    }

    /// Returns the role and its binding.
    pub fn objects(
        self,
        Installation { name, namespace, .. }: &Installation,
        labels: &Value,
        try_in: &str,
    ) -> [Value; 2] {
        let ending = |suffix: &str| if suffix.is_empty() { name.clone() } else { format!("{name}-{suffix}") };
        let place = if self.suffix == TRIES { try_in } else { namespace };
        let role = ending(self.suffix);
        let metadata = json!({
            "name": role,
            "namespace": (self.kind == "Role").then_some(place),
            "labels": labels,
        });
        let account = json!({ "kind": "ServiceAccount", "name": ending(self.account), "namespace": namespace });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": format!("{}Binding", self.kind),
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": self.kind, "name": role },
            "subjects": [account],
        });
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": self.kind,
            "metadata": metadata,
            "rules": self.rules,
        });
        [role, binding]
    }
}

/// Returns the names, the labels and the rules of the roles that aggregate into the cluster's roles for users.
pub fn of_people(installation: &Installation) -> impl Iterator<Item = (&'static str, Map<String, Value>, Value)> {
    OF_PEOPLE.iter().map(|(suffix, added_to, rights)| {
        let label = |role| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), json!("true"));
        let rules = rights.iter().map(|right| rule(installation, right)).collect();
        (*suffix, added_to.iter().map(label).collect(), rules)
    })
}

/// Returns the rule of a right, with its reason.
fn rule(installation: &Installation, right: &Right) -> Value {
    let names = match right.scope {
        Scope::Cluster | Scope::Own => Value::Null,
        Scope::Webhooks | Scope::OwnLease => json!([installation.name]),
        Scope::OwnSecret => json!([format!("{}-certificates", installation.name)]),
        Scope::Hold => json!([HOLD_POLICY]),
    };
    json!({
        "#": right.why,
        "apiGroups": right.groups,
        "resources": right.resources,
        "resourceNames": names,
        "verbs": right.verbs,
    })
}
