//! rolegate beside the real controllers and schedulers that its pods meet, each built from its own module: what was tried is
//! written down in `README.md`.
//!
//! All of it is ignored by `cargo test`, which does not build them: `make neighbours` does, and runs it; with `UPDATE_DOCS=1` it
//! writes the tables.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/mod.rs"]
mod common;
mod coscheduling;
mod gangs;
mod in_rig;
mod jobset;
mod kai;
mod karpenter;
mod kinds;
mod kueue;
mod lws;
mod native;
mod program;
mod volcano;
