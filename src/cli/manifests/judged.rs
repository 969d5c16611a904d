//! A policy of the API server over requests: of an account of ours, or of everybody.

use serde_json::{Value, json};

use super::installation::{Choice, Installation};

/// The requests that a policy judges, and the expressions.
pub(super) struct Judged {
    pub(super) suffix: String,
    pub(super) so: String,
    pub(super) groups: Vec<&'static str>,
    pub(super) resources: Vec<&'static str>,
    pub(super) operations: &'static [&'static str],
    /// Whether it judges objects of our own namespace only.
    pub(super) own: bool,
    pub(super) variables: Vec<Value>,
    pub(super) validations: Vec<Value>,
}

/// Returns texts as elements of a list in an expression.
pub(super) fn quoted<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.map(|one| format!("'{one}'")).collect::<Vec<_>>().join(", ")
}

/// A policy, apart from the names and labels of an installation.
pub struct Policy {
    /// What its name ends with.
    pub suffix: String,
    /// Its purpose.
    so: String,
    /// Where it is.
    pub when: Option<Choice>,
    spec: Value,
}

impl Policy {
    /// Returns the spec, with the purpose as its comment.
    pub fn spec(&self) -> Value {
        let mut spec = self.spec.clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.insert("#".to_owned(), json!(self.so));
        }
        spec
    }

    /// Returns the policy and its binding.
    pub fn objects(self, name: &str, labels: &Value) -> [Value; 2] {
        let name = format!("{name}-{}", self.suffix);
        let metadata = json!({ "name": name, "labels": labels });
        let policy = json!({
            "#": self.so,
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": self.spec,
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": { "policyName": name, "validationActions": ["Deny"] },
        });
        [policy, binding]
    }
}

impl Judged {
    /// Returns the policy for accounts of ours, or for everybody if none is named.
    pub(super) fn policy(self, installation: &Installation, accounts: &[String], when: Option<Choice>) -> Policy {
        let user = |account: &String| format!("'system:serviceaccount:{}:{account}'", installation.namespace);
        let users = accounts.iter().map(user).collect::<Vec<_>>().join(", ");
        let by_us = json!([{ "name": "by-rolegate", "expression": format!("request.userInfo.username in [{users}]") }]);
        let namespaces = if self.own {
            json!({ "matchLabels": { "kubernetes.io/metadata.name": installation.namespace } })
        } else {
            json!({})
        };
        let spec = json!({
            "failurePolicy": "Fail",
            "matchConstraints": {
                // The API server's defaults: without them a second apply changes the object.
                "matchPolicy": "Equivalent",
                "namespaceSelector": namespaces,
                "objectSelector": {},
                "resourceRules": [{
                    "apiGroups": self.groups,
                    "apiVersions": ["*"],
                    "operations": self.operations,
                    "resources": self.resources,
                    "scope": "*",
                }],
            },
            "matchConditions": (!accounts.is_empty()).then_some(by_us),
            "variables": (!self.variables.is_empty()).then_some(self.variables),
            "validations": self.validations,
        });
        Policy { suffix: self.suffix, so: self.so, when, spec }
    }
}
