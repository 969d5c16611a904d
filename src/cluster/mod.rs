//! Watches the API server, indexes its objects, plans, and writes.

pub mod capacity;
pub mod certificates;
pub mod entries;
pub mod failure;
pub mod index;
pub mod lease;
pub mod metrics;
pub mod objects;
pub mod read;
pub mod registration;
pub mod requests;
pub mod run;
pub mod stances;
pub mod told;
pub mod watch;
pub mod write;
