//! The version of a kind that is read: of several, the stored one. Reading any other calls the conversion webhook of another
//! project, which may drop fields or be down.

use std::collections::HashMap;

use super::Change;
use crate::api::definition::{DefinedVersion, Definition};
use crate::api::pod_group::POD_GROUP;
use crate::api::{Object, ObjectKind};
use crate::model::{CARRIERS, Dialect};

/// Definitions of the kinds that carry groups. Only these kinds are read in several versions.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// By name; `None` before the first list.
    known: Option<HashMap<String, Definition>>,
    /// A definition was changed, added or deleted.
    pub(super) changed: bool,
    /// Meaning of the counts of KAI's PodGroups; `None` where their definition is missing or does not tell.
    pub(super) dialect: Option<Dialect>,
}

impl Definitions {
    /// Applies an event of the watch of definitions. `NotServed`, as when they may not be read, empties the set.
    pub(super) fn take(&mut self, change: Change<Definition>) {
        let is_of_carrier =
            |definition: &Definition| CARRIERS.iter().any(|kind| kind.crd_name() == definition.meta().display_name());
        let name = |definition: &Definition| definition.meta().display_name().to_owned();
        let is_of_trees = |one: &&Definition| one.meta().display_name() == POD_GROUP.crd_name();
        let of_trees = change.there().iter().find(is_of_trees);
        if of_trees.is_some()
            || matches!(change, Change::Listed(_))
            || change.gone().is_some_and(|one| is_of_trees(&one))
        {
            self.dialect = of_trees.and_then(dialect);
        }
        let versions = |all: &HashMap<String, Definition>| -> HashMap<String, _> {
            let version = |one: &Definition| (one.metadata.uid.clone(), one.metadata.generation);
            all.iter().map(|(name, one)| (name.clone(), version(one))).collect()
        };
        let before = self.known.as_ref().map(versions);
        match (change, &mut self.known) {
            (Change::Listed(all), known) => {
                *known = Some(all.into_iter().filter(is_of_carrier).map(|one| (name(&one), one)).collect());
            }
            (Change::NotServed, known) => *known = Some(HashMap::new()),
            (Change::Applied(one), Some(known)) if is_of_carrier(&one) => _ = known.insert(name(&one), one),
            (Change::Deleted(one), Some(known)) => _ = known.remove(&name(&one)),
            // Single definitions do not count before the first list.
            (Change::Applied(_) | Change::Deleted(_), _) => {}
        }
        self.changed |= before.is_some() && before != self.known.as_ref().map(versions);
    }

    /// Reports whether a kind is read in its version; `None` while that is unknown.
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

/// Derives the meaning of the counts from the definition of KAI's PodGroup.
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

    /// Returns a definition with these versions: name, served, stored.
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
            // The stored version is unknown to rolegate: one of the others is read, not both.
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
            std::mem::take(&mut definitions.changed)
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
