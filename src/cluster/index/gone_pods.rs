//! Pods that are being deleted, and the last words of pods that are gone.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::{Name, SourceId};
use crate::api::Pod;
use crate::model::{GroupKey, PodIdentity};
use crate::plan::{LastWords, Leaving, NodeRefusal, PodFacts, PodRef, kubelet_refusal};

/// Number of last words kept: many more than pods are lost while a user asks why.
const MOST: usize = 1024;

/// Number of replicas kept that a kubelet has refused.
const MOST_REFUSED: usize = 256;

/// A replica of a role of a group.
type Place = (GroupKey, Arc<str>, u32);

#[derive(Debug, Default)]
pub(super) struct GonePods {
    /// By namespace and name, since events of pods carry no more.
    leaving: HashMap<Name, OnItsWay>,
    /// Names of the leaving pods.
    of_groups: HashMap<GroupKey, BTreeSet<Arc<str>>>,
    words: HashMap<Place, LastWords>,
    /// Oldest first.
    order: VecDeque<Place>,
    /// Pods that kubelets have refused, oldest first.
    refused: VecDeque<(GroupKey, NodeRefusal)>,
}

/// A pod that is being deleted and still exists.
#[derive(Debug)]
struct OnItsWay {
    source: SourceId,
    group: GroupKey,
    pod: Leaving,
}

impl GonePods {
    /// Returns the leaving pods of a group.
    pub(super) fn leaving(&self, key: &GroupKey) -> Vec<Leaving> {
        let names = self.of_groups.get(key).into_iter().flatten();
        let known = |name: &Arc<str>| self.leaving.get(&(key.namespace.clone(), name.clone()));
        names.filter_map(known).map(|one| one.pod.clone()).collect()
    }

    /// Returns the last words of the last pod of a replica.
    pub(super) fn last_words(&self, key: &GroupKey, role: &str, ordinal: u32) -> Option<&LastWords> {
        self.words.get(&(key.clone(), role.into(), ordinal))
    }

    /// Returns the refusals by kubelets of pods of a group.
    pub(super) fn refused(&self, key: &GroupKey) -> Vec<NodeRefusal> {
        let own = self.refused.iter().filter(|(group, _)| group == key);
        own.map(|(_, refusal)| refusal.clone()).collect()
    }

    /// Drops the refusal of a replica by the node on which its pod is ready.
    pub(super) fn is_ready(&mut self, facts: &PodFacts, node: Option<&str>) {
        let PodIdentity { group, role, ordinal, .. } = &facts.identity;
        self.refused.retain(|(of, refusal)| {
            let is_this = of == group && Some(&refusal.role) == role.as_ref() && Some(refusal.ordinal) == *ordinal;
            !(is_this && node == Some(&*refusal.node))
        });
    }

    /// Counts a refusal once per pod: the same pod is seen again when it is deleted.
    fn note_refusal(&mut self, (key, role, ordinal): &Place, pod: &PodRef, node: &str, reason: &str) {
        let is_this = |(group, known): &(GroupKey, NodeRefusal)| {
            group == key && known.role == *role && known.ordinal == *ordinal && *known.node == *node
        };
        let known = self.refused.iter().position(is_this).and_then(|at| self.refused.remove(at));
        let times = match &known {
            Some((_, known)) if known.pod == *pod => known.times,
            Some((_, known)) => known.times.saturating_add(1),
            None => 1,
        };
        let (role, ordinal, pod, node) = (role.clone(), *ordinal, pod.clone(), node.into());
        let refusal = NodeRefusal { role, ordinal, pod, node, times, reason: reason.to_owned() };
        self.refused.push_back((key.clone(), refusal));
        if self.refused.len() > MOST_REFUSED {
            self.refused.pop_front();
        }
    }

    /// Returns the number of leaving pods.
    pub(super) fn len(&self) -> usize {
        self.leaving.len()
    }

    /// Records a pod that no count includes any more. `facts` are those of its last count.
    pub(super) fn went(&mut self, source: SourceId, pod: &Pod, facts: &PodFacts) {
        let (Some(role), Some(ordinal)) = (&facts.identity.role, facts.identity.ordinal) else { return };
        let key = &facts.identity.group;
        let has_ended = matches!(pod.status.phase.as_str(), "Failed" | "Succeeded");
        if pod.metadata.is_deleting() && !has_ended {
            let node = pod.spec.node_name.as_deref().unwrap_or_default().into();
            let leaving = Leaving { pod: facts.pod.clone(), role: role.clone(), ordinal, node };
            let name = (key.namespace.clone(), facts.pod.name.clone());
            self.forget(&name);
            self.of_groups.entry(key.clone()).or_default().insert(name.1.clone());
            self.leaving.insert(name, OnItsWay { source, group: key.clone(), pod: leaving });
        } else {
            self.left(key, &facts.pod);
        }
        if facts.held {
            return;
        }
        let place = (key.clone(), role.clone(), ordinal);
        let words = LastWords::of(pod);
        // A failed pod is deleted afterwards, which adds no information.
        let said = self.words.get(&place).is_some_and(|known| known.pod == words.pod && words.reason.is_empty());
        if said && !known_better(&words) {
            return;
        }
        if let (Some(reason), Some(node)) = (kubelet_refusal(pod), &pod.spec.node_name) {
            self.note_refusal(&place, &facts.pod, node, reason);
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

    /// Removes a pod that is gone for good; returns true when it was leaving until now.
    pub(super) fn left(&mut self, key: &GroupKey, pod: &PodRef) -> bool {
        let name = (key.namespace.clone(), pod.name.clone());
        let is_this = self.leaving.get(&name).is_some_and(|known| known.group == *key && known.pod.pod == *pod);
        is_this && self.forget(&name).is_some()
    }

    /// Returns the group of a leaving pod.
    pub(super) fn leaving_of(&self, name: &Name, pod: &PodRef) -> Option<GroupKey> {
        self.leaving.get(name).filter(|known| known.pod.pod == *pod).map(|known| known.group.clone())
    }

    /// Removes the leaving pod of a name unless its uid is `but`, the uid of the current pod; returns its group.
    pub(super) fn gone(&mut self, name: &Name, but: Option<&str>) -> Option<GroupKey> {
        let known = self.leaving.get(name)?;
        let is_gone = but.is_none_or(|but| *known.pod.pod.uid != *but);
        is_gone.then(|| self.forget(name)).flatten()
    }

    /// Removes the pods that a watch has not listed; returns their groups.
    pub(super) fn keep_only(&mut self, source: SourceId, listed: &HashSet<Name>) -> Vec<GroupKey> {
        let is_gone = |(name, known): &(&Name, &OnItsWay)| known.source == source && !listed.contains(*name);
        let gone: Vec<_> = self.leaving.iter().filter(is_gone).map(|(name, _)| name.clone()).collect();
        gone.iter().filter_map(|name| self.forget(name)).collect()
    }

    /// Removes a leaving pod; returns its group.
    fn forget(&mut self, name: &Name) -> Option<GroupKey> {
        let group = self.leaving.remove(name)?.group;
        if let Some(of_group) = self.of_groups.get_mut(&group) {
            of_group.remove(&name.1);
            if of_group.is_empty() {
                self.of_groups.remove(&group);
            }
        }
        Some(group)
    }
}

/// Reports whether the words hold the exit code of a container.
fn known_better(words: &LastWords) -> bool {
    words.exit_code.is_some()
}
