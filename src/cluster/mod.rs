//! Talks to the API server: watch, index, apply, lease, events, status.

pub mod certificates;
