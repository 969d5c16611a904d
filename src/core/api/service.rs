//! Services, limited to the fields behind the DNS names of pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::{Meta, ObjectKind, null_default};

pub const SERVICE: ObjectKind = ObjectKind::namespaced("", "v1", "Service", "services");

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: ServiceSpec,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// `None` for a headless Service, which gives each of its pods a name.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    /// True when pods have their names before they are ready.
    pub publish_not_ready_addresses: bool,
    /// Labels of the pods that it gives a name; none for a Service whose endpoints others write.
    pub selector: BTreeMap<String, String>,
}
