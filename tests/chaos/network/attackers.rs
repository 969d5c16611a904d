//! Who means harm. Each function is one attack by many at once, and says what they got.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::frames;
use super::target::{Target, review, review_of};
use crate::common::http::Caller;

/// One protocol to attack by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// Who attacks one target.
#[derive(Clone)]
pub struct Attackers {
    address: SocketAddr,
    configs: [Arc<ClientConfig>; 2],
    /// Handshakes at a time: those of this process must not be what is measured.
    handshakes: Arc<Semaphore>,
}

impl Attackers {
    /// They know what every caller knows.
    pub fn of(target: &Target) -> Self {
        let config = |protocol: &[u8]| {
            let mut config = trusting(&target.ca, &[&rustls::version::TLS13]);
            config.alpn_protocols = vec![protocol.to_vec()];
            Arc::new(config)
        };
        let configs = [config(b"http/1.1"), config(b"h2")];
        Self { address: target.address(), configs, handshakes: Arc::new(Semaphore::new(32)) }
    }

    /// Shakes hands.
    pub async fn tls(&self, protocol: Protocol) -> io::Result<TlsStream<TcpStream>> {
        let _turn = self.handshakes.acquire().await;
        let stream = timeout(Duration::from_secs(5), TcpStream::connect(self.address)).await??;
        let config = self.configs[usize::from(protocol == Protocol::Http2)].clone();
        let name = ServerName::from(self.address.ip());
        timeout(Duration::from_secs(5), TlsConnector::from(config).connect(name, stream)).await?
    }

    /// Many at once, each of which does something until a time, and says in a word or two what it got.
    pub async fn many<F>(self, count: usize, time: Duration, one: impl Fn(Self, usize, Instant) -> F) -> String
    where
        F: Future<Output = String> + Send + 'static,
    {
        let until = Instant::now() + time;
        let mut all: JoinSet<_> = (0..count).map(|number| one(self.clone(), number, until)).collect();
        let mut got = BTreeMap::<String, usize>::new();
        while let Some(one) = all.join_next().await {
            *got.entry(one.unwrap()).or_default() += 1;
        }
        let mut got: Vec<_> = got.into_iter().collect();
        got.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        got.into_iter().map(|(what, count)| format!("{count} × {what}")).collect::<Vec<_>>().join(", ")
    }

    /// Connects and says nothing.
    pub async fn idle_tcp(self, until: Instant) -> String {
        let Ok(Ok(mut stream)) = timeout_at(until, TcpStream::connect(self.address)).await else {
            return "not connected".to_owned();
        };
        waits(&mut stream, until).await
    }

    /// Shakes hands and says nothing; or sends one review before that.
    pub async fn idle_tls(self, protocol: Protocol, asks: bool, until: Instant) -> String {
        let Ok(mut stream) = self.tls(protocol).await else { return "no handshake".to_owned() };
        let said = match (protocol, asks) {
            (Protocol::Http1, false) => Vec::new(),
            (Protocol::Http1, true) => http1_review(&review()),
            (Protocol::Http2, false) => frames::opening(&[]),
            (Protocol::Http2, true) => [frames::opening(&[]), http2_request(1, &review())].concat(),
        };
        if stream.write_all(&said).await.is_err() || stream.flush().await.is_err() {
            return "closed".to_owned();
        }
        waits(&mut stream, until).await
    }

    /// Sends headers of HTTP/1 a byte at a time.
    pub async fn slow_headers(self, until: Instant) -> String {
        let Ok(mut stream) = self.tls(Protocol::Http1).await else { return "no handshake".to_owned() };
        if stream.write_all(b"POST /mutate HTTP/1.1\r\nHost: x\r\nX-A: ").await.is_err() {
            return "closed".to_owned();
        }
        while Instant::now() < until {
            if stream.write_all(b"a").await.is_err() || stream.flush().await.is_err() {
                return "closed".to_owned();
            }
            if timeout(Duration::from_millis(500), stream.read_u8()).await.is_ok() {
                return "closed".to_owned();
            }
        }
        "still there".to_owned()
    }

    /// Asks again and again, and never reads what is answered.
    pub async fn never_reads(self, protocol: Protocol, body: Bytes, until: Instant) -> String {
        let Ok(mut stream) = self.tls(protocol).await else { return "no handshake".to_owned() };
        let asked = match protocol {
            Protocol::Http1 => http1_review(&body).repeat(8),
            // A window of 0 bytes for answers, and as many requests as are let in.
            Protocol::Http2 => (0..128).fold(frames::opening(&[(4, 0)]), |mut asked, number| {
                asked.extend(http2_request(2 * number + 1, &body));
                asked
            }),
        };
        loop {
            let sent = timeout_at(until, async {
                stream.write_all(&asked).await?;
                stream.flush().await
            });
            match sent.await {
                Err(_) => return "still there".to_owned(),
                Ok(Err(_)) => return "closed".to_owned(),
                Ok(Ok(())) if protocol == Protocol::Http1 => {}
                Ok(Ok(())) => return waits(&mut stream, until).await,
            }
        }
    }

    /// Asks one by one for pods of namespaces that are not there, each of another, and says what the last was answered.
    pub async fn asks_for_strangers(self, number: usize, until: Instant) -> String {
        let Ok(stream) = self.tls(Protocol::Http1).await else { return "no handshake".to_owned() };
        let Ok(mut caller) = Caller::over(stream, self.address).await else { return "closed".to_owned() };
        let mut last = "no answer".to_owned();
        for round in 0_u32.. {
            let review = review_of(&format!("stranger-{number}-{round}"), None);
            match timeout_at(until, caller.post("/mutate?timeout=3s", review)).await {
                Ok(Ok((status, _))) => last = status.to_string(),
                Ok(Err(_)) => return "closed".to_owned(),
                Err(_) => break,
            }
        }
        last
    }

    /// Sends all of a large body before it reads the answer; or all but its last byte, and then nothing.
    pub async fn large_body(self, protocol: Protocol, body: Bytes, whole: bool, until: Instant) -> String {
        let Ok(mut stream) = self.tls(protocol).await else { return "no handshake".to_owned() };
        if protocol == Protocol::Http2 {
            return timeout_at(until, http2_post(stream, body)).await.unwrap_or_else(|_| "no answer".to_owned());
        }
        let head = http1_head(body.len());
        let sent = if whole { &body[..] } else { &body[..body.len() - 1] };
        let answered = async {
            stream.write_all(&head).await?;
            stream.write_all(sent).await?;
            stream.flush().await?;
            status(&mut stream).await
        };
        match timeout_at(until, answered).await {
            Ok(Ok(status)) => status,
            Ok(Err(_)) => "broken".to_owned(),
            Err(_) => "no answer".to_owned(),
        }
    }

    /// Says something in HTTP/2 after its opening, again and again, until it is told to go, and tells how.
    pub async fn floods(self, again: Bytes, until: Instant) -> String {
        let Ok(stream) = self.tls(Protocol::Http2).await else { return "no handshake".to_owned() };
        let (mut read, mut write) = tokio::io::split(stream);
        let flood = async {
            write.write_all(&frames::opening(&[])).await?;
            loop {
                write.write_all(&again).await?;
                write.flush().await?;
            }
        };
        let told = async {
            loop {
                let mut head = [0; 9];
                read.read_exact(&mut head).await?;
                let mut payload =
                    vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
                read.read_exact(&mut payload).await?;
                if head[3] == frames::GOAWAY {
                    return Ok::<_, io::Error>(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
                }
            }
        };
        let flood: io::Result<()> = tokio::select! {
            told = told => return told.map_or("closed".to_owned(), |code| format!("GOAWAY {code}")),
            broken = flood => broken,
            () = sleep_until(until) => return "still there".to_owned(),
        };
        flood.map_or("closed".to_owned(), |()| "still there".to_owned())
    }
}

/// What a caller knows who trusts these CAs and speaks these versions.
pub fn trusting(ca: &[u8], versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// One connection that says something once, and what it is answered until it is closed, for so long at most.
pub async fn answered(mut stream: TlsStream<TcpStream>, said: &[u8], time: Duration) -> (String, bool) {
    _ = stream.write_all(said).await;
    _ = stream.flush().await;
    let mut bytes = Vec::new();
    let closed = timeout(time, stream.read_to_end(&mut bytes)).await.is_ok();
    (String::from_utf8_lossy(&bytes).into_owned(), closed)
}

async fn waits(stream: &mut (impl AsyncReadExt + Unpin), until: Instant) -> String {
    let mut bytes = [0; 4096];
    loop {
        match timeout_at(until, stream.read(&mut bytes)).await {
            Err(_) => return "still there".to_owned(),
            Ok(Ok(1..)) => {}
            Ok(_) => return "closed".to_owned(),
        }
    }
}

async fn status(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<String> {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await?;
    Ok(String::from_utf8_lossy(&line[9..]).into_owned())
}

fn http1_head(length: usize) -> Vec<u8> {
    let head = "POST /mutate?timeout=3s HTTP/1.1\r\nHost: rolegate\r\nContent-Type: application/json\r\n";
    format!("{head}Content-Length: {length}\r\n\r\n").into_bytes()
}

/// A review as HTTP/1 sends it.
pub fn http1_review(body: &[u8]) -> Vec<u8> {
    [&http1_head(body.len()), body].concat()
}

fn http2_request(stream: u32, body: &[u8]) -> Vec<u8> {
    let mut request = frames::frame(frames::HEADERS, frames::END_HEADERS, stream, &frames::post());
    let mut chunks = body.chunks(16 << 10).peekable();
    while let Some(chunk) = chunks.next() {
        let flags = if chunks.peek().is_none() { frames::END_STREAM } else { 0 };
        request.extend(frames::frame(frames::DATA, flags, stream, chunk));
    }
    request
}

async fn http2_post(stream: TlsStream<TcpStream>, body: Bytes) -> String {
    let answered = async {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let request = Request::post("https://rolegate/mutate?timeout=3s").header("content-type", "application/json");
        let answer = sender.send_request(request.body(Full::new(body)).unwrap()).await;
        connection.abort();
        answer
    };
    answered.await.map_or("broken".to_owned(), |answer: Response<_>| answer.status().as_u16().to_string())
}
