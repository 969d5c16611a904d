//! Requests of the loop that are refused, lost or answered by halves.

use crate::chaos::faults::story::{Story, tell};
use crate::common::prelude::*;
use crate::common::request_proxy::{Fate, Kind, RequestProxy};

/// How long each fault lasts.
const STORM: Duration = Duration::from_secs(5);

/// A run of which both replicas ask the API server through one proxy.
async fn story(namespace: &str) -> (RequestProxy, Story) {
    let stage = Stage::new(namespace).await;
    let proxy = RequestProxy::before(&stage.plane).await;
    let through = |launch: Launch| launch.through_requests(&proxy);
    let story = Story::begin_with(stage, through, through).await;
    (proxy, story)
}

/// Requests of a kind meet a fate for some time; returns how many did, and how long it took until the run moved again.
async fn storm(story: &Story, proxy: &RequestProxy, kind: Kind, fate: Fate) -> (usize, Duration) {
    proxy.meet(kind, fate);
    tokio::time::sleep(STORM).await;
    let met = proxy.lost();
    assert!(met > 0, "no request was {fate:?}");
    proxy.answer();
    (met, story.moves_again().await)
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn every_write_is_refused_for_some_time() {
    let (proxy, story) = story("faults-refused").await;
    for code in [429, 500, 409, 422] {
        let writes = Kind { method: "PATCH", path: "/namespaces/faults-refused/" };
        let (met, time) = storm(&story, &proxy, writes, Fate::Refused(code)).await;
        // Two groups and the pods of a segment are tried again, ever more slowly.
        assert!(met < 2000, "{met} requests in {STORM:?}: they are not spaced");
        let how = format!("{met} writes were refused; tried again with growing pauses");
        tell(&format!("every write answered {code} for {} s", STORM.as_secs()), time, &how);
    }
    story.end().await;
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn writes_are_accepted_and_never_answered() {
    let (proxy, story) = story("faults-unanswered").await;
    for (path, what) in [("/status", "status commits"), ("/pods/", "releases of pods")] {
        let (met, time) = storm(&story, &proxy, Kind { method: "PATCH", path }, Fate::Unanswered).await;
        let fault = format!("{what} accepted and never answered for {} s", STORM.as_secs());
        let how = format!("{met} got no answer; the watch tells what was stored, and each is given up after 10 s");
        tell(&fault, time, &how);
    }
    story.end().await;
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn watches_expire_and_lists_break_off() {
    let (proxy, story) = story("faults-watches").await;
    let incomplete = "incomplete lists are not used; retried at growing intervals";
    for (fate, fault, how) in [
        (Fate::Expired, "every watch ended, and answered 410 Gone for 5 s", "lists are retried at growing intervals"),
        (Fate::Cut(50_000), "every watch ended, and every list broken off after 50 kB for 5 s", incomplete),
    ] {
        let watches = Kind { method: "GET", path: "watch=true" };
        proxy.meet(watches, fate);
        proxy.cut();
        // Watches that last a moment let the run end before the fault does.
        story.rest().await;
        tokio::time::sleep(STORM).await;
        let met = proxy.lost();
        assert!(met > 0, "no watch was {fate:?}");
        // Whatever it believes: what it knows is old, and nothing goes by it.
        let before = story.released_now().await;
        let over = Instant::now();
        proxy.answer();
        story.go_on();
        let time = story.moves_beyond(before, over).await;
        tell(fault, time, &format!("{met} requests met this; {how}"));
    }
    story.end().await;
}
