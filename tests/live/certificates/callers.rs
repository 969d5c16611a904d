//! Only the API server is let in: it shows a client certificate (`WebhookAdmissionConfiguration`), others do not.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use rolegate::tls::authority::new_ca;

use crate::certificates::held_dry_run;
use crate::common::prelude::*;

/// The name in the API server's certificate.
const NAME: &str = "kube-apiserver-webhooks";

/// A file with these CAs, written as one: a reader sees the old or the new.
fn write(path: &Path, pem: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, pem).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn launch(stage: &Stage, cas: &Path, name: &str) -> Launch {
    stage.launch().flag("client-ca", &cas.display().to_string()).flag("client-name", name)
}

fn ca_file(test: &str, pem: &str) -> PathBuf {
    let path = scratch_dir().join(format!("{test}-client-ca.pem"));
    write(&path, pem);
    path
}

/// Asks until the API server is refused by the webhook's TLS, and the pod with it.
async fn until_refused(stage: &Stage) {
    eventually(PATIENT, "a pod refused because the webhook lets nobody in", async || {
        match held_dry_run(&stage.api::<Pod>(), &stage.namespace).await {
            Err(error) if error.contains("failed calling webhook") && error.contains("tls:") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

async fn until_held(stage: &Stage) {
    eventually(PATIENT, "a pod that is held", async || held_dry_run(&stage.api::<Pod>(), &stage.namespace).await).await;
}

#[tokio::test]
async fn the_api_server_is_let_in_by_its_name_and_its_ca_may_rotate() {
    let start = || ControlPlane::start_with("kwok", &["--webhook-client", NAME]);
    let plane = ControlPlane::own(start).await;
    let theirs = std::fs::read_to_string(plane.dir.join("pki/ca.crt")).unwrap();
    let other = new_ca(Timestamp::now()).unwrap().cert_pem;

    // The right CA and one of the right names: pods are held, and the readiness check, which calls itself, is let in too.
    let stage = Stage::on(plane.clone(), "let-in").await;
    let cas = ca_file("let-in", &theirs);
    let mut rolegate = launch(&stage, &cas, &format!("somebody,{NAME}")).start().await;
    // For a moment after its start the API server does not know who may what.
    rolegate.overlooks_refusals = true;
    assert_eq!(rolegate.metric("server_handshakes_failed_total{reason=\"client_certificate\"}").await, 0);

    // What is no CA is not taken, and changes nothing.
    write(&cas, "nonsense");
    until_says("those before stay in use", async || rolegate.log()).await;
    plane.command("restart", "kube-apiserver").await;
    until_held(&stage).await;

    // Another CA is taken while it runs: the API server, which calls anew, is refused; readiness does not suffer.
    write(&cas, &other);
    until_says("files are good again", async || rolegate.log()).await;
    plane.command("restart", "kube-apiserver").await;
    until_refused(&stage).await;
    rolegate.until_ready().await;

    // Both, as in the middle of a rotation: it is let in again, without a restart of anything.
    write(&cas, &format!("{other}{theirs}"));
    until_held(&stage).await;
    rolegate.until_ready().await;
    rolegate.terminate().await;

    // The right CA with another name.
    let stage = Stage::on(plane.clone(), "misnamed").await;
    let cas = ca_file("misnamed", &theirs);
    let rolegate = launch(&stage, &cas, "somebody").start_unready().await;
    rolegate.until_ready().await;
    until_refused(&stage).await;
    rolegate.terminate().await;
}

#[tokio::test]
async fn an_api_server_without_a_certificate_is_not_let_in() {
    let stage = Stage::new("uncertified").await;
    let cas = ca_file("uncertified", &std::fs::read_to_string(stage.plane.dir.join("pki/ca.crt")).unwrap());
    let rolegate = launch(&stage, &cas, NAME).start_unready().await;
    rolegate.until_ready().await;
    until_refused(&stage).await;
    rolegate.terminate().await;
}
