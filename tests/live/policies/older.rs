//! All that is installed, on older versions of Kubernetes: what is printed for them they accept, and it judges alike.

use k8s_openapi::api::core::v1::Pod;

use crate::common::account::manifests;
use crate::common::build::labels;
use crate::common::policies::policies_fit_the_types;
use crate::common::prelude::*;
use crate::install::support::DRY_RUN;
use crate::policies::cluster::{
    Answer, client_as, define_loosely, grant, install_for, refuse_on_error, released, try_patch,
};
use crate::policies::readme::coverage;
use crate::policies::trial::{arrange, authors};
use crate::policies::twins::{ask_all, check, large_objects_are_judged, until, wrong_objects};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_works_as_kubernetes_1_34() {
    works_as("1.34").await;
}

async fn works_as(version: &'static str) {
    let plane = ControlPlane::own(move || ControlPlane::emulating(version)).await;
    every_part_is_accepted(&plane, version);

    define_loosely(&plane);
    let client = plane.client().await;
    let trials = arrange(&client, &authors(&plane).await).await;
    install_for(&plane, version);
    policies_fit_the_types(&client, 6).await;
    refuse_on_error(&client).await;
    for (kind, object) in wrong_objects() {
        until(&client, kind, &object, |answer| matches!(answer, Answer::Refused(_))).await;
    }
    check(&trials, &ask_all(&plane, &client, &trials).await, &coverage());
    large_objects_are_judged(&client).await;
    a_hold_stays_closed(&plane).await;
}

/// Every object with every choice that adds one, as a dry run: an unknown field or function is an error.
fn every_part_is_accepted(plane: &ControlPlane, version: &str) {
    let parts = "crds,rbac,containment,network,workload,webhooks,doctor,uninstall";
    let choices = ["--allow", "scale,recovery", "--recreate-mis-stamped", "--ready-kinds", "Job=jobs.v1.batch"];
    let printed = manifests(&[&["--kubernetes", version, "--part", parts], &choices[..]].concat());
    // A pod needs its account, which a dry run does not make.
    let printed: Vec<_> = printed.split("---\n").filter(|object| !object.contains("\nkind: Pod\n")).collect();
    plane.must(DRY_RUN, &printed.join("---\n"));
}

/// The guard refuses to open a hold, and names all that may not change.
async fn a_hold_stays_closed(plane: &ControlPlane) {
    grant(plane, "default", "edit", "operator");
    let spec = json!({
        "containers": [{ "name": "main", "image": "none" }], "schedulingGates": [{ "name": "rolegate.dev/hold" }],
    });
    let labelled = json!({ "metadata": { "labels": labels("llm", "decode") }, "spec": spec });
    let pod = object("v1", "Pod", "held").with(&labelled);
    plane.must(&["create", "-f", "-"], &pod.to_string());
    let pods: Api<Pod> = Api::namespaced(client_as(plane, "operator").await, "default");
    let [group, role] = ["group", "role"].map(|key| format!("rolegate.dev/{key}"));
    let relabelled = json!({ "metadata": { "labels": { group: "other", role: "other" } } });
    for (change, words) in [
        (&released(), &["may be released only by rolegate"][..]),
        (&relabelled, &["metadata.labels[rolegate.dev/group]", "metadata.labels[rolegate.dev/role]"]),
    ] {
        let answer = async || try_patch(&pods, "held", &Patch::Strategic(change)).await;
        let is_so = |answer: &Answer| words.iter().all(|word| answer.is_refused(word));
        until_found("the guard is in force", answer, is_so).await;
    }
}

mod tier2 {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_installed_works_as_kubernetes_1_35() {
        works_as("1.35").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_installed_works_as_kubernetes_1_36() {
        works_as("1.36").await;
    }
}
