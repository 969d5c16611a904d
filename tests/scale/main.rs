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

use std::sync::{Arc, OnceLock};

use common::{ControlPlane, Stage};

static PLANE: OnceLock<Arc<ControlPlane>> = OnceLock::new();

/// A namespace on the control plane that all tests of this suite share: with LeaderWorkerSets and an audit log.
async fn stage(namespace: &str) -> Stage {
    let start = || {
        let plane = ControlPlane::start_with("kwok,lws", &["--audit"]);
        plane.define_groups();
        Arc::new(plane)
    };
    Stage::on(PLANE.get_or_init(start).clone(), namespace).await
}
