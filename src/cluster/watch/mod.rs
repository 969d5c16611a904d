//! Watches of the API server, one for each kind, and the age of their data.

pub mod cache_age;
pub mod capacity;
pub mod client;
pub mod devices;
pub mod protobuf;
pub mod readable;
pub mod sources;
mod stream;
mod volumes;
pub mod watched;

pub use stream::{Selection, watch};

fn parameters(uri: &http::Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&')
}

/// Reports whether a request is a watch.
fn is_watch(uri: &http::Uri) -> bool {
    parameters(uri).any(|parameter| parameter == "watch=true")
}
