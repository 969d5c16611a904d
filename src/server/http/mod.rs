//! Connections and their limits; and the port for probes and metrics.

pub mod accept;
pub mod admin;
pub mod body;
mod connection;
pub mod limits;
pub mod listen;
pub mod metrics;
mod places;
pub mod process;
pub mod self_dial;
mod timeouts;

pub(crate) use connection::Peer;
pub(crate) use places::Proven;
