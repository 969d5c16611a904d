//! Somebody overwrites the `caBundle` of the webhook configurations: without it no pod could be made.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Pod;
use rolegate::tls::authority::new_ca;

use crate::certificates::held_dry_run;
use crate::common::prelude::*;
use crate::common::rolegate::client_configs;

/// Less than the minute in which a configuration that is gone comes back.
const SOON: Duration = Duration::from_secs(50);

async fn bundles(stage: &Stage) -> Vec<Vec<u8>> {
    let configs = client_configs(&stage.client, &stage.namespace).await.unwrap();
    configs.into_iter().map(|config| config.ca_bundle.unwrap().0).collect()
}

/// Overwrites all in both configurations, and waits until they are as they were.
async fn repaired(stage: &Stage, ours: &[Vec<u8>]) {
    let theirs = ByteString(new_ca(Timestamp::now()).unwrap().cert_pem.into_bytes());
    let patch = |names: Vec<String>| {
        let webhook = |name: &String| json!({ "name": name, "clientConfig": { "caBundle": theirs } });
        Patch::Strategic(json!({ "webhooks": names.iter().map(webhook).collect::<Vec<_>>() }))
    };
    let (name, params) = (&stage.namespace, PatchParams::default());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(stage.client.clone());
    let names = mutating.get(name).await.unwrap().webhooks.unwrap().into_iter().map(|webhook| webhook.name).collect();
    mutating.patch(name, &params, &patch(names)).await.unwrap();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(stage.client.clone());
    let names = validating.get(name).await.unwrap().webhooks.unwrap().into_iter().map(|webhook| webhook.name).collect();
    let overwritten = validating.patch(name, &params, &patch(names)).await.unwrap();
    assert_eq!(overwritten.webhooks.unwrap()[0].client_config.ca_bundle.as_ref(), Some(&theirs));
    eventually(SOON, "the caBundle is repaired", async || {
        let found = bundles(stage).await;
        if found == ours { Ok(()) } else { Err(format!("{} webhooks", found.len())) }
    })
    .await;
}

#[tokio::test]
async fn a_ca_bundle_that_is_overwritten_is_repaired_at_once() {
    let stage = Stage::new("overwritten").await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    let ours = bundles(&stage).await;
    for _ in 0..2 {
        repaired(&stage, &ours).await;
        eventually(PATIENT, "a pod that is held", async || held_dry_run(&stage.api::<Pod>(), &stage.namespace).await)
            .await;
    }
    rolegate.kill().await;
    // Where somebody else installs them, the same.
    let rolegate = launch.flag("webhooks", "ca-bundle").start_unready().await;
    rolegate.until_ready().await;
    repaired(&stage, &ours).await;
    // The webhooks of another version, and one that leads elsewhere.
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(stage.client.clone());
    let mut found = validating.get(&stage.namespace).await.unwrap();
    let hooks = found.webhooks.as_mut().unwrap();
    let mut later = hooks[0].clone();
    (later.name, later.client_config.ca_bundle, later.rules) = ("later.rolegate.dev".to_owned(), None, None);
    let mut elsewhere = later.clone();
    (elsewhere.name, elsewhere.client_config.service) = ("elsewhere.rolegate.dev".to_owned(), None);
    elsewhere.client_config.url = Some("https://127.0.0.1:1/validate".to_owned());
    *hooks = vec![later, elsewhere];
    validating.replace(&stage.namespace, &PostParams::default(), &found).await.unwrap();
    eventually(SOON, "the webhook that leads to us has the bundle", async || {
        let hooks = validating.get(&stage.namespace).await.unwrap().webhooks.unwrap();
        let bundles: Vec<_> =
            hooks.into_iter().map(|hook| hook.client_config.ca_bundle.map(|bundle| bundle.0)).collect();
        if bundles == [Some(ours[0].clone()), None] { Ok(()) } else { Err(format!("{bundles:?}")) }
    })
    .await;
}
