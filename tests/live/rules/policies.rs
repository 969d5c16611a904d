//! RBG's CoordinatedPolicies: only judged, since RBG acts on them.

use crate::common::prelude::*;
use crate::rules::desk::{put, refused, stage, warned};

fn policy(name: &str, roles: &Value) -> Value {
    let update = json!({ "name": "update", "roles": roles, "strategy": { "rollingUpdate": { "maxSkew": "10%" } } });
    object("workloads.x-k8s.io/v1alpha2", "CoordinatedPolicy", name).spec(json!({ "policies": [update] }))
}

#[tokio::test]
async fn roles_that_the_group_does_not_have_are_refused() {
    let (stage, _rolegate) = stage("policy-role").await.serve().await;
    for version in ["v1alpha1", "v1alpha2"] {
        let group = object(&format!("workloads.x-k8s.io/{version}"), "RoleBasedGroup", version)
            .spec(json!({ "roles": [{ "name": "prefill", "replicas": 4 }, { "name": "decode", "replicas": 2 }] }));
        put(&stage, &group);
        let reason = format!(
            r#"spec.policies[0].roles[1]: Not found: "decod": must name a role of RoleBasedGroup "{version}"; did you mean "decode"?"#
        );
        refused(&stage, &policy(version, &json!(["prefill", "decod"])), &reason);
        put(&stage, &policy(version, &json!(["prefill", "decode"])));
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn one_that_no_group_is_bound_to_has_no_effect() {
        let (stage, _rolegate) = stage("policy-unbound").await.serve().await;
        let reason = r#"metadata.name: Not found: "llm": no RoleBasedGroup has this name, and the policy is bound by name: it has no effect"#;
        warned(&stage, &policy("llm", &json!(["prefill", "decode"])), &[reason]);
    }
}
