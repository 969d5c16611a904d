//! Waits for ValidatingAdmissionPolicies.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::ListParams;
use kube::{Api, Client};

use super::wait::{PATIENT, eventually};

/// Waits until the API server has checked the expressions of this number of policies, without warnings.
pub async fn policies_fit_the_types(client: &Client, count: usize) {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    eventually(PATIENT, "the policies are checked", async || {
        let all = policies.list(&ListParams::default()).await.unwrap().items;
        assert_eq!(all.len(), count);
        let status = |policy: &ValidatingAdmissionPolicy| policy.status.clone().unwrap_or_default();
        for policy in &all {
            let warnings = status(policy).type_checking.and_then(|checking| checking.expression_warnings);
            assert_eq!(warnings.unwrap_or_default(), [], "{:?}", policy.metadata.name);
        }
        let checked = all.iter().all(|policy| status(policy).observed_generation == policy.metadata.generation);
        if checked { Ok(()) } else { Err("not yet") }
    })
    .await;
}
