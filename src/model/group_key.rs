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

/// What stands before the name of a PodGroup; no name of an object has a slash.
const POD_GROUP: &str = "podgroup/";

impl GroupKey {
    /// The key of a KAI PodGroup where there are groups beside: no group has it.
    #[must_use]
    pub fn of_pod_group(&self) -> Self {
        Self::new(&self.namespace, &format!("{POD_GROUP}{}", self.name))
    }

    /// The key of the PodGroup alone, if this is the key of one.
    pub fn pod_group(&self) -> Option<Self> {
        self.name.strip_prefix(POD_GROUP).map(|name| Self::new(&self.namespace, name))
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
