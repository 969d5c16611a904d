//! Object metadata, and the names of a kind at the API server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::null_default;

/// Labels and annotations are kept whole, since any of them may tie a pod to a group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Absent at CREATE for pods with `generateName`.
    pub name: Option<String>,
    /// Prefix from which the API server makes the name after mutating admission.
    pub generate_name: Option<String>,
    /// Absent for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Absent in mutating admission at CREATE.
    pub uid: Option<String>,
    /// Opaque to other components; compared as a number only to drop older events.
    pub resource_version: Option<String>,
    /// Increases with each change of `spec`.
    pub generation: Option<i64>,
    /// RFC 3339.
    pub creation_timestamp: Option<String>,
    /// RFC 3339; set while the object is being deleted.
    pub deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Owners; the owner with `controller: true` made the object.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    /// Name of an object in the same namespace.
    pub name: String,
    pub uid: String,
    /// True for the owner that manages the object.
    #[serde(deserialize_with = "null_default")]
    pub controller: bool,
}

impl Meta {
    /// Returns the name, or the `generateName` prefix of an object without a name.
    pub fn display_name(&self) -> &str {
        self.name.as_deref().or(self.generate_name.as_deref()).unwrap_or_default()
    }

    /// Returns the namespace, `""` when absent.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Returns the owner that manages this object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Reports whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// A type that represents objects of the API server.
pub trait Object {
    fn meta(&self) -> &Meta;
}

/// Implements [`Object`] for types with a field `metadata`.
macro_rules! objects {
    ($($object:ty),* $(,)?) => {
        $(impl $crate::api::Object for $object {
            fn meta(&self) -> &$crate::api::Meta {
                &self.metadata
            }
        })*
    };
}

pub(crate) use objects;

/// Names of a kind at the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKind {
    /// API group, `""` for the core group.
    pub group: &'static str,
    /// Version that rolegate reads.
    pub version: &'static str,
    pub kind: &'static str,
    /// Resource name in URLs.
    pub plural: &'static str,
    /// False for cluster-scoped kinds.
    pub namespaced: bool,
}

impl ObjectKind {
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { group, version, kind, plural, namespaced: true }
    }

    pub const fn cluster_scoped(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, version, kind, plural) }
    }

    /// Returns `group/version`, or `version` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns `kind.version.group`, as kubectl accepts it: `RoleBasedGroup.v1alpha1.workloads.x-k8s.io`.
    pub fn full_name(&self) -> String {
        [self.kind, self.version, self.group].join(".")
    }

    /// Returns the name of the kind's `CustomResourceDefinition`.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}
