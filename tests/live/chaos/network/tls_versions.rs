//! Which versions of TLS are spoken: 1.3, and 1.2 where it is asked for.

use rustls::pki_types::ServerName;
use rustls::{ProtocolVersion, SupportedProtocolVersion, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::attackers::{answered, sent, trusting};
use super::target::{Target, review};
use crate::common::prelude::*;

/// The version that a caller who knows these ends up with, once its review is answered.
async fn spoken(target: &Target, known: &[&'static SupportedProtocolVersion]) -> std::io::Result<ProtocolVersion> {
    let stream = TcpStream::connect(target.address()).await.unwrap();
    let connector = TlsConnector::from(Arc::new(trusting(&target.ca, known)));
    let stream = connector.connect(ServerName::from(target.address().ip()), stream).await?;
    let version = stream.get_ref().1.protocol_version().unwrap();
    let review = String::from_utf8(sent(&review())).unwrap().replacen("\r\n", "\r\nConnection: close\r\n", 1);
    let (answer, _) = answered(stream, review.as_bytes(), crate::common::PATIENT).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    Ok(version)
}

#[tokio::test]
async fn old_callers_are_let_in_only_where_it_is_asked_for() {
    let all = [&version::TLS12, &version::TLS13];
    let target = Target::start("net-tls-13").await;
    let refused = spoken(&target, &[&version::TLS12]).await.unwrap_err().to_string();
    assert!(refused.contains("ProtocolVersion"), "{refused}");
    assert_eq!(spoken(&target, &all).await.unwrap(), ProtocolVersion::TLSv1_3);
    let stage = Stage::new("net-tls-12").await;
    let launch = stage.launch().flag("tls-min", "1.2");
    let target = Target::of(stage, launch).await;
    assert_eq!(spoken(&target, &[&version::TLS12]).await.unwrap(), ProtocolVersion::TLSv1_2);
    assert_eq!(spoken(&target, &all).await.unwrap(), ProtocolVersion::TLSv1_3);
}
