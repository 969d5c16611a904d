//! Watches the API server, indexes its objects, plans, and writes.
//!
//! A function that asks the API server fails when it refuses, fails, or does not answer, and for an invalid name.

#![allow(clippy::missing_errors_doc, reason = "said once, above")]

pub mod capacity;
pub mod certificates;
pub mod failure;
pub mod gauges;
pub mod index;
pub mod leader_flags;
pub mod lease;
pub mod locked;
pub mod metrics;
pub mod objects;
pub mod read;
pub mod registration;
pub mod run;
pub mod watch;
pub mod write;
