//! The whole program on a real control plane: groups come up segment by segment, whatever breaks meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/mod.rs"]
mod common;

mod story;
