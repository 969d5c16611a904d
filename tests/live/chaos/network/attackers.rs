//! Who means harm. Each function is one attack by many at once, and says what they got.

use std::io;

use bytes::Bytes;
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

use super::target::{Target, review, review_of};
use crate::common::http::Caller;
use crate::common::prelude::*;

/// Who attacks one target.
#[derive(Clone)]
pub struct Attackers {
    address: SocketAddr,
    config: Arc<ClientConfig>,
    /// Handshakes at a time: those of this process must not be what is measured.
    handshakes: Arc<Semaphore>,
}

impl Attackers {
    /// They know what every caller knows.
    pub fn of(target: &Target) -> Self {
        let mut config = trusting(&target.ca, &[&rustls::version::TLS13]);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { address: target.address(), config: Arc::new(config), handshakes: Arc::new(Semaphore::new(32)) }
    }

    /// All shake hands at once, as API servers do that each have processors of their own.
    pub fn all_at_once(self) -> Self {
        Self { handshakes: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)), ..self }
    }

    /// Shakes hands.
    pub async fn tls(&self) -> io::Result<TlsStream<TcpStream>> {
        let _turn = self.handshakes.acquire().await;
        let stream = timeout(Duration::from_secs(5), TcpStream::connect(self.address)).await??;
        let name = ServerName::from(self.address.ip());
        timeout(Duration::from_secs(5), TlsConnector::from(self.config.clone()).connect(name, stream)).await?
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
    pub async fn idle_tls(self, asks: bool, until: Instant) -> String {
        let Ok(mut stream) = self.tls().await else { return "no handshake".to_owned() };
        let said = if asks { sent(&review()) } else { Vec::new() };
        if stream.write_all(&said).await.is_err() || stream.flush().await.is_err() {
            return "closed".to_owned();
        }
        waits(&mut stream, until).await
    }

    /// Has one review answered, as an API server that waits no longer than until then, and keeps its connection meanwhile.
    pub async fn asks(self, body: Bytes, until: Instant) -> String {
        let ask = async {
            let mut stream = self.tls().await?;
            stream.write_all(&sent(&body)).await?;
            stream.flush().await?;
            io::Result::Ok((status(&mut stream).await?, stream))
        };
        match timeout_at(until, ask).await {
            Ok(Ok((status, _stream))) => status,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        }
    }

    /// Begins a request with these bytes, and sends more of it piece by piece, twice a second.
    pub async fn drips(self, begun: Vec<u8>, piece: &'static [u8], until: Instant) -> String {
        let Ok(mut stream) = self.tls().await else { return "no handshake".to_owned() };
        if stream.write_all(&begun).await.is_err() {
            return "closed".to_owned();
        }
        while Instant::now() < until {
            if stream.write_all(piece).await.is_err() || stream.flush().await.is_err() {
                return "closed".to_owned();
            }
            if let Ok(answer) = timeout(Duration::from_millis(500), status(&mut stream)).await {
                return answer.unwrap_or_else(|_| "closed".to_owned());
            }
        }
        "still there".to_owned()
    }

    /// Asks for a review and hangs up before it is answered, again and again on new connections.
    pub async fn asks_and_leaves(self, until: Instant) -> String {
        let review = sent(&review());
        while Instant::now() < until {
            let Ok(mut stream) = self.tls().await else { return "no handshake".to_owned() };
            if stream.write_all(&review).await.is_err() || stream.flush().await.is_err() {
                return "closed".to_owned();
            }
            // The answer, unread, makes a reset of this.
            drop(stream);
        }
        "let in to the end".to_owned()
    }

    /// Asks again and again, and never reads what is answered.
    pub async fn never_reads(self, body: Bytes, until: Instant) -> String {
        let Ok(mut stream) = self.tls().await else { return "no handshake".to_owned() };
        let asked = sent(&body).repeat(8);
        loop {
            let sent = timeout_at(until, async {
                stream.write_all(&asked).await?;
                stream.flush().await
            });
            match sent.await {
                Err(_) => return "still there".to_owned(),
                Ok(Err(_)) => return "closed".to_owned(),
                Ok(Ok(())) => {}
            }
        }
    }

    /// Asks one by one for pods of namespaces that are not there, each of another, and says what the last was answered.
    pub async fn asks_for_strangers(self, number: usize, until: Instant) -> String {
        let Ok(stream) = self.tls().await else { return "no handshake".to_owned() };
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
    pub async fn large_body(self, body: Bytes, whole: bool, until: Instant) -> String {
        let Ok(mut stream) = self.tls().await else { return "no handshake".to_owned() };
        let body_sent = if whole { &body[..] } else { &body[..body.len() - 1] };
        let answered = async {
            stream.write_all(&head(body.len())).await?;
            stream.write_all(body_sent).await?;
            stream.flush().await?;
            status(&mut stream).await
        };
        match timeout_at(until, answered).await {
            Ok(Ok(status)) => status,
            Ok(Err(_)) => "broken".to_owned(),
            Err(_) => "no answer".to_owned(),
        }
    }

    /// Says something after the beginning of a request, again and again, until it is told to go, and tells how.
    pub async fn floods(self, begun: String, again: &'static str, until: Instant) -> String {
        let Ok(stream) = self.tls().await else { return "no handshake".to_owned() };
        let (mut read, mut write) = tokio::io::split(stream);
        let flood = async {
            write.write_all(begun.as_bytes()).await?;
            let again = again.repeat(8 << 10);
            loop {
                write.write_all(again.as_bytes()).await?;
                write.flush().await?;
            }
        };
        let flood: io::Result<()> = tokio::select! {
            biased;
            told = status(&mut read) => return told.unwrap_or_else(|_| "closed".to_owned()),
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

/// The first line and the headers of a review of so many bytes.
pub fn head(length: usize) -> Vec<u8> {
    let head = "POST /mutate?timeout=3s HTTP/1.1\r\nHost: rolegate\r\nContent-Type: application/json\r\n";
    format!("{head}Content-Length: {length}\r\n\r\n").into_bytes()
}

/// A review as it is sent.
pub fn sent(body: &[u8]) -> Vec<u8> {
    [&head(body.len()), body].concat()
}
