//! Properties of the rules over PodGroups and Grove sets, and of discovery.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

mod discovery;
mod objects;
mod rules;
