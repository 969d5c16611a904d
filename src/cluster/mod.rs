//! Talks to the API server: watch, index, plan, apply.

pub mod apply;
pub mod cache_age;
pub mod events;
mod gangs;
pub mod index;
pub mod lease;
pub mod live_world;
pub mod lookup;
pub mod metrics;
pub mod reasons;
pub mod removal;
pub mod run;
pub mod sources;
pub mod surge;
pub mod survey;
pub mod topologies;
pub mod watch;
pub mod watched;
