//! Certificates on a real API server: the Secret, their rotation under load, and who is let in.

mod ca_bundle;
mod callers;
mod reach;
mod rotation;
mod shared_secret;

use k8s_openapi::api::core::v1::Pod;

use crate::common::prelude::*;

/// Creates a pod that names a group, as a dry run: it must come back with our gate.
async fn held_dry_run(pods: &Api<Pod>, namespace: &str) -> Result<(), String> {
    let pod = typed(Group::new("probe").role("main", 1, 0).pod("main", "probe", namespace));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let pod = pods.create(&dry_run, &pod).await.map_err(|error| error.to_string())?;
    let gates = pod.spec.unwrap_or_default().scheduling_gates.unwrap_or_default();
    if gates.iter().any(|gate| gate.name == GATE) { Ok(()) } else { Err(format!("not held: {gates:?}")) }
}
