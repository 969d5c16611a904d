//! The name of a group.

use std::fmt;
use std::sync::Arc;

/// Names a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// Namespace of the group and of all its pods: a name never reaches into another namespace.
    pub namespace: Arc<str>,
    /// Name of the group.
    pub name: Arc<str>,
}

impl GroupKey {
    /// The group of this name in this namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
