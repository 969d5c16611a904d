//! `rolegate doctor`: what it says of a healthy installation, and of one that is broken in one way after another.

use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{Resource, ResourceExt};
use rolegate::tls::authority::{LeafSpec, new_ca, new_leaf};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::common::account::policy_on_authors;
use crate::common::control_plane::{NEWEST, kubernetes};
use crate::common::prelude::*;
use crate::install::support::WITH_CERT_MANAGER;
use crate::lifecycle::rolegate;

async fn doctor(stage: &Stage) -> Ran {
    rolegate(stage, &["doctor", "-o", "json", "--try-in", &stage.namespace]).await
}

/// Ids of what is found at this level.
fn ids(ran: &Ran, level: &str) -> Vec<String> {
    let findings = ran.json()["findings"].as_array().unwrap().clone();
    let of_level = findings.iter().filter(|finding| finding["level"] == level);
    let mut ids: Vec<_> = of_level.map(|finding| finding["check"].as_str().unwrap().to_owned()).collect();
    ids.dedup();
    ids
}

/// Looks until the errors are these: what is written reaches the API server's own caches a moment later.
async fn until_errors(stage: &Stage, expected: &[&str]) -> Ran {
    let is_so = |ran: &Ran| ids(ran, "error") == expected && ran.code == i32::from(!expected.is_empty());
    until_found(&format!("errors {expected:?}"), async || doctor(stage).await, is_so).await
}

#[tokio::test]
async fn a_healthy_installation_and_one_fault_after_another() {
    let plane = ControlPlane::own_with_groups().await;
    let stage = Stage::on(plane.clone(), "doctor").await;
    // The second of them leaves the configurations as the first has made them, so that they stay broken.
    let first = stage.launch().start().await;
    let address = first.webhook.to_string();
    // Accounts of tests go without it.
    plane.must(&["apply", "-f", "-"], &policy_on_authors("doctor", &[]));
    first.terminate().await;
    let stopped = doctor(&stage).await;
    assert_eq!(ids(&stopped, "error"), ["admission", "leader"], "{stopped:?}");
    let second = stage.launch().flag("listen", &address).flag("webhooks", "off").start().await;
    second.until_metric("rolegate_leader", 1).await;

    let healthy = until_errors(&stage, &[]).await;
    assert_eq!(ids(&healthy, "warning"), [""; 0], "{healthy:?}");
    assert_eq!(ids(&healthy, "info"), ["endpoint"], "{healthy:?}");
    let shown = rolegate(&stage, &["doctor", "--try-in", "doctor"]).await;
    let version = kubernetes().unwrap_or_else(|| NEWEST.to_owned());
    assert!(shown.out.starts_with(&format!("ok       api-server           Kubernetes {version}\n")), "{shown:?}");
    assert!(shown.out.ends_with("\n0 errors, 0 warnings\n"), "{shown:?}");

    no_bundle(&stage).await;
    no_right(&stage).await;
    no_configuration(&stage).await;
    orphans(&stage).await;
    opt_ins(&stage).await;
    second.terminate().await;
    expired(&stage).await;
}

/// Looks at the installation while its object of this kind is not as it should be.
async fn while_broken<K>(stage: &Stage, spoil: impl FnOnce(&mut K), errors: &[&str]) -> Ran
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let api: Api<K> = Api::all(stage.client.clone());
    let mut good = api.get("doctor").await.unwrap();
    let mut broken = good.clone();
    spoil(&mut broken);
    api.replace("doctor", &PostParams::default(), &broken).await.unwrap();
    let ran = until_errors(stage, errors).await;
    good.meta_mut().resource_version = api.get("doctor").await.unwrap().resource_version();
    api.replace("doctor", &PostParams::default(), &good).await.unwrap();
    until_errors(stage, &[]).await;
    ran
}

async fn no_bundle(stage: &Stage) {
    let spoil = |configuration: &mut MutatingWebhookConfiguration| {
        configuration.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
    };
    let ran = while_broken(stage, spoil, &["ca-bundle", "admission"]).await;
    assert!(ran.out.contains("x509"), "the API server's own words: {ran:?}");
}

async fn no_right(stage: &Stage) {
    let spoil = |role: &mut ClusterRole| {
        let mut rules = role.rules.as_mut().unwrap().iter_mut();
        let pods = rules.find(|rule| rule.resources.as_deref() == Some(&["pods".to_owned()]));
        pods.unwrap().verbs.retain(|verb| verb != "patch");
    };
    let ran = while_broken(stage, spoil, &["rights"]).await;
    assert!(ran.out.contains("system:serviceaccount:rolegate-system:doctor may not patch pods"), "{ran:?}");
}

async fn no_configuration(stage: &Stage) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(stage.client.clone());
    let mut good = api.get("doctor").await.unwrap();
    api.delete("doctor", &DeleteParams::default()).await.unwrap();
    until_errors(stage, &["webhooks"]).await;
    (good.metadata.resource_version, good.metadata.uid) = (None, None);
    api.create(&PostParams::default(), &good).await.unwrap();
    until_errors(stage, &[]).await;
}

async fn orphans(stage: &Stage) {
    stage.create(Group::new("gone").role("main", 1, 0).pod("main", "lost", &stage.namespace)).await;
    let ran = doctor(stage).await;
    assert_eq!((ran.code, ids(&ran, "warning")), (0, vec!["orphans".to_owned()]), "{ran:?}");
    assert!(ran.out.contains("1 pod held for group doctor/gone, which is not there"), "{ran:?}");
    stage.api::<Pod>().delete("lost", &DeleteParams::default().grace_period(0)).await.unwrap();
}

/// A group asks for what rolegate may not do.
async fn opt_ins(stage: &Stage) {
    let group = Group::new("llm").role("main", 1, 1);
    let mut object = group.object();
    object["spec"]["coordination"][0]["strategy"]["segmentPlacement"]["recovery"] = json!({ "policy": "Recreate" });
    stage.create(object).await;
    let ran = until_errors(stage, &["opt-ins"]).await;
    let asks = "group doctor/llm asks for recovery";
    let what = format!("{asks}, and system:serviceaccount:rolegate-system:doctor may not delete pods");
    assert!(ran.out.contains(&what) && ran.out.contains("rolegate manifests --allow recovery"), "{ran:?}");
    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    until_errors(stage, &[]).await;
}

/// Nobody renews: the certificate expires.
async fn expired(stage: &Stage) {
    let past = Timestamp::now() - SignedDuration::from_hours(24 * 40);
    let ca = new_ca(past).unwrap();
    let leaf = new_leaf(&ca, &LeafSpec::for_names(["doctor.example"]), past).unwrap();
    let text = |text: &str| ByteString(text.as_bytes().to_vec());
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), SYSTEM);
    let patch = Patch::Merge(json!({ "data": { "tls.crt": text(&leaf.cert_pem), "tls.key": text(&leaf.key_pem) } }));
    secrets.patch("doctor-certificates", &PatchParams::default(), &patch).await.unwrap();
    let ran = until_errors(stage, &["certificate", "ca-bundle", "admission", "leader"]).await;
    assert!(ran.out.contains("the serving certificate expired 10d ago"), "{ran:?}");
}

#[tokio::test]
async fn the_certificate_of_cert_manager_is_looked_at() {
    // Nothing runs here. What cert-manager has issued and injected is right.
    let (expected, good) = (["endpoint", "admission", "leader"], ["certificate", "ca-bundle", "rights"]);
    let look = async || ran(&WITH_CERT_MANAGER.get().kubeconfig, &["doctor", "-o", "json"]).await;
    until_found(&format!("errors {expected:?}"), look, |ran| {
        let ok = ids(ran, "ok");
        ids(ran, "error") == expected && good.iter().all(|id| ok.iter().any(|ok| ok == id))
    })
    .await;
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_not_called_healthy() {
    let plane = ControlPlane::shared();
    let kubeconfig: PathBuf = scratch_dir().join("nobody.kubeconfig");
    let text = std::fs::read_to_string(&plane.kubeconfig).unwrap();
    std::fs::write(&kubeconfig, text.replace(&plane.server, "https://127.0.0.1:1")).unwrap();
    let ran = ran(&kubeconfig, &["doctor"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    assert!(ran.err.starts_with("rolegate: cannot reach the API server at https://127.0.0.1:1"), "{ran:?}");
}
