//! Every write to the API server: the executor carries out the decisions of the loop, the writer sends the requests.

pub mod adoption;
pub mod deadline;
pub mod events;
pub mod executor;
pub mod owned;
pub mod removal;
pub mod resumed;
pub mod topologies;
mod write_limit;
pub mod writer;
