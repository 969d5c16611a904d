//! The input of the index.

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
