//! An installation through its life on a real control plane: looked at, replaced by another version, taken out.

mod doctor;
mod downgrade;
pub mod uninstall;
mod upgrade;

use crate::common::prelude::*;

/// A command that looks at the stage's rolegate, which has its name.
async fn rolegate(stage: &Stage, arguments: &[&str]) -> Ran {
    let named = [arguments, &["--name", &stage.namespace]].concat();
    ran(&stage.plane.kubeconfig, &named).await
}
