//! Builds the RoleCoordination for running workloads.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::asked::{Asked, Refused};
use super::running::Running;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::model::ratio::reduced;

/// Builds the RoleCoordination: roles that support lockstep roll in lockstep, roles with a ratio of replicas share
/// segments.
pub fn coordination(asked: &Asked<'_>, group: &str, names: &[String], running: &[Running]) -> Result<Value, Refused> {
    let pairs = || names.iter().zip(running);
    let reference = |running: &Running| json!({ "kind": running.target.kind.as_str(), "name": running.target.name });
    let roles: Vec<_> =
        pairs().map(|(name, running)| json!({ "name": name, "workloadRef": reference(running) })).collect();
    if let Some(size) = asked.sizes.iter().find(|size| !names.contains(&size.role)) {
        return Err(Refused(vec![format!(
            "--segment-size: there is no role {:?} among {}",
            size.role,
            names.join(", ")
        )]));
    }
    let sizes = sizes(asked, names, running);
    let rolled: Vec<_> =
        pairs().filter(|(_, running)| running.target.kind.row().rollout.is_some()).map(|(name, _)| name).collect();
    let mut coordinations = Vec::new();
    if asked.max_skew.is_some() && rolled.len() < 2 {
        let why = "--max-skew: fewer than two of these workloads can be rolled in lockstep, as a Deployment cannot";
        return Err(Refused(vec![why.to_owned()]));
    }
    if rolled.len() > 1 {
        let strategy = json!({ "rollingUpdate": { "maxSkew": asked.max_skew.unwrap_or("25%") } });
        coordinations.push(json!({ "name": "rollout", "roles": rolled, "strategy": strategy }));
    }
    if !sizes.is_empty() {
        let strategy = json!({ "segmentPlacement": { "segmentSize": sizes } });
        coordinations.push(json!({ "name": "segments", "strategy": strategy }));
    }
    if coordinations.is_empty() {
        let why = "these roles have no ratio of replicas in common, and no two of them can be rolled in lockstep";
        return Err(Refused(vec![format!("{why}: set --segment-size")]));
    }
    Ok(json!({
        "apiVersion": ROLE_COORDINATION.api_version(),
        "kind": ROLE_COORDINATION.kind,
        "metadata": { "name": group, "namespace": asked.namespace },
        "spec": { "roles": roles, "coordination": coordinations },
    }))
}

/// Returns the requested segment sizes; by default the ratio of the roles with numbered pods, or of all roles if no
/// pods are numbered.
fn sizes(asked: &Asked<'_>, names: &[String], running: &[Running]) -> Map<String, Value> {
    if !asked.sizes.is_empty() {
        return asked.sizes.iter().map(|size| (size.role.clone(), json!(size.replicas))).collect();
    }
    let all: BTreeMap<_, _> = names.iter().zip(running).filter(|(_, running)| running.workload.desired > 0).collect();
    let are_numbered = all.values().any(|running| running.target.kind.row().numbered);
    let in_segments = all.into_iter().filter(|(_, running)| running.target.kind.row().numbered == are_numbered);
    let replicas = in_segments.map(|(name, running)| (name.clone(), running.workload.desired)).collect();
    let ratio = reduced(&replicas).map(|(_, ratio)| ratio).unwrap_or_default();
    ratio.into_iter().map(|(name, replicas)| (name, json!(replicas))).collect()
}
