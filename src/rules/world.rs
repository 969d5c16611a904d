//! Other objects, as far as they are known.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::{Dialect, GangTree, Group, Levels};

/// Other objects, as far as they are known, and how to judge.
#[derive(Debug, Default)]
pub struct World {
    /// How to judge.
    pub options: Options,
    /// Groups.
    pub groups: Vec<Group>,
    /// KAI PodGroups.
    pub pod_groups: Vec<GangTree>,
    /// Levels of topologies, by name of the object.
    pub topology_levels: BTreeMap<String, Levels>,
    /// Dialect of the installed PodGroup CRD.
    pub kai_crd: Option<Dialect>,
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
        super::podgroup::add_json(self, api_version, kind, object);
    }

    /// The PodGroup of this name in this namespace.
    pub fn pod_group(&self, namespace: &str, name: &str) -> Option<&GangTree> {
        self.pod_groups.iter().find(|tree| &*tree.key.namespace == namespace && &*tree.key.name == name)
    }
}
