//! HorizontalPodAutoscalers: what they scale.

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

/// `autoscaling/v2 HorizontalPodAutoscaler`.
pub const AUTOSCALER: ObjectKind = ObjectKind {
    group: "autoscaling",
    version: "v2",
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    namespaced: true,
};

/// A HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Autoscaler {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: AutoscalerSpec,
}

/// The fields of its spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalerSpec {
    /// What it scales.
    #[serde(deserialize_with = "null_default")]
    pub scale_target_ref: ScaleTarget,
}

/// Names what is scaled, in the same namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScaleTarget {
    /// Its kind.
    #[serde(deserialize_with = "null_default")]
    pub kind: String,
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
}

impl Object for Autoscaler {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
