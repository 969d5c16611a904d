//! Workloads that make pods.

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

/// `apps/v1 StatefulSet`.
pub const STATEFUL_SET: ObjectKind =
    ObjectKind { group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets", namespaced: true };

/// A StatefulSet: what the ordinals of its pods depend on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: StatefulSetSpec,
}

/// The fields of a StatefulSet's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatefulSetSpec {
    /// Where the numbering of pods starts.
    #[serde(deserialize_with = "null_default")]
    pub ordinals: Ordinals,
}

/// `spec.ordinals` of a StatefulSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ordinals {
    /// Index of the first pod, 0 by default.
    #[serde(deserialize_with = "null_default")]
    pub start: i64,
}

impl Object for StatefulSet {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
