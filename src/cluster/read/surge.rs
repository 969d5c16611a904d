//! Whether surplus replicas were made by a rollout: a live read of their workload after they were seen.

use crate::cluster::read::lookup::Lookup;
use crate::cluster::read::missing_pods;
use crate::model::Group;
use crate::plan::PodRef;
use crate::plan::decide::surplus::Surplus;

/// Returns the pods that a rollout made, among the pods beyond the desired replicas. Surplus pods of an unknown maker may be
/// growth, and stay held.
pub async fn find(lookup: &Lookup, group: &Group, surplus: &[Surplus]) -> kube::Result<Vec<PodRef>> {
    let makers = missing_pods::makers(&lookup.index().read(), group, surplus.iter().map(|surplus| &*surplus.role));
    let mut proven = Vec::new();
    for (surplus, key) in surplus.iter().zip(makers) {
        let Some(key) = key else { continue };
        let workload = missing_pods::read(&lookup.client, &key).await?.map(|seen| seen.workload);
        // The workload wanted no more replicas when the pods existed already: they cannot be growth.
        if workload.is_some_and(|workload| workload.surges() && workload.desired <= surplus.desired) {
            proven.extend(surplus.pods.iter().cloned());
        }
    }
    Ok(proven)
}
