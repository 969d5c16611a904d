//! The loop in a simulated cluster: the real index and reconciler run through random histories of lagging watches,
//! failing writes and changing leaders, and must keep the promises of the loop. A history that breaks a promise is
//! shrunk.
//!
//! `ROLEGATE_HISTORIES=100000` sets the number of histories (`make long`), `ROLEGATE_HISTORY_SEED=7` runs only that
//! seed; `ROLEGATE_SABOTAGE=LosesMarks` runs only that sabotage.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops where it fails")]

mod broken;
#[path = "../common/build.rs"]
mod build;
mod canaries;
mod elastic;
mod granted;
mod growth;
mod history;
mod invariants;
mod leaders;
mod lockstep;
mod machines;
mod nature;
mod places;
mod quiet;
mod racks;
mod random;
mod readiness;
mod recoveries;
mod replica;
mod requests;
mod rollbacks;
mod rollouts;
mod room;
mod sabotage;
mod seen;
mod segments;
mod server;
mod sets;
mod settle;
mod shrink;
mod spec;
mod steps;
mod watches;
mod world;
mod writes;

/// The names that most files use.
mod prelude {
    pub use std::collections::{BTreeMap, BTreeSet};
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub use rolegate::api::status::{GroupStatus, RolloutState};
    pub use rolegate::api::{Meta, Pod};
    pub use rolegate::cluster::index::SeenWorkload;
    pub use rolegate::model::{GangLevel, Group, Progression, names};
    pub use rolegate::plan::{Pin, PodFacts, PodRef, Snapshot};
    pub use serde_json::{Value, json};

    pub(crate) use crate::broken::{Broken, hold};
    pub use crate::nature::FOREIGN;
    pub use crate::random::Random;
    pub use crate::replica::Replica;
    pub use crate::rollouts::{ROLLED, Rolling, SetStep};
    pub use crate::sabotage::Sabotage;
    pub use crate::server::{Answered, Event, Server, refusal};
    pub use crate::spec::{Coordination, GROUP, Maker, NAMESPACE, Placed, ROLES, Setup, Stored, Wish, level};
    pub use crate::steps::Steps;
    pub use crate::world::World;
}

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use history::History;
use sabotage::Sabotage;
use shrink::{run, shrunk};

const HISTORIES: u64 = 2_000;
/// Number of histories without faults, each of which takes longer.
const QUIET: u64 = 200;
const THREADS: usize = 2;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text:?} is no number")))
}

/// Returns the first seed whose history breaks a promise.
fn first_broken(seeds: std::ops::Range<u64>, sabotage: Option<Sabotage>) -> Option<u64> {
    first_that(seeds, |seed| run(&History::random(seed), sabotage).is_err())
}

fn first_that(seeds: std::ops::Range<u64>, breaks: impl Fn(u64) -> bool + Sync) -> Option<u64> {
    let (next, first) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end.min(first.load(Ordering::Relaxed)) {
                        return;
                    }
                    if breaks(seed) {
                        first.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Some(first.into_inner()).filter(|seed| *seed < u64::MAX)
}

/// Describes the shrunk history, and how to run it again.
fn tell(seed: u64) -> String {
    let (history, broken) = shrunk(History::random(seed), |history| run(history, None));
    let again = format!("ROLEGATE_HISTORY_SEED={seed} cargo test --test histories promises");
    format!("history {seed}: {}\n{history}  again: {again}", broken.0)
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    match number("ROLEGATE_HISTORY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROLEGATE_HISTORIES").unwrap_or(usual),
    }
}

#[test]
fn every_history_keeps_the_promises() {
    if let Some(seed) = first_broken(seeds(HISTORIES), None) {
        panic!("{}", tell(seed));
    }
}

/// Without faults, no Event of type Warning is written.
#[test]
fn a_history_without_faults_has_no_warning() {
    if let Some(seed) = first_that(seeds(QUIET), |seed| quiet::run(&quiet::history(seed)).is_err()) {
        let (history, broken) = shrunk(quiet::history(seed), quiet::run);
        panic!("history {seed}: {}\n{history}", broken.0);
    }
}

/// Tests the tests: each loop with one sabotage breaks a promise.
#[test]
fn a_loop_that_does_one_thing_wrong_is_found() {
    let only = std::env::var("ROLEGATE_SABOTAGE").ok();
    let is_asked = |(sabotage, _): &&(Sabotage, u64)| only.as_ref().is_none_or(|only| *only == format!("{sabotage:?}"));
    for (sabotage, last) in Sabotage::ALL.iter().copied().filter(|one| is_asked(&one)) {
        let found =
            [last..last + 1, 0..3 * HISTORIES].into_iter().find_map(|seeds| first_broken(seeds, Some(sabotage)));
        let Some(seed) = found else { panic!("{sabotage:?} is not found") };
        let Err(broken) = run(&History::random(seed), Some(sabotage)) else { panic!("{sabotage:?}: found only once") };
        println!("{sabotage:?}: history {seed}: {}", broken.0);
    }
}

/// Of two groups in the same racks.
#[test]
fn nothing_is_granted_twice() {
    let broken = seeds(HISTORIES / 4).find_map(|seed| Some((seed, granted::run(seed, None).err()?)));
    assert!(broken.is_none(), "{broken:?}");
    let loose: u32 = (0..QUIET).map(|seed| granted::run(seed, None).unwrap()).sum();
    assert!(loose > 0, "no pod goes without a node");
    for fault in granted::Fault::ALL {
        assert!((0..HISTORIES).any(|seed| granted::run(seed, Some(fault)).is_err()), "{fault:?} is not found");
    }
}
