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

impl<T> Change<T> {
    /// Returns the objects that are there: those of a list, or the new or changed one.
    pub fn there(&self) -> &[T] {
        match self {
            Self::Listed(all) => all,
            Self::Applied(one) => std::slice::from_ref(one),
            Self::Deleted(_) | Self::NotServed => &[],
        }
    }

    pub fn gone(&self) -> Option<&T> {
        if let Self::Deleted(one) = self { Some(one) } else { None }
    }

    /// Returns the same objects as [`Self::there`].
    pub fn into_there(self) -> Vec<T> {
        match self {
            Self::Listed(all) => all,
            Self::Applied(one) => vec![one],
            Self::Deleted(_) | Self::NotServed => Vec::new(),
        }
    }

    /// Returns whether the kind is served, where that is told.
    pub fn is_served(&self) -> Option<bool> {
        match self {
            Self::Listed(_) => Some(true),
            Self::NotServed => Some(false),
            Self::Applied(_) | Self::Deleted(_) => None,
        }
    }

    pub fn map<U>(self, into: impl Fn(T) -> U) -> Change<U> {
        match self {
            Self::Listed(all) => Change::Listed(all.into_iter().map(into).collect()),
            Self::Applied(one) => Change::Applied(into(one)),
            Self::Deleted(one) => Change::Deleted(into(one)),
            Self::NotServed => Change::NotServed,
        }
    }
}
