//! CustomResourceDefinitions: the versions of a kind and the fields of its spec.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::{Meta, null_default};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Definition {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: DefinitionSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionSpec {
    #[serde(deserialize_with = "null_default")]
    pub versions: Vec<DefinedVersion>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DefinedVersion {
    pub name: String,
    /// Whether objects can be read and written in this version.
    pub served: bool,
    /// Whether objects are stored in this version; in other versions they are converted at each read.
    pub storage: bool,
    /// Field names of `spec`.
    #[serde(rename = "schema", deserialize_with = "fields_of_spec")]
    pub fields: BTreeSet<String>,
}

/// Reads the field names of `spec` from a schema and discards everything else.
fn fields_of_spec<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Schema {
        #[serde(rename = "openAPIV3Schema")]
        schema: Option<Properties<OfObject>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    #[expect(clippy::zero_sized_map_values, reason = "a set cannot be read from an object")]
    struct OfObject {
        spec: Option<Properties<BTreeMap<String, IgnoredAny>>>,
    }
    #[derive(Deserialize)]
    struct Properties<T> {
        properties: Option<T>,
    }

    let schema = Option::<Schema>::deserialize(deserializer)?.and_then(|schema| schema.schema?.properties?.spec);
    Ok(schema.and_then(|spec| spec.properties).into_iter().flatten().map(|(name, _)| name).collect())
}
