//! Our words: group, role, replica, ordinal, batch, coordination. Parsed from `api`, free of spelling.

pub mod batch;
pub mod batching;
pub mod clique_pod;
pub mod clique_set;
pub mod coordination;
pub mod dialect;
mod first_host;
pub mod gang;
pub mod group;
pub mod hold;
pub mod identity;
pub mod layers;
pub mod levels;
pub mod names;
pub mod path;
pub mod role;
pub mod rolling;
pub mod topology;
pub mod workload;

pub use batch::Batch;
pub use batching::{BatchKind, Batching, Progression};
pub use clique_pod::{CliquePod, identify_clique_pod};
pub use clique_set::CliqueSet;
pub use coordination::Coordination;
pub use dialect::Dialect;
pub use gang::GangTree;
pub use group::{CARRIERS, Carrier, Group, GroupKey, Role};
pub use hold::HoldReason;
pub use identity::{OrdinalStarts, PodIdentity, Unnumbered, identify};
pub use layers::{Layer, Layers};
pub use levels::Levels;
pub use path::FieldPath;
pub use role::{RoleWorkload, Sources};
pub use rolling::RollingBounds;
pub use topology::{Domain, PodGroupPolicy, Strength, Topology};
pub use workload::{OneByOne, Workload, WorkloadKey, WorkloadKind};
