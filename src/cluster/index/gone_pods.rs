//! Pods that are being deleted and still there, and what pods said last that are gone.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::{Name, SourceId};
use crate::api::Pod;
use crate::model::GroupKey;
use crate::plan::{LastWords, Leaving, PodFacts, PodRef};

/// How many are remembered of those that said something: many more than are lost while somebody looks at why.
const MOST: usize = 1024;

/// A replica of a role of a group.
type Place = (GroupKey, Arc<str>, u32);

/// Pods that are gone, or about to be.
#[derive(Debug, Default)]
pub(super) struct GonePods {
    leaving: HashMap<GroupKey, BTreeMap<Arc<str>, (SourceId, Leaving)>>,
    words: HashMap<Place, LastWords>,
    /// Oldest first.
    order: VecDeque<Place>,
}

impl GonePods {
    /// Those of a group that still are there.
    pub(super) fn leaving(&self, key: &GroupKey) -> Vec<Leaving> {
        self.leaving.get(key).into_iter().flat_map(|of_group| of_group.values()).map(|(_, one)| one.clone()).collect()
    }

    /// What the last pod of a replica said that is gone.
    pub(super) fn last_words(&self, key: &GroupKey, role: &str, ordinal: u32) -> Option<&LastWords> {
        self.words.get(&(key.clone(), role.into(), ordinal))
    }

    /// How many are there.
    pub(super) fn len(&self) -> usize {
        self.leaving.values().map(BTreeMap::len).sum()
    }

    /// Notes a pod that no count includes any more. `facts` are those of when it was counted last.
    pub(super) fn went(&mut self, source: SourceId, pod: &Pod, facts: &PodFacts) {
        let (Some(role), Some(ordinal)) = (&facts.identity.role, facts.identity.ordinal) else { return };
        let key = &facts.identity.group;
        let has_ended = matches!(pod.status.phase.as_str(), "Failed" | "Succeeded");
        if pod.metadata.is_deleting() && !has_ended {
            let node = pod.spec.node_name.as_deref().unwrap_or_default().into();
            let leaving = Leaving { pod: facts.pod.clone(), role: role.clone(), ordinal, node };
            let of_group = self.leaving.entry(key.clone()).or_default();
            of_group.insert(facts.pod.name.clone(), (source, leaving));
        } else {
            self.left(key, &facts.pod);
        }
        if facts.held {
            return;
        }
        let place = (key.clone(), role.clone(), ordinal);
        let words = LastWords::of(pod);
        // One that failed is deleted afterwards, which says nothing more.
        let said = self.words.get(&place).is_some_and(|known| known.pod == words.pod && words.reason.is_empty());
        if said && !known_better(&words) {
            return;
        }
        if self.words.insert(place.clone(), words).is_none() {
            self.order.push_back(place);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.words.remove(&oldest);
        }
    }

    /// A pod is gone for good; true when it was still there until now.
    pub(super) fn left(&mut self, key: &GroupKey, pod: &PodRef) -> bool {
        let Some(of_group) = self.leaving.get_mut(key) else { return false };
        let is_this = of_group.get(&pod.name).is_some_and(|(_, known)| known.pod == *pod);
        if is_this {
            of_group.remove(&pod.name);
        }
        if of_group.is_empty() {
            self.leaving.remove(key);
        }
        is_this
    }

    /// The group of a pod that is on its way out.
    pub(super) fn leaving_of(&self, name: &Name, pod: &PodRef) -> Option<GroupKey> {
        let here = self.leaving.iter().filter(|(key, _)| key.namespace == name.0);
        let mut found = here.filter(|(_, all)| all.get(&name.1).is_some_and(|(_, one)| one.pod == *pod));
        found.next().map(|(key, _)| key.clone())
    }

    /// The pod of a name is gone, since there is another one, or none; returns its group.
    pub(super) fn gone(&mut self, name: &Name, but: Option<&str>) -> Option<GroupKey> {
        let here = self.leaving.iter().filter(|(key, _)| key.namespace == name.0);
        let found = here.filter_map(|(key, of_group)| Some((key, &of_group.get(&name.1)?.1.pod)));
        let (key, pod) = found.into_iter().find(|(_, pod)| but.is_none_or(|but| *pod.uid != *but))?;
        let (key, pod) = (key.clone(), pod.clone());
        self.left(&key, &pod).then_some(key)
    }

    /// Forgets what a watch has not listed; returns the groups.
    pub(super) fn keep_only(&mut self, source: SourceId, listed: &HashSet<Name>) -> Vec<GroupKey> {
        let all = self.leaving.iter().flat_map(|(key, of_group)| of_group.values().map(move |one| (key, one)));
        let is_gone = |(key, (from, one)): &(&GroupKey, &(SourceId, Leaving))| {
            *from == source && !listed.contains(&(key.namespace.clone(), one.pod.name.clone()))
        };
        let gone: Vec<_> = all.filter(is_gone).map(|(key, (_, one))| (key.clone(), one.pod.clone())).collect();
        gone.into_iter().filter_map(|(key, pod)| self.left(&key, &pod).then_some(key)).collect()
    }
}

/// A container has ended since.
fn known_better(words: &LastWords) -> bool {
    words.exit_code.is_some()
}
