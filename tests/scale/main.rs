//! Large groups on a real control plane, and what they cost it: every request of rolegate's is in the API server's audit
//! log.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/mod.rs"]
mod common;

mod story_2;
mod surplus;
mod thousand;
mod workers;

use common::control_plane::Shared;
use common::{ControlPlane, Stage};

/// With LeaderWorkerSets and an audit log.
static PLANE: Shared = Shared::new(|| ControlPlane::start_with_groups("kwok,lws", &["--audit"]));

/// A namespace on the control plane that all tests of this suite share.
async fn stage(namespace: &str) -> Stage {
    Stage::on(PLANE.get(), namespace).await
}
