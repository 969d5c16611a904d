//! Attacks by thousands of connections, large bodies and hostile frames: minutes, for `make chaos`.

use std::time::Duration;

use bytes::Bytes;
use rolegate::server::http::process::open_files;

use super::attackers::{Attackers, Protocol};
use super::frames;
use super::target::{Target, review};

/// How long an attack goes on.
const ATTACK: Duration = Duration::from_secs(12);

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
        let attack = Attackers::of(&target).many(4_000, 2 * ATTACK, move |one, number, until| {
            let protocol = if number % 2 == 0 { Protocol::Http1 } else { Protocol::Http2 };
            one.idle_tls(protocol, asks, until)
        });
        target.endure(attack).await.record(what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn headers_that_drip() {
    let target = Target::start("net-slow-headers").await;
    let attack = Attackers::of(&target).many(1_000, ATTACK, |one, _, until| one.slow_headers(until));
    target.endure(attack).await.record("1,000 connections with headers that drip");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn who_never_reads() {
    let target = Target::start("net-never-reads").await;
    for (what, protocol) in [
        ("200 that ask and never read, HTTP/1", Protocol::Http1),
        ("200 that ask 128 times and never read, HTTP/2", Protocol::Http2),
    ] {
        let body = Bytes::from(review());
        let attack = move |one: Attackers, _, until| one.never_reads(protocol, body.clone(), until);
        let attack = Attackers::of(&target).many(200, 2 * ATTACK, attack);
        target.endure(attack).await.record(what);
    }
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
    for (what, count, protocol, whole) in [
        ("200 reviews of 6.9 MiB at a time, HTTP/1", 200, Protocol::Http1, true),
        ("200 bodies of 6.9 MiB at a time, of which the last byte lacks", 200, Protocol::Http1, false),
        ("60 reviews of 6.9 MiB at a time, HTTP/1", 60, Protocol::Http1, true),
        ("60 reviews of 6.9 MiB at a time, HTTP/2", 60, Protocol::Http2, true),
    ] {
        let body = body.clone();
        let attack = move |one: Attackers, _, until| one.large_body(protocol, body.clone(), whole, until);
        let attack = Attackers::of(&target).many(count, ATTACK, attack);
        target.endure(attack).await.record(what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "minutes: make chaos"]
async fn hostile_frames() {
    let target = Target::start("net-frames").await;
    let reset = (0..1_000_u32).flat_map(|number| {
        let stream = 2 * number + 1;
        let headers = frames::frame(frames::HEADERS, frames::END_HEADERS, stream, &frames::post());
        [headers, frames::frame(frames::RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
    });
    let more = frames::frame(frames::CONTINUATION, 0, 1, &[0; 16 << 10]);
    let endless = [frames::frame(frames::HEADERS, 0, 1, &frames::post()), more.repeat(64)].concat();
    let bomb = (0..100_u32).flat_map(|number| {
        let stream = 2 * number + 1;
        frames::frame(frames::HEADERS, frames::END_HEADERS | frames::END_STREAM, stream, &frames::bomb())
    });
    for (what, said) in [
        ("50 × rapid reset, HTTP/2", reset.collect::<Bytes>()),
        ("50 × CONTINUATION without end, HTTP/2", endless.into()),
        ("50 × HPACK bombs of 40 MB, HTTP/2", bomb.collect()),
    ] {
        let attack = move |one: Attackers, _, until| one.floods(said.clone(), until);
        let attack = Attackers::of(&target).many(50, ATTACK, attack);
        target.endure(attack).await.record(what);
    }
}
