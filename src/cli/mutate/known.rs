//! The objects of files, as the webhook would look them up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::workload::{STATEFUL_SET, StatefulSet};
use crate::api::{Object, PodCliqueSet};
use crate::cli::documents::Document;
use crate::model::{Claims, CliqueSet, Group, GroupKey, OrdinalStarts};
use crate::mutate::{GroupLookup, Lookups, Subject, TopologyLookup};
use crate::rules::decode::decode;
use crate::rules::{self, DecodeError, World, judge_group, read_group};

#[derive(Debug, Default)]
pub struct Known {
    /// Context of the rules, which also holds layers and PodGroups.
    pub world: World,
    /// Field manager of updates, if it is known.
    pub manager: Option<String>,
    claims: BTreeMap<GroupKey, Claims>,
    /// Groups that break no rule.
    sound: BTreeSet<GroupKey>,
    clique_sets: BTreeMap<GroupKey, CliqueSet>,
    starts: BTreeMap<GroupKey, i64>,
}

impl Known {
    /// Collects all objects; reports objects without the shape of their kind.
    pub fn of<'a>(
        documents: impl Iterator<Item = &'a Document>,
        misshapen: &mut Vec<(&'a Document, DecodeError)>,
    ) -> Self {
        let mut known = Self { world: World::of_manifests(rules::Options::default()), ..Self::default() };
        let objects: Vec<_> = documents.map(|document| (document, document.stored())).collect();
        for (document, json) in &objects {
            let taken = known
                .world
                .add_json(&document.api_version, &document.kind, json)
                .and_then(|()| known.add(document, json));
            misshapen.extend(taken.err().map(|error| (*document, error)));
        }
        // Groups are read last: their roles may be defined in other objects. Errors of decoding were reported above.
        let carriers =
            objects.iter().filter_map(|(document, json)| read_group(document.carrier_kind()?, json, &known.world).ok());
        known.claims = Claims::by_group(carriers.map(Arc::new));
        let is_sound = |claims: &&Claims| judge_group(&claims.group, None, &known.world).errors.is_empty();
        known.sound = known.claims.values().filter(is_sound).map(|claims| claims.group.key.clone()).collect();
        known
    }

    fn add(&mut self, document: &Document, json: &str) -> Result<(), DecodeError> {
        if let Some(kind) = [POD_CLIQUE_SET, POD_GANG_SET].into_iter().find(|kind| document.is(*kind)) {
            let set = CliqueSet::from_set(kind, &decode::<PodCliqueSet>(json)?);
            self.clique_sets.insert(set.key.clone(), set);
        }
        if document.is(STATEFUL_SET) {
            let set: StatefulSet = decode(json)?;
            let meta = set.meta();
            self.starts.insert(GroupKey::new(meta.namespace(), meta.display_name()), set.spec.ordinals.start);
        }
        Ok(())
    }

    pub fn group(&self, key: &GroupKey) -> Option<&Group> {
        self.claims.get(key).map(|claims| &*claims.group)
    }

    /// Calls `mutate` with the objects that the pod refers to.
    pub fn lookups<R>(&self, subject: &Subject, mutate: impl FnOnce(&Lookups<'_>) -> R) -> R {
        let group = subject.group().and_then(|key| self.group(key));
        let layer = group
            .and_then(|group| subject.layer(group))
            .and_then(|(topology, layer)| self.world.layer_key(topology, layer));
        let set = subject.stateful_set.as_ref().map(|name| GroupKey::new(subject.namespace(), name));
        let is_numbered = set.is_none_or(|set| self.starts.contains_key(&set));
        mutate(&Lookups {
            group: group.map_or(GroupLookup::Absent, GroupLookup::Found),
            is_certain: is_numbered && group.is_some_and(|group| self.sound.contains(&group.key)),
            topology: layer.as_deref().map_or(TopologyLookup::Missing, TopologyLookup::Found),
            clique_set: subject.clique_set().and_then(|key| self.clique_sets.get(&key)),
            pod_group: subject.pod_group.as_ref().and_then(|key| self.world.pod_group(key).present()),
        })
    }
}

impl OrdinalStarts for Known {
    fn start(&self, namespace: &str, stateful_set: &str) -> i64 {
        self.starts.get(&GroupKey::new(namespace, stateful_set)).copied().unwrap_or_default()
    }
}
