//! A Grove set as discovery sees it: cliques with roles, the scopes in which they find each other, and the names that Grove
//! gives their pods.

use std::collections::BTreeMap;

use super::engine::TemplateEngine;
use super::{FieldPath, GroupKey, names};
use crate::api::{self, ObjectKind};

/// A PodCliqueSet or PodGangSet.
#[derive(Clone, Debug)]
pub struct CliqueSet {
    /// Name of the set; its pods are in the same namespace.
    pub key: GroupKey,
    /// `PodCliqueSet` or `PodGangSet`.
    pub kind: &'static str,
    /// Copies of the set, at least 1: a set scaled to 0 will be scaled up again.
    pub replicas: u32,
    pub cliques: Vec<Clique>,
    pub scaling_groups: Vec<ScalingGroup>,
    /// False when the set opts out of discovery.
    pub discovery: bool,
    /// How far pods find each other, as written.
    pub discovery_scope: Option<String>,
    pub deleting: bool,
}

/// Pods of one specification.
#[derive(Clone, Debug)]
pub struct Clique {
    pub name: String,
    /// Path of the entry.
    pub at: FieldPath,
    /// Role as written; `""` counts as none, and the clique's name is never a default.
    pub role: Option<String>,
    /// Path of the role: in the spec, or beside it when only that field is set.
    pub role_at: FieldPath,
    /// What its pods say of the engine in them.
    pub template: TemplateEngine,
    /// Pods, at least 1.
    pub replicas: u32,
    /// Maximum number of pods, when the clique is scaled by itself.
    pub max_replicas: Option<u32>,
    /// Index of the scaling group that lists the clique; the first when several do, which is invalid.
    pub group: Option<usize>,
}

/// Cliques that scale together.
#[derive(Clone, Debug)]
pub struct ScalingGroup {
    pub name: String,
    /// Path of the entry.
    pub at: FieldPath,
    /// Names of the cliques.
    pub members: Vec<String>,
    /// Copies, at least 1.
    pub replicas: u32,
    /// Maximum number of copies, when the group is scaled.
    pub max_replicas: Option<u32>,
}

pub const ROLE_NAME_MAX: usize = 63;

/// Pods find the roles of their own scope: the default.
pub const ISOLATED: &str = "isolated";
/// Pods without a scaling group find all roles of their copy of the set, and those of scaling groups find theirs.
pub const WHOLE_SET: &str = "set";
/// The values of the annotation `rolegate.dev/discovery-scope`.
pub const DISCOVERY_SCOPES: &[&str] = &[ISOLATED, WHOLE_SET];

/// Reports whether a role's name can become a variable's: `^[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?$`, at most 63 letters.
pub fn is_role_name(role: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    role.len() <= ROLE_NAME_MAX
        && role.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && role.ends_with(|letter: char| letter.is_ascii_alphanumeric())
        && role.chars().all(inner)
}

/// Returns the role as variables spell it: `prefill-leader` is `PREFILL_LEADER`. Roles with one environment name are one role.
pub fn env_name(role: &str) -> String {
    role.to_ascii_uppercase().replace('-', "_")
}

/// Returns the name of a PodClique: `<set>-<set replica>[-<scaling group>-<its replica>]-<clique>`. The hostname of a pod is
/// this name, `-` and its index.
pub fn clique_name(set: &str, set_replica: u32, group: Option<(&str, u32)>, clique: &str) -> String {
    match group {
        Some((group, replica)) => format!("{set}-{set_replica}-{group}-{replica}-{clique}"),
        None => format!("{set}-{set_replica}-{clique}"),
    }
}

impl CliqueSet {
    /// Reads a set of either kind.
    pub fn from_set(kind: ObjectKind, set: &api::PodCliqueSet) -> Self {
        let template_at = FieldPath::new("spec").child("template");
        let (cliques_at, groups_at) = (template_at.child("cliques"), template_at.child("podCliqueScalingGroups"));
        let template = &set.spec.template;
        let scaling_groups = template.pod_clique_scaling_groups.iter().enumerate().map(|(index, group)| ScalingGroup {
            name: group.name.clone(),
            at: groups_at.index(index),
            members: group.clique_names.clone(),
            replicas: at_least_one(group.replicas),
            max_replicas: group.scale_config.as_ref().and_then(|config| config.max_replicas).map(at_least_one_of),
        });
        let scaling_groups: Vec<_> = scaling_groups.collect();
        let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, group) in scaling_groups.iter().enumerate() {
            for member in &group.members {
                listed.entry(member).or_insert(index);
            }
        }
        let cliques = template.cliques.iter().enumerate().map(|(index, clique)| {
            let at = cliques_at.index(index);
            let (engine, scaled) = (clique.annotations.get(names::ENGINE), clique.spec.auto_scaling_config.as_ref());
            let set = |role: &Option<String>| role.clone().filter(|role| !role.is_empty());
            let beside = set(&clique.role_name).filter(|_| set(&clique.spec.role_name).is_none());
            let role_at = if beside.is_some() { at.clone() } else { at.child("spec") }.child("roleName");
            Clique {
                name: clique.name.clone(),
                at,
                role: beside.or_else(|| set(&clique.spec.role_name)),
                template: TemplateEngine::new(engine.map(|engine| engine.trim()), &clique.spec.pod_spec),
                role_at,
                replicas: at_least_one(clique.spec.replicas),
                max_replicas: scaled.and_then(|config| config.max_replicas).map(at_least_one_of),
                group: listed.get(clique.name.as_str()).copied(),
            }
        });
        Self {
            key: GroupKey::new(set.metadata.namespace(), set.metadata.display_name()),
            kind: kind.kind,
            replicas: at_least_one(set.spec.replicas),
            cliques: cliques.collect(),
            scaling_groups,
            discovery: set.metadata.annotation(names::DISCOVERY) != Some("disabled"),
            discovery_scope: set.metadata.annotation(names::DISCOVERY_SCOPE).map(str::to_owned),
            deleting: set.metadata.is_deleting(),
        }
    }

    /// Returns the scaling group that lists a clique.
    pub fn group_of(&self, clique: &Clique) -> Option<&ScalingGroup> {
        self.scaling_groups.get(clique.group?)
    }

    /// Reports whether any clique has a role.
    pub fn has_roles(&self) -> bool {
        self.cliques.iter().any(|clique| clique.role.is_some())
    }

    /// Returns the cliques whose pods find each other: the members of a scaling group (within one replica of it), or with
    /// `None` all cliques outside scaling groups (within one replica of the set). Returns `None` for an unknown scaling group.
    pub fn scope(&self, scaling_group: Option<&str>) -> Option<Vec<&Clique>> {
        let group = match scaling_group {
            Some(name) => Some(self.scaling_groups.iter().position(|group| group.name == name)?),
            None => None,
        };
        Some(self.cliques.iter().filter(|clique| clique.group == group).collect())
    }

    /// Returns the cliques of a scaling group that form one process group with a clique of this engine: those that ask for the same,
    /// in the order of the set.
    pub fn together<'a>(&'a self, scaling_group: &str, clique: &str, engine: Option<&str>) -> Vec<&'a Clique> {
        let members = self.scope(Some(scaling_group)).unwrap_or_default().into_iter();
        members.filter(|other| other.template.asked.as_deref() == engine || other.name == clique).collect()
    }

    /// Reports whether cliques with and without a scaling group find each other.
    pub fn joins_scopes(&self) -> bool {
        self.discovery && self.discovery_scope.as_deref() == Some(WHOLE_SET) && self.has_standalone()
    }

    /// Reports whether any clique is outside scaling groups.
    pub fn has_standalone(&self) -> bool {
        self.cliques.iter().any(|clique| clique.group.is_none())
    }

    /// Returns the cliques that pods of a scope find beyond it: those outside scaling groups find the members of every scaling
    /// group, and members find those outside. Two scaling groups never find each other.
    pub fn beyond(&self, scaling_group: Option<&str>) -> impl Iterator<Item = &Clique> {
        let found = move |clique: &&Clique| clique.group.is_some() == scaling_group.is_none();
        self.cliques.iter().filter(move |clique| self.joins_scopes() && found(clique))
    }
}

/// Returns at least 1, because Grove's own webhook turns 0 into 1.
fn at_least_one(replicas: Option<i64>) -> u32 {
    at_least_one_of(replicas.unwrap_or(1))
}

fn at_least_one_of(replicas: i64) -> u32 {
    u32::try_from(replicas.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_names_are_what_a_variable_can_be_made_of() {
        for role in ["LEADER", "prefill-leader", "a", "A1", "a--b", "a_b"] {
            assert!(is_role_name(role), "{role}");
        }
        for role in ["", "1a", "-a", "_a", "a-", "a_", "a b", "a.b", "ä", &"a".repeat(64)] {
            assert!(!is_role_name(role), "{role}");
        }
        assert_eq!(env_name("prefill-leader"), env_name("PREFILL_LEADER"));
    }
}
