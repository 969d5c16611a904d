//! Follows what the API server has: one watch for each kind, and how old what they tell is.

pub mod cache_age;
pub mod capacity;
pub mod protobuf;
pub mod sources;
mod stream;
pub mod watched;

pub use stream::watch;
