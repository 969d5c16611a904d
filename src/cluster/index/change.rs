//! What the index takes in.

/// What a watch reports.
#[derive(Debug)]
pub enum Change<T> {
    /// All objects, after a list: what is not among them is gone.
    Listed(Vec<T>),
    /// An object is new or has changed.
    Applied(T),
    /// An object is gone.
    Deleted(T),
    /// The API server does not serve the kind.
    NotServed,
}
