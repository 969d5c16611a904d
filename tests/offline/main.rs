//! The tests without a control plane, except those with random cases: `tests/histories` and `tests/properties`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/build.rs"]
mod build;
#[path = "../markdown/mod.rs"]
mod markdown;
#[path = "../common/terminal.rs"]
mod pty;

mod answers;
mod api_page;
mod chart;
mod check;
mod dependencies;
mod designs;
mod examples;
mod fit;
mod fuzz_lock;
mod generated;
mod generated_cli;
mod golden_cases;
mod house;
mod identity;
mod krew;
mod large_objects;
mod lessons;
mod links;
mod modes;
mod monitoring;
mod mutate_cli;
mod mutations;
mod names_cli;
mod pictures;
mod plan;
mod provenance;
mod reference;
mod rules;
mod server;
mod terminal;
