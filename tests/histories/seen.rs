//! A replica's required knowledge: the newest delivered version of each object. It is kept apart from the index, and
//! in the simplest way, to check the index.

use std::collections::HashSet;

use rolegate::cluster::index::CarrierObject;
use rolegate::plan::GroupPods;

use crate::prelude::*;

#[derive(Default)]
pub struct Seen {
    /// Versions by name; the pod if it counts.
    pods: BTreeMap<String, (u64, Option<Arc<Pod>>)>,
    group: (u64, Option<Arc<Stored>>),
    /// Unique ids of groups that the watch has delivered; the replica may not know others yet.
    watched: BTreeSet<String>,
    /// Unique ids of groups that a live read found missing.
    gone: BTreeSet<String>,
    /// Whether the condition of each delivered object that groups wait for is True.
    pub objects: BTreeMap<String, bool>,
}

impl Seen {
    pub fn event(&mut self, version: u64, event: &Event) {
        match event {
            Event::Pod(pod) => self.pod(version, pod, true),
            Event::PodGone(pod) => self.pod(version, pod, false),
            Event::Group(group) => {
                self.watched.insert(group.uid().to_owned());
                self.group(version, Some(group));
            }
            Event::GroupGone(_) => self.group(version, None),
            Event::Workload(..)
            | Event::Set(_)
            | Event::Ignored(..)
            | Event::Machine(_)
            | Event::Object(_)
            | Event::ObjectGone(_) => {}
        }
    }

    fn pod(&mut self, version: u64, pod: &Arc<Pod>, there: bool) {
        let known = self.pods.entry(pod.metadata.name.clone().unwrap()).or_default();
        if version >= known.0 {
            *known = (version, (there && !pod.is_gone()).then(|| pod.clone()));
        }
    }

    fn group(&mut self, version: u64, group: Option<&Arc<Stored>>) {
        let gone = group.is_some_and(|group| self.gone.contains(group.uid()));
        if version >= self.group.0 && !gone {
            self.group = (version, group.cloned());
        }
    }

    pub fn list_pods(&mut self, server: &Server) {
        let gone = self.pods.iter_mut().filter(|(name, _)| !server.pods.contains_key(*name));
        gone.for_each(|(_, known)| *known = (server.version, None));
        server.pods.values().for_each(|pod| self.pod(version_of(pod), pod, true));
    }

    pub fn list_groups(&mut self, server: &Server) {
        self.watched.extend(server.group.iter().map(|group| group.uid().to_owned()));
        match &server.group {
            Some(group) => self.group(group.version(), Some(group)),
            None => self.group(server.version, None),
        }
    }

    /// Applies the answer to a release; an answer does not bring back an unknown pod.
    pub fn written_pod(&mut self, pod: &Pod) {
        let known = self.pods.get(pod.metadata.name.as_deref().unwrap());
        if known.is_some_and(|(_, pod)| pod.is_some()) {
            let pod = Arc::new(pod.clone());
            self.pod(version_of(&pod), &pod, true);
        }
    }

    /// Applies a live list of pods: other running pods are gone.
    pub fn running_pods(&mut self, uids: &HashSet<String>, at: u64) {
        for (version, known) in self.pods.values_mut().filter(|(version, _)| *version <= at) {
            let is_gone =
                |pod: &Arc<Pod>| !pod.has_gate(names::GATE) && !uids.contains(pod.metadata.uid.as_deref().unwrap());
            if known.take_if(|pod| is_gone(pod)).is_some() {
                *version = at;
            }
        }
    }

    /// Applies the group from an answer.
    pub fn read_group(&mut self, stored: &Arc<Stored>) {
        self.group(stored.version(), Some(stored));
    }

    /// Applies a live read that did not find the group known at its start.
    pub fn read_no_group(&mut self, known: &CarrierObject) {
        let uid = known.uid();
        self.gone.insert(uid.to_owned());
        self.group.1.take_if(|stored| stored.uid() == uid);
    }

    /// Checks that the index shows the newest delivered versions.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), Broken> {
        let there = self.pods.values().filter(|(_, pod)| pod.is_some()).count();
        let is_as_delivered = |shown: &&Arc<PodFacts>| {
            self.pods.get(&*shown.pod.name).and_then(|(_, pod)| pod.as_ref()).is_some_and(|pod| {
                let held = pod.has_gate(names::GATE) == shown.held && pod.condition_is_true("Ready") == shown.ready;
                held && pod.metadata.uid.as_deref() == Some(&*shown.pod.uid)
                    && pod.spec.node_name.is_some() == shown.scheduled
            })
        };
        let wrong: Vec<_> = snapshot.pods.iter().filter(|shown| !is_as_delivered(shown)).collect();
        hold!(wrong.is_empty(), "the index does not show pods as they were last delivered: {wrong:?}");
        let shown = snapshot.pods.iter().count();
        hold!(shown == there, "the index shows {shown} pods, and there are {there}");
        let fresh: GroupPods = snapshot.pods.iter().collect();
        hold!(snapshot.pods == fresh, "what is kept of the pods is not what a fresh count finds");
        let shown = snapshot.claims.as_ref().map(|claims| {
            let carrier = &claims.group.carrier;
            (carrier.uid.clone(), carrier.resource_version.parse::<u64>().unwrap())
        });
        let delivered = self.group.1.as_ref().map(|stored| (stored.uid().to_owned(), stored.version()));
        let is_watched =
            |group: &Option<(String, u64)>| group.as_ref().is_none_or(|(uid, _)| self.watched.contains(uid));
        hold!(
            shown == delivered || !is_watched(&delivered),
            "the index does not show the group as it was last delivered: {shown:?} instead of {delivered:?}"
        );
        Ok(())
    }
}

fn version_of(pod: &Pod) -> u64 {
    pod.metadata.resource_version.as_deref().unwrap().parse().unwrap()
}
