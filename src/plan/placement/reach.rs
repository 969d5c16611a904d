//! From where a claim of a volume can be reached.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::api::scheduling::NodeSelector;

/// Nodes that a claim can be reached from.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The claim.
    pub claim: Arc<str>,
    /// The nodes.
    pub nodes: Arc<NodeSelector>,
}

impl PartialEq for Reach {
    /// Whatever claim it is: pods can stand for each other that go to the same nodes.
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
