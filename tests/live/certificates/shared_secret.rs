//! One Secret on a real API server, shared by three replicas that know nothing of each other.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rolegate::cluster::certificates::{
    CaBundle, CertificateAction, Certificates, Policy, Publication, Standing, carry_out,
};
use rolegate::tls::acceptor::{CertStore, check_pair};
use rolegate::tls::authority::{LeafSpec, issued_by};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::common::prelude::*;

/// One replica: a process in a cluster, a task here.
struct Replica {
    store: CertStore,
    publication: Publication,
    standing: watch::Receiver<Standing>,
    running: JoinHandle<()>,
}

impl Replica {
    fn start(client: &Client, identity: &str, policy: Policy, stop: &CancellationToken) -> Self {
        let store = CertStore::empty();
        let (certificates, publication) =
            Certificates::new(client.clone(), "default", "rolegate-tls", identity, policy, store.clone());
        let standing = certificates.standing();
        Self { store, publication, standing, running: tokio::spawn(certificates.run(stop.clone())) }
    }

    fn serves(&self) -> Option<String> {
        self.store.info().map(|info| info.fingerprint)
    }

    fn bundle(&self) -> Option<CaBundle> {
        self.publication.bundle.borrow().clone()
    }
}

async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    until_is(what, condition, true).await;
}

fn text(secret: &Secret, key: &str) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get(key)).unwrap();
    String::from_utf8(data.0.clone()).unwrap()
}

#[tokio::test]
async fn three_replicas_share_one_secret_through_its_life() {
    // Nobody else has Secrets in the default namespace.
    let client = ControlPlane::shared().client().await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let stop = CancellationToken::new();
    let mut policy = Policy::for_leaf(LeafSpec::for_service("rolegate", "default"));
    policy.settle = SignedDuration::ZERO;
    let replicas: Vec<_> = ["a", "b", "c"].map(|name| Replica::start(&client, name, policy.clone(), &stop)).into();
    let agree = async || {
        let Ok(secret) = secrets.get("rolegate-tls").await else { return false };
        let (certificate, key) = (text(&secret, "tls.crt"), text(&secret, "tls.key"));
        let served = check_pair(certificate.as_bytes(), key.as_bytes());
        let bundle = Some(CaBundle(text(&secret, "ca-bundle.crt")));
        served.is_ok_and(|served| {
            replicas.iter().all(|one| one.serves().as_ref() == Some(&served.fingerprint) && one.bundle() == bundle)
        })
    };

    // All start at once with nothing there: one of them creates it, the others take that.
    until("one Secret, served by all", &agree).await;
    let first = secrets.get("rolegate-tls").await.unwrap();
    assert_eq!(first.type_.as_deref(), Some("kubernetes.io/tls"));
    assert!(issued_by(&text(&first, "tls.crt"), &text(&first, "ca.crt")));

    // Deleted: a new CA comes in beside the old one, and the leaf that callers trust stays.
    secrets.delete("rolegate-tls", &DeleteParams::default()).await.unwrap();
    let has_both = |one: &Replica| one.bundle().is_some_and(|bundle| bundle.0.matches("BEGIN").count() == 2);
    until("a new Secret, served by all", async || agree().await && replicas.iter().all(has_both)).await;
    let second = secrets.get("rolegate-tls").await.unwrap();
    assert_ne!(text(&second, "ca.crt"), text(&first, "ca.crt"));
    assert_eq!(text(&second, "tls.crt"), text(&first, "tls.crt"));
    assert!(!issued_by(&text(&second, "tls.crt"), &text(&second, "ca.crt")));

    // Published, as each replica sees in the webhook configurations: only now comes the leaf of the new CA.
    for replica in &replicas {
        let bundle = CaBundle(text(&second, "ca-bundle.crt"));
        replica.publication.confirmation.published(&bundle, Timestamp::now());
    }
    let is_of_it = |secret: Secret| issued_by(&text(&secret, "tls.crt"), &text(&second, "ca.crt"));
    let is_new = async || agree().await && secrets.get("rolegate-tls").await.is_ok_and(is_of_it);
    until("a leaf of the new CA, served by all", is_new).await;

    // Spoiled by a person: repaired, with what that person added left alone.
    let mut spoiled = secrets.get("rolegate-tls").await.unwrap();
    let data = spoiled.data.as_mut().unwrap();
    data.insert("tls.key".to_owned(), ByteString(b"oops".to_vec()));
    data.insert("note".to_owned(), ByteString(b"mine".to_vec()));
    let before = replicas.first().unwrap().serves();
    secrets.replace("rolegate-tls", &PostParams::default(), &spoiled).await.unwrap();
    let is_another = async || agree().await && replicas.iter().all(|one| one.serves() != before);
    until("a repaired leaf, served by all", is_another).await;
    assert_eq!(text(&secrets.get("rolegate-tls").await.unwrap(), "note"), "mine");

    // Put back from elsewhere, with a CA that no caller knows: it is published beside that of the leaf that callers trust.
    let (served, former) = (replicas.first().unwrap().serves(), secrets.get("rolegate-tls").await.unwrap());
    let other = carry_out(CertificateAction::CreateAll(""), None, &policy, Timestamp::now()).unwrap().unwrap();
    let parts = [
        ("ca.crt", &other.ca.cert_pem),
        ("ca.key", &other.ca.key_pem),
        ("tls.crt", &other.leaf.cert_pem),
        ("tls.key", &other.leaf.key_pem),
        ("ca-bundle.crt", &other.bundle.0),
    ];
    let data: BTreeMap<_, _> =
        parts.into_iter().map(|(key, pem)| (key, ByteString(pem.clone().into_bytes()))).collect();
    secrets.patch("rolegate-tls", &PatchParams::default(), &Patch::Merge(json!({ "data": data }))).await.unwrap();
    until("both CAs, with the leaf from before", async || {
        let known =
            |leaf: &str| replicas.iter().all(|one| one.bundle().is_some_and(|bundle| issued_by(leaf, &bundle.0)));
        known(&other.leaf.cert_pem)
            && known(&text(&former, "tls.crt"))
            && replicas.iter().all(|one| one.serves() == served)
    })
    .await;
    for replica in &replicas {
        replica.publication.confirmation.published(&replica.bundle().unwrap(), Timestamp::now());
    }
    until("what was put back, served by all", &agree).await;

    // Somebody else's: it is neither read nor written, whatever is in it, and deleting it makes another one.
    let served = replicas.first().unwrap().serves();
    let theirs = json!({ "immutable": true, "data": { "tls.key": ByteString(b"oops".to_vec()) } });
    let theirs = secrets.patch("rolegate-tls", &PatchParams::default(), &Patch::Merge(theirs)).await.unwrap();
    let foreign = Standing { serves: true, foreign: Some("it is immutable") };
    let all_say_so = async || replicas.iter().all(|one| *one.standing.borrow() == foreign);
    until("all say that it is not theirs", all_say_so).await;
    assert!(replicas.iter().all(|one| one.serves() == served));
    assert_eq!(secrets.get("rolegate-tls").await.unwrap().metadata.resource_version, theirs.metadata.resource_version);
    secrets.delete("rolegate-tls", &DeleteParams::default()).await.unwrap();
    let is_as_before = |one: &Replica| one.serves() == served && one.standing.borrow().foreign.is_none();
    let is_theirs = async || agree().await && replicas.iter().all(is_as_before);
    until("a Secret of theirs, with the leaf from before", is_theirs).await;

    stop.cancel();
    for replica in replicas {
        timeout(PATIENT, replica.running).await.unwrap().unwrap();
    }
}
