//! A policy of the API server over requests: of an account of ours, or of everybody.

use serde_json::{Value, json};

use super::settings::Settings;

/// The requests that a policy judges, and the expressions.
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) so: String,
    pub(super) groups: Vec<&'static str>,
    pub(super) resources: Vec<&'static str>,
    pub(super) operations: &'static [&'static str],
    /// Whether it judges objects of our own namespace only.
    pub(super) own: bool,
    pub(super) variables: Vec<Value>,
    pub(super) validations: Vec<Value>,
}

impl Judged {
    /// Returns the policy for accounts of ours, or for everybody if none is named, and its binding.
    pub(super) fn policy(self, settings: &Settings, accounts: &[String], when: Option<&str>) -> [Value; 2] {
        let user = |account: &String| format!("'system:serviceaccount:{}:{account}'", settings.namespace);
        let users = accounts.iter().map(user).collect::<Vec<_>>().join(", ");
        let by_us = json!([{ "name": "by-rolegate", "expression": format!("request.userInfo.username in [{users}]") }]);
        let namespaces = if self.own {
            json!({ "matchLabels": { "kubernetes.io/metadata.name": settings.namespace } })
        } else {
            json!({})
        };
        let metadata = json!({ "name": self.name, "labels": super::labels(settings) });
        let policy = json!({
            "?": when,
            "#": self.so,
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
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
                }] },
                "matchConditions": (!accounts.is_empty()).then_some(by_us),
                "variables": (!self.variables.is_empty()).then_some(self.variables),
                "validations": self.validations,
            },
        });
        let binding = json!({
            "?": when,
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": { "policyName": self.name, "validationActions": ["Deny"] },
        });
        [policy, binding]
    }
}
