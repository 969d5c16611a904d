//! The policies of `policies/` in a real API server: the twins agree with the rules on every golden case, the guard keeps
//! holds closed, and pods are held without any webhook.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]
#![allow(clippy::similar_names, reason = "`status` and `statuses` are what they say")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../golden/mod.rs"]
#[allow(dead_code, reason = "the cases are run by the API server here")]
mod golden;

mod cluster;
mod guard;
mod hold;
mod labeller;
mod mutants;
mod readme;
mod trial;
mod twins;
