//! Large groups on a real control plane, and what they cost it: every request of rolegate's is in the API server's audit
//! log.

mod story_2;
mod surplus;
mod thousand;
mod workers;

use crate::common::control_plane::Shared;
use crate::common::{ControlPlane, Stage};

/// With LeaderWorkerSets and an audit log.
static PLANE: Shared = Shared::new(|| ControlPlane::start_with_groups("kwok,lws", &["--audit"]));

/// A namespace on the control plane that all tests of this suite share.
async fn stage(namespace: &str) -> Stage {
    Stage::on(PLANE.get(), namespace).await
}
