//! Lists all pods in each format of the API server, without decoding: measures the time, the CPU time of the API
//! server, and the bytes sent.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;

use crate::process;
use crate::section::Section;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM_OF_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;stream=watch";
const STREAMED: &str =
    "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=290";
/// Marks the end of a streamed list.
const END: &[u8] = b"k8s.io/initial-events-end";

/// Length of the part that contains the continue token, in bytes.
const HEAD: usize = 4096;

/// Description, accepted media type, query, and whether gzip is accepted.
const WAYS: [(&str, &str, &str, bool); 10] = [
    ("streamed, protobuf", STREAM_OF_PROTOBUF, STREAMED, false),
    ("streamed, JSON", JSON, STREAMED, false),
    ("one list of any version, protobuf", PROTOBUF, "resourceVersion=0", false),
    ("one list of any version, protobuf, gzip", PROTOBUF, "resourceVersion=0", true),
    ("one list of any version, JSON", JSON, "resourceVersion=0", false),
    ("one list of any version, JSON, gzip", JSON, "resourceVersion=0", true),
    ("one list of the newest version, protobuf", PROTOBUF, "", false),
    ("pages of 5,000, protobuf", PROTOBUF, "limit=5000", false),
    ("pages of 5,000, JSON", JSON, "limit=5000", false),
    ("pages of 500, JSON", JSON, "limit=500", false),
];

/// Lists all pods twice in each way, and writes the cost of the faster run for the API server with this pid.
pub async fn compare(out: &mut Section, client: &Client, server: u32) {
    let mut runs = Vec::new();
    for (way, accept, query, gzip) in WAYS.into_iter().chain(WAYS) {
        let (started, before) = (Instant::now(), process::cpu(server));
        let sent = all(client, accept, query, gzip).await;
        let took = started.elapsed();
        runs.push((took, process::cpu(server).saturating_sub(before), sent));
        eprintln!("{way}: {took:.1?}");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let (first, second) = runs.split_at(WAYS.len());
    writeln!(out, "\n| all pods | takes | CPU of the API server | MiB sent |\n|---|---|---|---|").unwrap();
    for ((way, ..), (one, other)) in WAYS.iter().zip(first.iter().zip(second)) {
        let (took, cpu, sent) = one.min(other);
        writeln!(out, "| {way} | {took:.1?} | {cpu:.1?} | {} |", sent >> 20).unwrap();
    }
}

/// Returns the number of received bytes.
async fn all(client: &Client, accept: &str, query: &str, gzip: bool) -> usize {
    let (mut sent, mut next) = (0, String::new());
    loop {
        let request = Request::get(format!("/api/v1/pods?{query}{next}")).header("accept", accept);
        let request = if gzip { request.header("accept-encoding", "gzip") } else { request };
        let answer = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        assert!(answer.status().is_success(), "{query}: {}", answer.status());
        let (mut body, mut head, mut tail) = (answer.into_body(), Vec::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.unwrap().into_data() else { continue };
            sent += data.len();
            head.extend(data.iter().take(HEAD - head.len()));
            tail.extend_from_slice(&data);
            if query == STREAMED && tail.windows(END.len()).any(|some| some == END) {
                return sent;
            }
            tail.drain(..tail.len().saturating_sub(END.len()));
        }
        let Some(token) = (!query.is_empty()).then(|| continued(&head)).flatten() else { return sent };
        next = format!("&continue={token}");
    }
}

/// Returns the continue token in the head of a protobuf list: base64 of an object that begins with `"v":`.
fn continued(head: &[u8]) -> Option<String> {
    let is_of_it = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=');
    let begin = head.windows(4).position(|some| some == b"eyJ2")?;
    let token = head[begin..].iter().copied().take_while(|byte| is_of_it(byte)).collect();
    String::from_utf8(token).ok()
}
