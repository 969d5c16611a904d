//! The certificate in the files expires while pods are being made, and is replaced.

use jiff::{SignedDuration, Timestamp};
use rolegate::tls::authority::{Issued, LeafSpec, new_ca, new_leaf};

use crate::chaos::faults::story::{RECOVERY, Story, tell};
use crate::common::prelude::*;
use crate::common::rolegate::client_configs;

/// How long the first certificate is good for: time for a run to begin.
const LIFE: Duration = Duration::from_secs(40);

fn publish(folder: &Path, leaf: &Issued) {
    for (name, text) in [("tls.crt", &leaf.cert_pem), ("tls.key", &leaf.key_pem)] {
        let next = folder.join("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, folder.join(name)).unwrap();
    }
}

/// Has the API server trust this CA, in configurations that a rolegate has made which is gone by then.
async fn register(stage: &Stage, launch: &crate::common::rolegate::Launch, ca: &str) {
    let first = launch.start_unready().await;
    let configs = async || client_configs(&stage.client, &stage.namespace).await;
    eventually(PATIENT, "webhook configurations", configs).await;
    first.kill().await;
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/{}", stage.namespace);
        let mut found = stage.send("GET", &path, &json!({})).await.body;
        for webhook in found["webhooks"].as_array_mut().unwrap() {
            webhook["clientConfig"]["caBundle"] = json!(k8s_openapi::ByteString(ca.as_bytes().to_vec()));
        }
        let answer = stage.send("PUT", &path, &found).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn a_certificate_from_files_expires_and_is_replaced() {
    let stage = Stage::new("faults-expired").await;
    let (service, launch) = stage.behind_a_service().await;
    let now = Timestamp::now();
    let ca = new_ca(now - SignedDuration::from_hours(25)).unwrap();
    register(&stage, &launch, &ca.cert_pem).await;
    let folder = tempfile::tempdir().unwrap();
    let spec = LeafSpec { days: 1, ..LeafSpec::for_service(&stage.namespace, SYSTEM) };
    let begun = Instant::now();
    let nearly = Timestamp::now() - SignedDuration::from_hours(24) + SignedDuration::try_from(LIFE).unwrap();
    publish(folder.path(), &new_leaf(&ca, &spec, nearly).unwrap());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let launch = launch.flag("cert-file", &file("tls.crt")).flag("key-file", &file("tls.key"));
    let story = Story::begin_at(stage, service, launch.clone(), launch).await;
    story.rest().await;
    tokio::time::sleep_until((begun + LIFE + Duration::from_secs(2)).into()).await;
    // What is connected stays connected: the certificate is looked at when somebody connects.
    story.service.cut();
    let tried = async || story.try_pod().await;
    let expired = |error: &kube::Error| error.to_string().contains("expired");
    _ = until_found("a pod that is refused", tried, |tried| tried.as_ref().is_err_and(expired)).await;
    // Who has been admitted goes on.
    story.go_on();
    let moved = story.moves_again().await;
    publish(folder.path(), &new_leaf(&ca, &spec, Timestamp::now()).unwrap());
    let replaced = Instant::now();
    eventually(RECOVERY, "a pod that is admitted", tried).await;
    let time = replaced.elapsed();
    story.end().await;
    let how = format!(
        "pods made meanwhile are refused, those that were held go on by their turns ({:.1} s to the next); the new files are \
         read without a restart",
        moved.as_secs_f64()
    );
    tell("certificate in files expired, then replaced", time, &how);
}
