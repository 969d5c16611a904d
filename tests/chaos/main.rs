//! rolegate under attack, beside faults and in churn, with what was seen written down in `docs/reliability.md`.
//!
//! The short stories run in `cargo test`; those that take minutes are ignored there: `make chaos` and `make soak` run them, and
//! with `UPDATE_DOCS=1` write their figures into the page.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fuzz;
mod network;
mod rolling;
mod soak;
