//! Services, as far as the names of pods go.

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

/// `v1 Service`.
pub const SERVICE: ObjectKind =
    ObjectKind { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true };

/// A Service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: ServiceSpec,
}

/// The fields of its spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// `None` for a headless one, which gives each of its pods a name.
    #[serde(rename = "clusterIP", deserialize_with = "null_default")]
    pub cluster_ip: String,
    /// Pods have their names before they are ready.
    #[serde(deserialize_with = "null_default")]
    pub publish_not_ready_addresses: bool,
}

impl Object for Service {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
