//! The suites on the real control plane, in one binary: it is linked once, and the tests of one suite fill the time in which
//! those of another wait. `make test` runs the first tier; the second, whose tests are in modules named `tier2`, is for
//! `make test-all`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]
#![allow(clippy::float_cmp, reason = "metrics count in whole numbers")]
#![allow(clippy::similar_names, reason = "`status` and `statuses` are what they say")]
#![allow(clippy::wildcard_imports, reason = "the second tier uses what the first does")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../markdown/mod.rs"]
#[allow(dead_code, reason = "links are looked at by the offline tests")]
mod markdown;

mod adopt;
mod certificates;
mod chaos;
mod commands;
mod devices;
mod docs;
mod e2e;
mod elastic;
mod examples;
mod install;
mod kubectl;
mod lifecycle;
mod modes;
mod monitoring;
mod page;
mod placement;
mod pods;
mod policies;
mod provision;
mod proxies;
mod recovery;
mod rollouts;
mod rules;
mod scale;
mod tenants;
mod worlds;
