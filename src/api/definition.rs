//! CustomResourceDefinitions of others, as far as they say which versions of a kind there are.

use serde::Deserialize;

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
}

impl Object for Definition {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
