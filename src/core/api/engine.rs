//! The engine that runs in the pods of a role, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::null_default;

/// Engine in the pods of a role: it decides the variables, labels and annotations that each pod is created with.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EngineSettings {
    /// Engines and routers, by one or several words.
    #[serde(deserialize_with = "null_default")]
    #[schemars(schema_with = "kinds")]
    pub kinds: Vec<String>,
    /// Processes (ranks) in a pod; the devices of its containers by default, 1 without devices.
    #[schemars(range(min = 1, max = 1024))]
    pub procs_per_pod: Option<i64>,
    /// Pods that form one process group: those of a replica (the default), of the role, or of the role in a segment.
    #[schemars(extend("enum" = ["replica", "role", "segment"]))]
    pub scope: Option<String>,
    /// Port of the rendezvous; that of the engine by default.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<i64>,
    /// Port of SGLang's bootstrap server on prefills; 8998 by default.
    #[schemars(range(min = 1, max = 65_535))]
    pub bootstrap_port: Option<i64>,
    /// Phase that the pods serve; by default the words `encode`, `prefill` and `decode` in the name of the role.
    #[schemars(extend("enum" = [
        "prefill", "decode", "encode", "prefill-decode", "encode-prefill", "encode-prefill-decode"
    ]))]
    pub serves: Option<String>,
}

fn kinds(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": 8,
        "items": { "type": "string", "enum": ["torch", "vllm", "sglang", "dynamo", "llm-d"] },
    })
}
