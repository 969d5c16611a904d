//! The whole program on a real control plane: groups come up segment by segment, whatever breaks meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]
#![allow(clippy::float_cmp, reason = "metrics count in whole numbers")]
#![allow(clippy::similar_names, reason = "`status` and `statuses` are what they say")]

#[path = "../common/mod.rs"]
mod common;

mod absence;
mod api_server;
mod arrival;
mod events;
mod kinds_of_pods;
mod metrics;
mod outage;
mod progressions;
mod recovery;
mod refusals;
mod removal;
mod replicas;
mod reviews;
mod scaling;
mod silence;
mod story;
mod their_ready;
mod wholes;
