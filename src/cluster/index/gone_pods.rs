//! Pods that are being deleted, and the last words of pods that are gone.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::store::{Store, Stored};
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
    pub(super) leaving: Store<Name, Leaving>,
    words: HashMap<Place, LastWords>,
    /// Oldest first.
    order: VecDeque<Place>,
    /// Pods that kubelets have refused, oldest first.
    refused: VecDeque<(GroupKey, NodeRefusal)>,
}

impl GonePods {
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

    /// Records a pod that no count includes any more. `facts` are those of its last count.
    pub(super) fn went(&mut self, source: SourceId, pod: &Pod, facts: &PodFacts) {
        let (Some(role), Some(ordinal)) = (&facts.identity.role, facts.identity.ordinal) else { return };
        let key = &facts.identity.group;
        let has_ended = matches!(pod.status.phase.as_str(), "Failed" | "Succeeded");
        if pod.metadata.is_deleting() && !has_ended {
            let node = pod.spec.node_name.as_deref().unwrap_or_default().into();
            let leaving = Leaving { pod: facts.pod.clone(), role: role.clone(), ordinal, node };
            let name = (key.namespace.clone(), facts.pod.name.clone());
            self.leaving.insert(name, Stored { object: leaving, source: Some(source), group: Some(key.clone()) });
        } else {
            self.left(key, &facts.pod);
        }
        if facts.held {
            return;
        }
        let place = (key.clone(), role.clone(), ordinal);
        let words = LastWords::of(pod);
        // A failed pod is deleted afterwards, which adds no information but the exit code of a container.
        let said = self.words.get(&place).is_some_and(|known| known.pod == words.pod && words.reason.is_empty());
        if said && words.exit_code.is_none() {
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
        self.leaving_of(&name, pod).is_some_and(|of| of == *key) && self.leaving.remove(&name).is_some()
    }

    /// Returns the group of a leaving pod.
    pub(super) fn leaving_of(&self, name: &Name, pod: &PodRef) -> Option<GroupKey> {
        self.leaving.get(name).filter(|known| known.object.pod == *pod)?.group.clone()
    }

    /// Removes the leaving pod of a name unless its uid is `but`, the uid of the current pod; returns its group.
    pub(super) fn gone(&mut self, name: &Name, but: Option<&str>) -> Option<GroupKey> {
        let known = self.leaving.get(name)?;
        let is_gone = but.is_none_or(|but| *known.object.pod.uid != *but);
        is_gone.then(|| self.leaving.remove(name)).flatten()?.group
    }

    /// Removes the pods that a watch has not listed; returns their groups.
    pub(super) fn keep_only(&mut self, source: SourceId, listed: &HashSet<Name>) -> Vec<GroupKey> {
        let gone = self.leaving.keep_only(source, |name| listed.contains(name));
        gone.into_iter().filter_map(|(_, known)| known.group).collect()
    }
}
