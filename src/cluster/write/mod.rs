//! Every write to the API server: the writer makes them, the executor carries out what the loop decides.

pub mod adoption;
pub mod deadline;
mod event_limit;
pub mod events;
pub mod executor;
pub mod pod_groups;
pub mod removal;
pub mod resumed;
pub mod topologies;
mod write_limit;
pub mod writer;
