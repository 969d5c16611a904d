//! Other objects, as far as they are known.

use serde::Deserialize;

use crate::model::Group;

/// Other objects, as far as they are known, and how to judge.
#[derive(Debug, Default)]
pub struct World {
    /// How to judge.
    pub options: Options,
    /// Groups.
    pub groups: Vec<Group>,
}

/// How to judge, where designs differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Options {
    /// Which KAI release PodGroups are written for.
    pub kai_dialect: KaiDialect,
    /// Role names of a Grove set must be unique in the whole set, as upstream has it.
    pub strict_roles: bool,
}

/// Which KAI release PodGroups are written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KaiDialect {
    /// By the fields that are set.
    #[default]
    Auto,
    /// The design that the project started from.
    Seed,
    /// KAI v0.15 and later.
    Upstream,
}

impl World {
    /// Takes an object in, if it is of a kind that rules look at. The object need not be valid.
    pub fn add_json(&mut self, api_version: &str, kind: &str, object: &str) {
        let _ = (api_version, kind, object);
    }
}
