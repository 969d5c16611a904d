//! Pods at CREATE: the objects that they name are looked up, and the pods are mutated.

use std::sync::Arc;

use tokio::time::Instant;

use crate::api::Pod;
use crate::cluster::read::lookup::Looked;
use crate::model::{CliqueSet, GangTree, Group, GroupKey, Layers, WorkloadKey, WorkloadKind, names};
use crate::mutate::{
    GroupLookup, Lookups, PodMutation, Subject, TopologyLookup, engine_needs_group, engine_of_foreign, mutate_pod,
};
use crate::rules::{judge_engine, judge_names};
use crate::server::admission::answer::Verdict;
use crate::server::admission::{Admission, Asked, Judgement};

impl Admission {
    /// Mutates a pod. Objects that it names come from caches, or else from one live read.
    pub(super) async fn hold_pod(&self, pod: &Pod, (request, deadline): Asked<'_>) -> Judgement {
        // An autoscaler tries a pod of the template of a request for nodes, and takes none that would be held.
        if request.dry_run == Some(true) && pod.metadata.label(names::REQUEST).is_some() {
            return Ok(Verdict::pass());
        }
        let namespace = request.namespace.as_deref().unwrap_or_else(|| pod.metadata.namespace());
        let mut subject = Subject::of(pod, namespace, &*self.lookup.index().read());
        if subject.is_foreign() {
            return Ok(engine_of_foreign(pod).map_or_else(Verdict::pass, Verdict::warn));
        }
        let names = judge_names(pod);
        if !names.is_allowed() {
            return Ok(Verdict::of(names));
        }
        if let Some(set) = &subject.stateful_set
            && self.lookup.stateful_sets(namespace, &[set], deadline).await
        {
            subject = Subject::of(pod, namespace, &*self.lookup.index().read());
        }
        let group = self.group_of(&subject, pod, deadline).await?;
        // Only a group that would free the pod is checked.
        let is_certain = |group: &Arc<Group>| subject.is_free_in(group) && self.is_certain(&subject, group);
        let is_certain = group.as_ref().is_some_and(is_certain);
        let group = group.map(|group| self.with_served(group, &subject));
        let layer = match group.as_deref().and_then(|group| subject.layer(group)) {
            Some((topology, layer)) => {
                let layers = self.lookup.looked_up::<Layers>(&GroupKey::new("", topology), deadline).await?;
                layers.and_then(|layers| layers.layer(layer))
            }
            None => None,
        };
        let clique_set = match subject.clique_set() {
            Some(key) => self.lookup.looked_up::<CliqueSet>(&key, deadline).await?,
            None => None,
        };
        let pod_group = match &subject.pod_group {
            Some(key) => self.lookup.looked_up::<GangTree>(key, deadline).await?,
            None => None,
        };
        let lookups = Lookups {
            group: group.as_deref().map_or(GroupLookup::Absent, GroupLookup::Found),
            is_certain,
            topology: layer.as_ref().map_or(TopologyLookup::Missing, |layer| TopologyLookup::Found(&layer.key)),
            clique_set: clique_set.as_deref(),
            pod_group: pod_group.as_deref(),
        };
        let mutation = mutate_pod(pod, &subject, &lookups, &self.pods);
        let PodMutation { patch, warnings, held_by, .. } = mutation;
        // A pod with a wrong engine is refused, or held all the same where rules only warn.
        let judged = judge_engine(pod, self.lookup.options().rules);
        Ok(Verdict { judged, patch, warnings, held_by })
    }

    /// Returns the group of a pod, by a live read where it decides what cannot be added later.
    async fn group_of(&self, subject: &Subject, pod: &Pod, deadline: Instant) -> Looked<Option<Arc<Group>>> {
        let (Some(key), arrived) = (subject.group(), Instant::now()) else { return Ok(None) };
        let group = self.lookup.group(key, deadline).await?;
        let group = self.renewed(group, subject, pod, arrived, deadline).await?;
        let role = subject.identity.as_ref().and_then(|identity| identity.role.as_deref());
        let finds =
            |group: &&Arc<Group>| (self.pods.discovery && group.discovery) || engine_needs_group(pod, group, role);
        let Some(finding) = group.as_ref().filter(finds) else { return Ok(group) };
        let group = Box::pin(self.with_hosts(finding, deadline)).await?;
        // The watches go on meanwhile: their newer state may free a pod that would have been held before.
        self.renewed(group, subject, pod, arrived, deadline).await
    }

    /// Returns the group as of the arrival of the pod or later, if the known group would leave the pod free or without a
    /// cohort.
    async fn renewed(
        &self,
        known: Option<Arc<Group>>,
        subject: &Subject,
        pod: &Pod,
        arrived: Instant,
        deadline: Instant,
    ) -> Looked<Option<Arc<Group>>> {
        match known {
            Some(group) if subject.is_free_in(&group) || subject.is_new_in(&group, pod) => {
                self.lookup.group_since(&group.key, arrived, deadline).await
            }
            known => Ok(known),
        }
    }

    /// Returns the group with the role of the pod as one that has served, if its pods show that and the status, which was lost, does
    /// not: the pod gets no wrong cohort.
    fn with_served(&self, group: Arc<Group>, subject: &Subject) -> Arc<Group> {
        let role = subject.identity.as_ref().and_then(|identity| identity.role.as_deref());
        let role = role.filter(|role| group.status.cohorts.is_none() && group.rolls(role));
        let Some(role) = role.filter(|role| !group.status.has_served(role) && self.has_served(&group, role)) else {
            return group;
        };
        let mut group = Arc::unwrap_or_clone(group);
        group.status.served.insert(role.to_owned(), 1);
        group.into()
    }

    /// Reports whether the known group and StatefulSet suffice to decide that the pod is not held.
    fn is_certain(&self, subject: &Subject, group: &Arc<Group>) -> bool {
        let index = self.lookup.index().read();
        let set = subject.stateful_set.clone().map(|name| {
            let namespace = subject.namespace().to_owned();
            WorkloadKey { namespace, kind: WorkloadKind::StatefulSet, name }
        });
        index.is_sound(group) && set.is_none_or(|set| index.knows_workload(&set))
    }

    /// Returns the group with the StatefulSets of its roles: the addresses of their pods cannot be added later, and the
    /// watches may be behind.
    async fn with_hosts(&self, group: &Group, deadline: Instant) -> Looked<Option<Arc<Group>>> {
        let keys = group.roles.iter().filter_map(|role| role.workload.key.as_ref());
        let sets = keys.filter(|key| key.kind == WorkloadKind::StatefulSet).map(|key| key.name.as_str());
        self.lookup.stateful_sets(&group.key.namespace, &sets.collect::<Vec<_>>(), deadline).await;
        self.lookup.group(&group.key, deadline).await
    }
}
