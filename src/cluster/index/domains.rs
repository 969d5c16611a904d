//! Node labels whose values are the domains of batches, and missing layers.

use super::Index;
use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::model::Group;

impl Index {
    /// Returns the indexes of coordinations whose layer is missing. None is missing before the ClusterTopologies are listed.
    pub(super) fn missing_layers(&self, group: &Group) -> impl Iterator<Item = usize> {
        let known = CLUSTER_TOPOLOGIES.iter().all(|kind| self.is_served(*kind).is_some());
        group.batched().filter(move |_| known).filter_map(|(coordination, batching)| {
            let (topology, layer) = batching.layer()?;
            self.layer_key(topology, layer).is_none().then_some(coordination.index)
        })
    }

    /// Returns the node label of the domains of each coordination whose batches are placed.
    pub(super) fn domain_keys(&self, group: &Group) -> impl Iterator<Item = (usize, String)> {
        group.batched().filter_map(|(coordination, batching)| {
            let key = batching.placed_in()?.key(|topology, layer| self.layer_key(topology, layer))?;
            Some((coordination.index, key))
        })
    }
}
