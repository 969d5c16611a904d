//! HorizontalPodAutoscalers and their scale targets.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::{Meta, ObjectKind, null_default};

pub const AUTOSCALER: ObjectKind =
    ObjectKind::namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Autoscaler {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: AutoscalerSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalerSpec {
    #[serde(deserialize_with = "null_default")]
    pub scale_target_ref: ScaleTarget,
}

/// The scaled object, in the same namespace.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScaleTarget {
    pub kind: String,
    pub name: String,
}
