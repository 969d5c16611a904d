//! Certificates and CAs are exchanged under load, and nobody is refused for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Pod;
use rolegate::tls::authority::issued_by;

use crate::certificates::held_dry_run;
use crate::common::prelude::*;

/// Pods created in a second, if the machine can.
const RATE: u32 = 500;
/// Requests in flight at most.
const IN_FLIGHT: usize = 32;
/// Rounds: in each a new leaf, then a new CA with another leaf.
const ROUNDS: usize = 3;

/// What is counted of the load.
#[derive(Default)]
struct Load {
    sent: AtomicUsize,
    held: AtomicUsize,
    over: AtomicBool,
}

/// Creates pods as dry runs, one each 1/[`RATE`] s, until it is over; the first failure ends it.
async fn create_pods(stage: Arc<Stage>, load: Arc<Load>, start: Instant) -> Result<(), String> {
    let pods = stage.api::<Pod>();
    while !load.over.load(Ordering::SeqCst) {
        let turn = u32::try_from(load.sent.fetch_add(1, Ordering::SeqCst)).unwrap();
        tokio::time::sleep_until((start + turn * Duration::from_secs(1) / RATE).into()).await;
        held_dry_run(&pods, &stage.namespace).await.map_err(|error| format!("pod {turn}: {error}"))?;
        load.held.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

fn text(secret: &Secret, key: &str) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get(key));
    String::from_utf8(data.map(|bytes| bytes.0.clone()).unwrap_or_default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_admission_fails_while_certificates_rotate() {
    let stage = Arc::new(Stage::new("rotation").await);
    // Two replicas behind one address: while one serves the new certificate, the other may still serve the old one.
    let (service, launch) = stage.behind_a_service().await;
    let launch = launch.flag("ca-settle", "2s");
    let replicas = [launch.start_unready().await, launch.start_unready().await];
    let [one, other] = replicas.each_ref().map(|replica| replica.webhook);
    service.lead_to(&[one, other]);
    eventually(PATIENT, "a pod that is held", async || held_dry_run(&stage.api(), &stage.namespace).await).await;
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), SYSTEM);
    let name = format!("{}-certificates", stage.namespace);
    let load = Arc::new(Load::default());
    let start = Instant::now();
    let creator = || tokio::spawn(create_pods(stage.clone(), load.clone(), start));
    let creators: Vec<_> = (0..IN_FLIGHT).map(|_| creator()).collect();

    let (mut leaves, mut cas) = (0, 0);
    let mut before = secrets.get(&name).await.unwrap();
    for round in 0..ROUNDS {
        // Callers that connect anew, as they do for a new bundle, come to the other replica.
        service.lead_to(&if round % 2 == 0 { [other, one] } else { [one, other] });
        // A key that is not the certificate's: a new leaf of the same CA is served at once.
        let spoiled = Patch::Merge(json!({ "data": { "tls.key": ByteString(b"spoiled".to_vec()) } }));
        secrets.patch(&name, &PatchParams::default(), &spoiled).await.unwrap();
        before = new_leaf(&secrets, &name, &before).await;
        leaves += 1;
        // Deleting the Secret is how a person asks for new keys: a new CA, known to all before a leaf of it is served.
        secrets.delete(&name, &DeleteParams::default()).await.unwrap();
        let after = new_leaf(&secrets, &name, &before).await;
        assert_ne!(text(&after, "ca.crt"), text(&before, "ca.crt"));
        before = after;
        leaves += 1;
        cas += 1;
    }
    load.over.store(true, Ordering::SeqCst);
    for creator in creators {
        creator.await.unwrap().unwrap();
    }
    let (held, seconds) = (load.held.load(Ordering::SeqCst), start.elapsed().as_secs_f64());
    println!(
        "{held} pods held in {seconds:.1} s ({:.0}/s of {RATE}/s wanted), {leaves} leaves and {cas} CAs exchanged",
        f64::from(u32::try_from(held).unwrap()) / seconds
    );
    assert!(held > 500, "hardly a load: {held} pods in {seconds} s");
    for replica in &replicas {
        replica.until_ready().await;
        assert!(replica.metric("rolegate_server_certificate_expiry_seconds").await > Timestamp::now().as_second());
        let answered = replica.metric("rolegate_server_requests_total{path=\"mutate\",code=\"200\"}").await;
        assert!(answered > 0, "a replica that was not asked");
    }
}

/// Waits for a Secret with another leaf, that is of its CA.
async fn new_leaf(secrets: &Api<Secret>, name: &str, before: &Secret) -> Secret {
    eventually(PATIENT, "a new leaf of the CA", async || {
        let secret = secrets.get(name).await.map_err(|error| error.to_string())?;
        let leaf = text(&secret, "tls.crt");
        let of_its_ca = issued_by(&leaf, &text(&secret, "ca.crt"));
        if leaf != text(before, "tls.crt") && of_its_ca { Ok(secret) } else { Err("the old leaf".to_owned()) }
    })
    .await
}

mod tier2 {
    use std::pin::pin;

    use futures::StreamExt as _;
    use kube::runtime::watcher::watch_object;

    use super::*;

    /// Time for which somebody fights for the Secret.
    const FIGHT: Duration = Duration::from_secs(120);

    /// Writes its bytes whenever others are there, and counts how often that is so.
    async fn restore(secrets: Api<Secret>, name: String, others: Arc<AtomicUsize>) {
        let bytes = ByteString(b"theirs".to_vec());
        let theirs = Patch::Merge(json!({ "data": { "ca.crt": bytes, "tls.key": bytes } }));
        let mut seen = pin!(watch_object(secrets.clone(), &name));
        while let Some(event) = seen.next().await {
            let Ok(Some(secret)) = event else { continue };
            if text(&secret, "tls.key") != "theirs" {
                others.fetch_add(1, Ordering::SeqCst);
                secrets.patch(&name, &PatchParams::default(), &theirs).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn somebody_who_restores_other_bytes_costs_few_renewals_and_no_pod() {
        let stage = Stage::new("fought-over").await;
        let (service, launch) = stage.behind_a_service().await;
        let replicas = [launch.start_unready().await, launch.start_unready().await];
        service.lead_to(&replicas.each_ref().map(|replica| replica.webhook));
        eventually(PATIENT, "a pod that is held", async || held_dry_run(&stage.api(), &stage.namespace).await).await;
        let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), SYSTEM);
        let name = format!("{}-certificates", stage.namespace);
        let others = Arc::new(AtomicUsize::new(0));
        let writer = tokio::spawn(restore(secrets, name, others.clone()));
        let (start, mut held) = (Instant::now(), 0);
        let mut turns = tokio::time::interval(Duration::from_millis(100));
        while start.elapsed() < FIGHT {
            turns.tick().await;
            held_dry_run(&stage.api(), &stage.namespace).await.unwrap_or_else(|error| panic!("pod {held}: {error}"));
            held += 1;
        }
        assert!(!writer.is_finished(), "the writer gave up");
        writer.abort();
        // Without those from before.
        let renewals = others.load(Ordering::SeqCst) - 1;
        println!("{renewals} renewals, {held} pods held");
        assert!((1..=5).contains(&renewals), "{renewals} renewals");
    }
}
