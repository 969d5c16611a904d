//! The reach of a claim.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::api::scheduling::NodeSelector;

/// The nodes that a claim can be reached from.
#[derive(Clone, Debug)]
pub struct Reach {
    pub claim: Arc<str>,
    pub nodes: Arc<NodeSelector>,
}

impl PartialEq for Reach {
    /// Ignores the claim: pods that can go to the same nodes are interchangeable.
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl Eq for Reach {}

impl Hash for Reach {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nodes.hash(state);
    }
}
