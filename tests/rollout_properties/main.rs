//! What holds of every rollout in lockstep, whatever the roles, the speeds and the failures, and in whichever order the
//! workloads' controllers, the pods and the planner come to move.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

mod bounds;
mod cases;
mod world;
