//! Every write to the API server.

pub mod events;
mod pod_groups;
pub mod removal;
pub mod topologies;
pub mod writer;
