//! Talks to the API server: watch, index, plan, apply.

pub mod apply;
pub mod certificates;
pub mod events;
mod group_run;
pub mod index;
pub mod lease;
pub mod lookup;
pub mod metrics;
pub mod run;
pub mod sources;
pub mod watch;
pub mod watched;
pub mod webhooks;
