//! Handshakes, the serving certificate and its renewal.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use rolegate::server::http::admin::Readiness;
use rolegate::server::http::self_dial::{SelfDial, SelfDialError, SelfIdentity};
use rolegate::tls::acceptor::{CertStore, ClientAuth, ClientCas};
use rolegate::tls::authority::{Issued, LeafSpec, new_ca, new_leaf};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::support::{H1, NAME, Options, Server, connect, rest, serve_leaf, within};

#[tokio::test]
async fn only_tls_1_3_is_spoken() {
    let server = Server::start(Options::default()).await;
    let stream = server.tls().await;
    let session = stream.get_ref().1;
    assert_eq!(session.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    // A hello that offers only TLS 1.2: one cipher suite, no supported_versions extension.
    let mut raw = TcpStream::connect(server.address).await.unwrap();
    let mut hello = vec![22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2b, 1, 0]);
    raw.write_all(&hello).await.unwrap();
    let mut alert = [0; 7];
    within(raw.read_exact(&mut alert)).await.unwrap();
    assert_eq!(alert[0], 21, "an alert, not a hello: {alert:?}");
}

#[tokio::test]
async fn plain_http_is_told_to_use_https() {
    let server = Server::start(Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.0 400 ") && answer.contains("HTTPS"), "{answer}");
    server.counts("server_handshakes_failed_total{reason=\"plain_http\"} 1").await;
}

#[tokio::test]
async fn failed_handshakes_are_told_apart() {
    let server = Server::start(Options { loaded: false, ..Options::default() }).await;
    assert!(connect(server.address, &server.ca, None).await.is_err());
    server.counts("server_handshakes_failed_total{reason=\"no_certificate\"} 1").await;
    serve_leaf(&server.store, &server.ca);
    let stranger = new_ca(Timestamp::now()).unwrap();
    assert!(connect(server.address, &stranger, None).await.is_err());
    server.counts("server_handshakes_failed_total{reason=\"untrusted\"} 1").await;
    assert!(connect(server.address, &server.ca, None).await.is_ok());
}

#[tokio::test]
async fn a_certificate_is_swapped_under_load_and_no_request_fails() {
    let server = Arc::new(Server::start(Options::default()).await);
    let stop = CancellationToken::new();
    let answered = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let (server, stop, answered) = (Arc::clone(&server), stop.clone(), Arc::clone(&answered));
        callers.spawn(async move {
            let mut kept = server.h1().await;
            while !stop.is_cancelled() {
                if caller % 2 == 0 {
                    kept = server.h1().await;
                }
                assert_eq!(kept.post(b"{}".to_vec()).await.unwrap().status, 200);
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    for round in 1..=20 {
        let before = server.store.info();
        serve_leaf(&server.store, &server.ca);
        assert_ne!(server.store.info(), before);
        within(async {
            while answered.load(Ordering::SeqCst) < round * 20 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    stop.cancel();
    while let Some(caller) = within(callers.join_next()).await {
        caller.unwrap();
    }
    let metrics = server.metrics();
    let mut failed = metrics.lines().filter(|line| line.starts_with("server_handshakes_failed_total{"));
    assert!(failed.all(|line| line.ends_with(" 0")), "{metrics}");
}

#[tokio::test]
async fn only_allowed_clients_get_in() {
    let now = Timestamp::now();
    let client_ca = new_ca(now).unwrap();
    let identity = SelfIdentity::generate().unwrap();
    let cas = ClientCas::default();
    cas.set(client_ca.cert_pem.as_bytes()).unwrap();
    let client =
        ClientAuth { cas, allowed_names: vec!["kube-apiserver".to_owned()], own: Some(identity.certificate()) };
    let server = Server::start(Options { client: Some(client), ..Options::default() }).await;
    // Issues client certificates.
    let client = |name: &str, ca: &Issued| {
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer =
            rcgen::Issuer::from_ca_cert_pem(&ca.cert_pem, rcgen::KeyPair::from_pem(&ca.key_pem).unwrap()).unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        Issued { cert_pem: params.signed_by(&key, &issuer).unwrap().pem(), key_pem: key.serialize_pem() }
    };
    let allowed = client("kube-apiserver", &client_ca);
    let other_name = client("someone", &client_ca);
    let other_ca = client("kube-apiserver", &new_ca(now).unwrap());
    for (own, gets_in) in [(Some(&allowed), true), (Some(&other_name), false), (Some(&other_ca), false), (None, false)]
    {
        // In TLS 1.3, the client learns of the refusal only after its own side of the handshake.
        let answer = async {
            let stream = connect(server.address, &server.ca, own).await.ok()?;
            H1::over(stream).await.get("/livez").await.ok()
        };
        assert_eq!(answer.await.is_some(), gets_in, "{own:?}");
    }
    server.counts("server_handshakes_failed_total{reason=\"client_certificate\"} 3").await;
    SelfDial::new(server.address, server.store.clone(), Some(identity)).unwrap().dial().await.unwrap();
    let stranger = SelfIdentity::generate().unwrap();
    assert!(SelfDial::new(server.address, server.store.clone(), Some(stranger)).unwrap().dial().await.is_err());
}

#[tokio::test]
async fn the_self_dial_sees_what_a_caller_sees() {
    let server = Server::start(Options { loaded: false, ..Options::default() }).await;
    let dial = SelfDial::new(server.address, server.store.clone(), None).unwrap();
    assert!(matches!(dial.dial().await, Err(SelfDialError::NoCertificate)));
    serve_leaf(&server.store, &server.ca);
    dial.dial().await.unwrap();
    // The certificate of another server is refused, even with the same CA and names.
    let elsewhere = CertStore::empty();
    serve_leaf(&elsewhere, &server.ca);
    let stranger = SelfDial::new(server.address, elsewhere, None).unwrap();
    assert!(matches!(stranger.dial().await, Err(SelfDialError::Io(_))));
    // An expired certificate can be served, but no caller accepts it.
    let past = Timestamp::now() - jiff::SignedDuration::from_hours(24 * 60);
    let old = new_leaf(&new_ca(past).unwrap(), &LeafSpec::for_names([NAME]), past).unwrap();
    server.store.set(old.cert_pem.as_bytes(), old.key_pem.as_bytes()).unwrap();
    let error = dial.dial().await.unwrap_err().to_string();
    assert!(error.to_lowercase().contains("expired"), "{error}");
    let address = server.address;
    let store = server.store.clone();
    server.finish().await;
    assert!(SelfDial::new(address, store, None).unwrap().dial().await.is_err());
}

#[tokio::test]
async fn readiness_follows_the_certificate_at_once() {
    let server = Server::start(Options { loaded: false, ..Options::default() }).await;
    let readiness = Readiness::default();
    let check = readiness.register("webhook");
    let stop = CancellationToken::new();
    let dial = SelfDial::new(server.address, server.store.clone(), None).unwrap();
    let running = tokio::spawn(dial.run(check, stop.clone()));
    assert!(!readiness.is_ready());
    let start = Instant::now();
    serve_leaf(&server.store, &server.ca);
    within(async {
        while !readiness.is_ready() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(start.elapsed() < Duration::from_secs(4), "waited for the next round");
    stop.cancel();
    within(running).await.unwrap();
    assert!(!readiness.is_ready());
}
