//! Every rule as its users meet it: `kubectl` and controllers against a real API server that asks a running rolegate.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/mod.rs"]
mod common;

mod coordinations;
mod definitions;
mod desk;
mod groups;
mod grove;
mod kai;
mod policies;
mod races;
mod references;
mod rights;
mod skew;
mod topologies;
mod turn;
