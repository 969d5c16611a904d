//! Whether surplus replicas were made by a rollout: a live read of their workload after they were seen.

use kube::Client;

use crate::cluster::read::missing_pods::read_workload;
use crate::model::WorkloadKey;
use crate::plan::PodRef;
use crate::plan::decide::surplus::Surplus;

/// Returns the pods that a rollout made, among the pods beyond the desired replicas. `makers` are the workloads of the roles
/// in `surplus`, where known. Surplus pods of an unknown maker may be growth, and stay held.
///
/// # Errors
///
/// When the API server fails.
pub async fn find(
    client: &Client,
    surplus: &[Surplus],
    makers: &[Option<WorkloadKey>],
) -> Result<Vec<PodRef>, kube::Error> {
    let mut proven = Vec::new();
    for (surplus, key) in surplus.iter().zip(makers) {
        let Some(key) = key else { continue };
        let workload = read_workload(client, key).await?;
        // The workload wanted no more replicas when the pods existed already: they cannot be growth.
        if workload.is_some_and(|workload| workload.surges() && workload.desired <= surplus.desired) {
            proven.extend(surplus.pods.iter().cloned());
        }
    }
    Ok(proven)
}
