//! Talks to the API server: watch, index, plan, apply.

pub mod apply;
pub mod certificates;
pub mod events;
pub mod index;
pub mod lease;
pub mod live_world;
pub mod lookup;
pub mod metrics;
pub mod run;
pub mod sources;
pub mod topologies;
pub mod watch;
pub mod watched;
pub mod webhooks;
