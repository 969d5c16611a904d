//! Attacks by thousands of connections, large bodies and requests without end: minutes, for `make chaos`.

use std::time::Duration;

use bytes::Bytes;
use rolegate::server::http::process::open_files;

use super::attackers::{Attackers, head};
use super::target::{Target, review};

/// How long an attack goes on.
const ATTACK: Duration = Duration::from_secs(12);

/// The headers of a review of which nobody says how long it is.
const CHUNKED: &str =
    "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Requests without end: a name, how one begins, and what comes then for as long as somebody takes it.
pub fn endless() -> [(&'static str, String, &'static str); 6] {
    [
        ("a first line without end", "GET /".to_owned(), "a"),
        ("a header without end", "GET /livez HTTP/1.1\r\nX-A: ".to_owned(), "a"),
        ("headers without end", "GET /livez HTTP/1.1\r\n".to_owned(), "X-A: a\r\n"),
        ("chunks without end", CHUNKED.to_owned(), "1\r\n \r\n"),
        ("a chunk's extension without end", format!("{CHUNKED}1;"), "a"),
        ("trailers without end", format!("{CHUNKED}0\r\n"), "X-A: a\r\n"),
    ]
}

/// A pod's review of so many bytes.
pub fn large_review(bytes: usize) -> Bytes {
    let mut review: serde_json::Value = serde_json::from_slice(&review()).unwrap();
    let rest = bytes - review.to_string().len() - 16;
    review["request"]["object"]["metadata"]["annotations"] = serde_json::json!({ "x": "y".repeat(rest) });
    review.to_string().into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn ten_thousand_idle_tcp_connections() {
    let files = open_files();
    assert!(files > 11_000, "this takes more than 11,000 open files (ulimit -Hn), and {files} are allowed");
    let target = Target::start("net-idle-tcp").await;
    let attack = Attackers::of(&target).many(10_000, ATTACK, |one, _, until| one.idle_tcp(until));
    target.endure(attack).await.record("10,000 idle TCP connections");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn four_thousand_idle_tls_connections() {
    let target = Target::start("net-idle-tls").await;
    for (what, asks) in
        [("4,000 idle TLS connections", false), ("4,000 TLS connections, idle after one review each", true)]
    {
        let attack = Attackers::of(&target).many(4_000, 2 * ATTACK, move |one, _, until| one.idle_tls(asks, until));
        target.endure(attack).await.record(what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn headers_and_bodies_that_drip() {
    let target = Target::start("net-drips").await;
    for (what, begun, piece) in [
        ("1,000 connections with headers that drip", b"POST /mutate HTTP/1.1\r\nHost: x\r\nX-A: ".to_vec(), &b"a"[..]),
        ("1,000 connections with bodies that drip", head(6 << 20), b" "),
        ("1,000 connections with bodies that drip in chunks", CHUNKED.into(), b"1\r\n \r\n"),
    ] {
        let attack = move |one: Attackers, _, until| one.drips(begun.clone(), piece, until);
        let attack = Attackers::of(&target).many(1_000, ATTACK, attack);
        target.endure(attack).await.record(what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn who_asks_and_leaves() {
    let target = Target::start("net-leaves").await;
    let attack = Attackers::of(&target).many(50, ATTACK, |one, _, until| one.asks_and_leaves(until));
    target.endure(attack).await.record("50 that ask and hang up, again and again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn who_never_reads() {
    let target = Target::start("net-never-reads").await;
    let body = Bytes::from(review());
    let attack = move |one: Attackers, _, until| one.never_reads(body.clone(), until);
    let attack = Attackers::of(&target).many(200, 2 * ATTACK, attack);
    target.endure(attack).await.record("200 that ask and never read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn reviews_that_each_need_a_live_read() {
    let target = Target::start("net-strangers").await;
    let attack = Attackers::of(&target).many(200, ATTACK, Attackers::asks_for_strangers);
    target.endure(attack).await.record("200 that ask for namespaces that are not there, each for another");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn large_bodies() {
    let target = Target::start("net-bodies").await;
    let body = large_review(6_900 << 10);
    for (what, count, whole) in [
        ("200 reviews of 6.9 MiB at a time", 200, true),
        ("200 bodies of 6.9 MiB at a time, of which the last byte lacks", 200, false),
        ("60 reviews of 6.9 MiB at a time", 60, true),
    ] {
        let body = body.clone();
        let attack = move |one: Attackers, _, until| one.large_body(body.clone(), whole, until);
        let attack = Attackers::of(&target).many(count, ATTACK, attack);
        target.endure(attack).await.record(what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn requests_without_end() {
    let target = Target::start("net-without-end").await;
    for (what, begun, again) in endless() {
        let attack = move |one: Attackers, _, until| one.floods(begun.clone(), again, until);
        let attack = Attackers::of(&target).many(50, ATTACK, attack);
        target.endure(attack).await.record(&format!("50 × {what}"));
    }
}
