//! Which version of a kind is read: of several, the one that is stored. Any other one is a call to the conversion webhook of
//! another project, which may drop something, and may be away.

use std::collections::HashMap;

use super::Change;
use crate::api::definition::{DefinedVersion, Definition};
use crate::api::pod_group::POD_GROUP;
use crate::api::{Object, ObjectKind};
use crate::model::{CARRIERS, Dialect};

/// Definitions of the kinds that carry groups: no other kind is read in several versions.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// By name; `None` before they were listed.
    known: Option<HashMap<String, Definition>>,
    changed: bool,
    /// What the counts of KAI's PodGroups mean, as their definition tells.
    dialect: Option<Dialect>,
}

impl Definitions {
    /// Takes in what a watch of definitions reports. Where they may not be read, nothing is known of any.
    pub(super) fn take(&mut self, change: Change<Definition>) {
        let is_of_carrier =
            |definition: &Definition| CARRIERS.iter().any(|kind| kind.crd_name() == definition.meta().display_name());
        let name = |definition: &Definition| definition.meta().display_name().to_owned();
        let is_of_trees = |one: &&Definition| one.meta().display_name() == POD_GROUP.crd_name();
        match &change {
            Change::Listed(all) => self.dialect = all.iter().find(is_of_trees).and_then(dialect),
            Change::Applied(one) if is_of_trees(&one) => self.dialect = dialect(one),
            Change::Deleted(one) if is_of_trees(&one) => self.dialect = None,
            Change::Applied(_) | Change::Deleted(_) | Change::NotServed => {}
        }
        let before = self.known.clone();
        let known = match change {
            Change::Listed(all) => {
                self.known.insert(all.into_iter().filter(is_of_carrier).map(|one| (name(&one), one)).collect())
            }
            Change::NotServed => self.known.insert(HashMap::new()),
            // Single ones tell nothing before all were listed.
            Change::Applied(one) => {
                let Some(known) = self.known.as_mut().filter(|_| is_of_carrier(&one)) else { return };
                known.insert(name(&one), one);
                known
            }
            Change::Deleted(one) => {
                let Some(known) = self.known.as_mut() else { return };
                known.remove(&name(&one));
                known
            }
        };
        let version = |definition: &Definition| (definition.metadata.uid.clone(), definition.metadata.generation);
        let versions = |all: &HashMap<String, Definition>| -> HashMap<String, _> {
            all.iter().map(|(name, definition)| (name.clone(), version(definition))).collect()
        };
        self.changed |= before.is_some_and(|before| versions(&before) != versions(known));
    }

    /// What the counts of KAI's PodGroups mean; `None` where their definition is not there or does not tell.
    pub(super) fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// True when one was changed, made or deleted since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether objects of a kind are read in its version; `None` while that is not known.
    pub(super) fn reads(&self, kind: ObjectKind) -> Option<bool> {
        let name = kind.crd_name();
        let versions: Vec<_> = CARRIERS.iter().filter(|other| other.crd_name() == name).collect();
        if versions.len() < 2 {
            return Some(true);
        }
        let Some(definition) = self.known.as_ref()?.get(&name) else { return Some(true) };
        let find = |wanted: fn(&DefinedVersion) -> bool| {
            let mut known = versions.iter().filter(|version| {
                definition.spec.versions.iter().any(|one| one.name == version.version && one.served && wanted(one))
            });
            known.next()
        };
        let read = find(|version| version.storage).or_else(|| find(|_| true));
        Some(read.is_none_or(|read| **read == kind))
    }
}

/// What the definition of KAI's PodGroup says of their counts.
fn dialect(definition: &Definition) -> Option<Dialect> {
    let version = definition.spec.versions.iter().find(|version| version.name == POD_GROUP.version)?;
    Dialect::of_fields(|field| version.fields.contains(field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_V1ALPHA2};
    use crate::api::role_coordination::ROLE_COORDINATION;

    /// A definition with these versions: name, served, stored.
    fn definition(generation: i64, versions: &[(&str, bool, bool)]) -> Definition {
        let version =
            |(name, served, storage): &(&str, bool, bool)| json!({"name": name, "served": served, "storage": storage});
        let versions: Vec<_> = versions.iter().map(version).collect();
        let metadata = json!({"name": ROLE_BASED_GROUP.crd_name(), "uid": "u", "generation": generation});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"versions": versions}})).unwrap()
    }

    fn read(definitions: &Definitions) -> [Option<bool>; 2] {
        [ROLE_BASED_GROUP, ROLE_BASED_GROUP_V1ALPHA2].map(|kind| definitions.reads(kind))
    }

    #[test]
    fn of_several_versions_the_stored_one_is_read() {
        let (old, new) = ("v1alpha1", "v1alpha2");
        let cases: [(&[_], _); 6] = [
            (&[(old, true, false), (new, true, true)], [false, true]),
            (&[(old, true, true), (new, true, false)], [true, false]),
            (&[(old, true, true)], [true, false]),
            (&[(old, false, false), (new, true, true)], [false, true]),
            // What is stored is not known to us: one of the others, and not both.
            (&[(old, true, false), (new, true, false), ("v1beta1", true, true)], [true, false]),
            (&[("v1beta1", true, true)], [true, true]),
        ];
        let mut definitions = Definitions::default();
        assert_eq!((read(&definitions), definitions.reads(ROLE_COORDINATION)), ([None; 2], Some(true)));
        for (versions, want) in cases {
            definitions.take(Change::Listed(vec![definition(1, versions)]));
            assert_eq!(read(&definitions), want.map(Some), "{versions:?}");
        }
        definitions.take(Change::NotServed);
        assert_eq!(read(&definitions), [Some(true); 2], "where definitions may not be read, each version is tried");
    }

    #[test]
    fn a_changed_definition_is_told_from_one_that_is_listed_again() {
        let mut definitions = Definitions::default();
        let mut changed = |change| {
            definitions.take(change);
            definitions.take_changed()
        };
        let one = |generation| definition(generation, &[("v1alpha1", true, true)]);
        assert!(!changed(Change::Listed(vec![one(1)])));
        assert!(!changed(Change::Applied(one(1))));
        assert!(changed(Change::Applied(one(2))));
        assert!(!changed(Change::Listed(vec![one(2)])));
        assert!(changed(Change::Deleted(one(2))));
        assert!(changed(Change::Applied(one(2))));
    }
}
