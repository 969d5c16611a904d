//! The input of the index.

use serde::de::DeserializeOwned;

use crate::api::Object;

/// What is read of the API server.
pub trait Readable: Object + DeserializeOwned + Clone + Send + 'static {}

impl<T: Object + DeserializeOwned + Clone + Send + 'static> Readable for T {}

/// An event of a watch.
#[derive(Debug)]
pub enum Change<T> {
    /// All objects of a list. An object that is missing from it is gone.
    Listed(Vec<T>),
    /// A new or changed object.
    Applied(T),
    Deleted(T),
    /// The API server does not serve the kind.
    NotServed,
}
