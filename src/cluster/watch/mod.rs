//! Follows what the API server has: one watch for each kind, and how old what they tell is.

pub mod cache_age;
pub mod capacity;
pub mod client;
pub mod protobuf;
mod readable;
pub mod sources;
mod stream;
mod volumes;
pub mod watched;

pub use stream::watch;

/// What a request asks for.
fn parameters(uri: &http::Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&')
}

/// True for a request that goes on telling what changes.
fn is_watch(uri: &http::Uri) -> bool {
    parameters(uri).any(|parameter| parameter == "watch=true")
}
