//! Every rule as its users meet it: `kubectl` and controllers against a real API server that asks a running rolegate.

mod coordinations;
pub mod definitions;
pub mod desk;
mod groups;
mod grove;
pub mod kai;
mod policies;
mod races;
mod references;
mod rights;
mod skew;
mod topologies;
pub mod turn;
