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
    /// Returns the policy for an account of ours, or for everybody, and its binding.
    pub(super) fn policy(self, settings: &Settings, account: Option<&str>, when: Option<&str>) -> [Value; 2] {
        let by_us = account.map(|account| {
            let user = format!("system:serviceaccount:{}:{account}", settings.namespace);
            json!([{ "name": "by-rolegate", "expression": format!("request.userInfo.username == '{user}'") }])
        });
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
                "matchConditions": by_us,
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
