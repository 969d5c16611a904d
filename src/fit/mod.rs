//! What if: how many batches of a group fit into the room that nodes have left, where, and what would make room for the next.
//!
//! `cluster` which pods there are and would be → `fitted` the answer for each coordination of a group → `rooms` what domains
//! have left beside. The same answer for `rolegate fit`, `status` and `explain`, and for the warning at admission.

mod cluster;
mod fitted;
mod rooms;

pub use cluster::{Bound, Cluster, MOST_PODS, NoAnswer};
pub use fitted::{Answer, DomainKeys, Fitted, domain_keys, fit, shortages};
pub use rooms::{DomainRoom, NodeShare, Rooms, Sums};
