//! Namespace and name of a group.

use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// Namespace of the group and of all its pods; a name never refers to another namespace.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl GroupKey {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// Prefix of the names of PodGroups; the name of an object has no slash.
const POD_GROUP: &str = "podgroup/";

impl GroupKey {
    /// Returns the key of a KAI PodGroup among the keys of groups, which no group has.
    #[must_use]
    pub fn of_pod_group(&self) -> Self {
        Self::new(&self.namespace, &format!("{POD_GROUP}{}", self.name))
    }

    /// Returns the key without the prefix, if this is the key of a PodGroup.
    pub fn pod_group(&self) -> Option<Self> {
        self.name.strip_prefix(POD_GROUP).map(|name| Self::new(&self.namespace, name))
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
