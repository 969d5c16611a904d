//! The clock of a replica jumps. The time of day is shifted by a library that is loaded first; what measures time does not jump.

use std::process::Command;

use jiff::Timestamp;

use crate::chaos::faults::story::{Story, tell};
use crate::common::prelude::*;

const HOUR: i64 = 3600;

/// Builds the library.
fn library() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/chaos/faults/clock.c");
    let library = scratch_dir().join("clock.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl").status();
    assert!(built.unwrap().success(), "clock.c cannot be built");
    library
}

/// The clock of one replica.
struct Clock(PathBuf);

impl Clock {
    fn new(name: &str) -> Self {
        let clock = Self(scratch_dir().join(format!("{name}.clock")));
        clock.jump(0);
        clock
    }

    fn jump(&self, seconds: i64) {
        // At once: a reader never finds half of it.
        let next = self.0.with_extension("next");
        std::fs::write(&next, seconds.to_string()).unwrap();
        std::fs::rename(next, &self.0).unwrap();
    }

    fn of(&self, launch: Launch) -> Launch {
        launch.env("LD_PRELOAD", library()).env("CLOCK_OFFSET", &self.0)
    }
}

/// How far the time in the Lease is from ours, in seconds: by the clock of who leads.
async fn lease_is_ahead(story: &Story) -> Result<i64, String> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{}", story.stage.namespace);
    let lease = story.stage.send("GET", &path, &Value::Null).await.body;
    let renewed: Timestamp = lease["spec"]["renewTime"].as_str().and_then(|time| time.parse().ok()).ok_or("no time")?;
    Ok(renewed.as_second() - Timestamp::now().as_second())
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn the_clock_of_a_replica_jumps_by_an_hour() {
    let [leading, following] = ["leading", "following"].map(Clock::new);
    let stage = Stage::new("faults-clock").await;
    let story = Story::begin_with(stage, |launch| leading.of(launch), |launch| following.of(launch)).await;
    for (clock, who, leads) in [(&leading, "leader", true), (&following, "standby", false)] {
        for (seconds, direction) in [(HOUR, "an hour ahead"), (-HOUR, "two hours back")] {
            story.rest().await;
            clock.jump(seconds);
            story.go_on();
            let time = story.moves_again().await;
            if leads {
                eventually(PATIENT, "a Lease by the clock that jumped", async || {
                    let ahead = lease_is_ahead(&story).await?;
                    if (ahead - seconds).abs() < 60 { Ok(()) } else { Err(format!("{ahead} s ahead")) }
                })
                .await;
            }
            assert_eq!(story.leader().metric("rolegate_leader").await, 1, "the leader has stepped back");
            assert_eq!(story.follower().metric("rolegate_leader").await, 0, "two lead");
            let how = "nothing depends on the time of day";
            tell(&format!("clock of the {who} jumps {direction}"), time, how);
        }
        clock.jump(0);
    }
    story.end().await;
    for replica in [story.leader(), story.follower()] {
        replica.until_ready().await;
    }
}
