//! Whether replicas beyond the desired ones were made by a rollout: a live read of their workload, after they were seen.

use kube::Client;

use crate::cluster::read::missing_pods::read_workload;
use crate::model::WorkloadKey;
use crate::plan::PodRef;
use crate::plan::decide::surplus::Surplus;

/// The pods that a rollout made, among those beyond the desired replicas. `makers` are the workloads of the roles in
/// `surplus`, where they are known: a surge of others is not told from growth, and is held.
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
        // It wanted no more than that when the pods were there already: they cannot be growth.
        if workload.is_some_and(|workload| workload.surges() && workload.desired <= surplus.desired) {
            proven.extend(surplus.pods.iter().cloned());
        }
    }
    Ok(proven)
}
