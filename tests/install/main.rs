//! The installation on a real API server: what is printed is accepted, runs with the rights it is given and no more, and
//! never stands in its own way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/mod.rs"]
mod common;

mod agreement;
mod cert_manager;
mod deadlock;
#[path = "../rules_live/definitions.rs"]
#[allow(dead_code, reason = "the other suite uses the rest")]
mod definitions;
mod pods;
mod rights;
mod support;
