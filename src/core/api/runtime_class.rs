//! RuntimeClasses: what admission adds to the pods that name one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_with::apply;

use super::scheduling::{ResourceList, Toleration};
use super::{Meta, ObjectKind, null_default};

pub const RUNTIME_CLASS: ObjectKind = ObjectKind::cluster_scoped("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses");

/// A RuntimeClass, limited to the fields that decide where its pods go.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RuntimeClass {
    pub metadata: Meta,
    pub overhead: Overhead,
    pub scheduling: Scheduling,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overhead {
    /// Resources of the sandbox of each pod.
    #[serde(deserialize_with = "null_default")]
    pub pod_fixed: ResourceList,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scheduling {
    pub node_selector: BTreeMap<String, String>,
    pub tolerations: Vec<Toleration>,
}
