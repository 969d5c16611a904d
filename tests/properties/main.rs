//! What holds of every object, pod, group, decision and rollout, tried with random ones.
//!
//! The same ones each time, so that what fails fails again. With `PROPTEST_CASES=20000` that many new ones are tried for
//! each property (`make long`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

mod any_object;
mod authors;
#[path = "../common/build.rs"]
mod build;
mod carriers;
mod cluster;
mod devices;
mod discovery;
mod fuzzed;
mod gangs;
mod holds;
mod placement;
mod placing;
mod pods;
mod rollout;

/// The names that most files use.
mod prelude {
    pub use std::collections::{BTreeMap, BTreeSet};
    pub use std::time::Duration;

    pub use proptest::prelude::*;
    pub use proptest::test_runner::TestCaseError;
    pub use rolegate::api::rbg::ROLE_BASED_GROUP;
    pub use rolegate::cluster::index::{Change, Index};
    pub use rolegate::model::rolling::{FROZEN, Unavailable};
    pub use rolegate::model::{GroupKey, ProgressState, names};
    pub use rolegate::plan::{Action, LoopOptions, Reconciler};
    pub use serde_json::{Value, json};
}

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// How a property is tried: with so many cases, always the same, unless the environment asks for others.
fn tried(cases: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let (cases, rng_seed) = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => (asked.cases, asked.rng_seed),
        None => (cases, RngSeed::Fixed(0)),
    };
    ProptestConfig { cases, rng_seed, max_global_rejects: cases, failure_persistence: None, ..asked }
}
