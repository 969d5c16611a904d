//! CustomResourceDefinitions of others, as far as they say which versions of a kind there are.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::{Meta, Object, null_default};

/// A CustomResourceDefinition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Definition {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: DefinitionSpec,
}

/// The fields of a definition that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionSpec {
    /// Versions of the kind.
    #[serde(deserialize_with = "null_default")]
    pub versions: Vec<DefinedVersion>,
}

/// A version of a kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DefinedVersion {
    /// Its name.
    pub name: String,
    /// Whether objects can be read and written in it.
    pub served: bool,
    /// Whether objects are stored in it: in any other one they are converted at each read.
    pub storage: bool,
    /// Names of the fields of `spec`.
    #[serde(rename = "schema", deserialize_with = "fields_of_spec")]
    pub fields: BTreeSet<String>,
}

/// Names of the fields of `spec` in a schema; of all else in it nothing is kept.
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

impl Object for Definition {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
