//! A ClusterTopology at creation: its finalizer, so that it cannot go while something refers to it (KEP-75, Resource
//! Protection).

use super::Patch;
use crate::api::ClusterTopology;
use crate::model::names::TOPOLOGY_FINALIZER;

/// The finalizer of a ClusterTopology, there from creation.
pub fn protect_topology(topology: &ClusterTopology) -> Patch {
    let mut patch = Patch::default();
    let finalizers = &topology.metadata.finalizers;
    if finalizers.is_empty() {
        patch.add("/metadata/finalizers", vec![TOPOLOGY_FINALIZER]);
    } else if !finalizers.iter().any(|finalizer| finalizer == TOPOLOGY_FINALIZER) {
        patch.add("/metadata/finalizers/-", TOPOLOGY_FINALIZER);
    }
    patch
}
