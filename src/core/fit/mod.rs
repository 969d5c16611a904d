//! The fit: how many batches of a group fit into the free room of the nodes, where, and what would make room for the next
//! one.
//!
//! `cluster` existing and future pods → `fitted` the answer for each coordination of a group → `rooms` the remaining room of
//! the domains → `missing` the nodes that batches lack → `suggest` sizes that fill it. Used by `rolegate fit`, `status` and `explain`, and by the warning at admission.

mod cluster;
mod fitted;
mod missing;
mod rooms;
mod suggest;

pub use cluster::{Bound, Cluster, DomainKeys, MOST_PODS, NoAnswer};
pub use fitted::{Answer, Fitted, domain_keys, fit, fit_of_run, shortages};
pub use missing::{Missing, MissingNodes, missing, shape};
pub use rooms::{DomainRoom, NodeShare, Rooms, Sums};
pub use suggest::{MOST_SIZES, NoSize, Size, Sizes, Suggestion, suggest};
