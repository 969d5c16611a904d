//! Talks to the API server: watch, index, plan, apply.

pub mod index;
pub mod watch;
pub mod watched;
