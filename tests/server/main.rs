//! The server over real sockets, with real TLS clients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

mod certificates;
mod drain;
mod limits;
mod requests;
mod support;
