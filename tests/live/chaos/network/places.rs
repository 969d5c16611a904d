//! Who is served while others take all that there is: what takes seconds of the attacks in `floods.rs`.

use std::time::Duration;

use bytes::Bytes;

use super::attackers::Attackers;
use super::floods::{endless, large_review};
use super::target::{Target, review_of};
use crate::common::PATIENT;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_connections_make_room_but_never_those_of_good_callers() {
    let target = Target::start("net-places").await;
    let attack = Attackers::of(&target).many(1_200, Duration::from_secs(4), |one, _, until| one.idle_tcp(until));
    let seen = target.endure(attack).await;
    seen.hold_memory();
    assert!(seen.newcomers.count() > 0, "{}", seen.newcomers);
    assert!(target.rolegate.metric("rolegate_server_connections_displaced_total").await > 0, "{}", seen.attacker);
}

/// Three API servers with 400 requests under way each, of which each asks two webhooks: a connection for each review, all of them
/// new, as a client of Go keeps 25 of them when a burst is over. A handshake of a build that is not optimised takes ten times as
/// long.
const BURST: usize = if cfg!(debug_assertions) { 300 } else { 2_400 };

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_bursts_of_three_api_servers_are_answered_whole() {
    let target = Target::start("net-burst").await;
    let review = Bytes::from(review_of("net-burst", None));
    for _ in 0..2 {
        let review = review.clone();
        let burst = Attackers::of(&target).all_at_once();
        let got = burst.many(BURST, PATIENT, move |one, _, until| one.asks(review.clone(), until)).await;
        assert_eq!(got, format!("{BURST} × 200"));
    }
    assert_eq!(target.rolegate.metric("rolegate_server_connections_displaced_total").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_sends_too_much_at_a_time_is_told_so() {
    let target = Target::start("net-told").await;
    let body = large_review(6_900 << 10);
    let attack = move |one: Attackers, _, until| one.large_body(body.clone(), true, until);
    let got = Attackers::of(&target).many(8, PATIENT, attack).await;
    // 408: it did not arrive within the time that its caller gives.
    let told = |what: &str| ["200", "408", "503"].iter().any(|status| what.ends_with(status));
    assert!(got.split(", ").all(told) && got.contains("503"), "{got}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn requests_without_end_are_ended() {
    let target = Target::start("net-endless").await;
    for (what, begun, again) in endless() {
        let attack = move |one: Attackers, _, until| one.floods(begun.clone(), again, until);
        let got = Attackers::of(&target).many(8, PATIENT, attack).await;
        let ended =
            |what: &str| ["400", "408", "413", "414", "415", "431", "closed"].iter().any(|end| what.ends_with(end));
        assert!(got.split(", ").all(ended), "{what}: {got}");
    }
    // And it serves as before.
    target.caller().await;
}
