//! Pods of one group by role, updated with each pod event.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plan::view::{HeldPod, PodFacts, PodRef, Replicas};

/// The pods of one group by role. A clone shares its data until one of the two changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPods {
    /// Pods without a role are under the empty name; no entry is without pods.
    roles: BTreeMap<String, Arc<RolePods>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolePods {
    /// Pods whose controller numbers its replicas.
    pub replicas: Replicas,
    /// Other pods: their ordinals depend on the desired replicas and on the running pods.
    pub unnumbered: BTreeMap<PodRef, Arc<PodFacts>>,
}

impl GroupPods {
    pub fn add(&mut self, pod: &Arc<PodFacts>) {
        let name = pod.identity.role.as_deref().unwrap_or_default();
        if let Some(role) = self.roles.get_mut(name) {
            return Arc::make_mut(role).add(pod);
        }
        let mut role = RolePods::default();
        role.add(pod);
        self.roles.insert(name.to_owned(), Arc::new(role));
    }

    /// Removes a pod, which must be as it was added.
    pub fn remove(&mut self, pod: &PodFacts) {
        let name = pod.identity.role.as_deref().unwrap_or_default();
        let Some(role) = self.roles.get_mut(name) else { return };
        let role = Arc::make_mut(role);
        role.remove(pod);
        if role.replicas.is_empty() && role.unnumbered.is_empty() {
            self.roles.remove(name);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Iterates over all pods, role by role.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.roles.values().flat_map(|role| role.pods())
    }

    /// Iterates over the named roles; the empty name stands for pods without a role.
    pub fn roles(&self) -> impl Iterator<Item = (&str, &RolePods)> {
        self.roles.iter().map(|(name, role)| (name.as_str(), &**role))
    }

    pub fn of_role(&self, role: &str) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.roles.get(role).into_iter().flat_map(|role| role.pods())
    }

    /// Reports whether a replica of the role has a ready pod.
    pub fn has_ready(&self, role: &str) -> bool {
        self.roles.get(role).is_some_and(|role| role.replicas.pods_in(..).ready > 0)
    }

    /// Iterates over the held pods; a pod without a number has ordinal 0.
    pub fn held(&self) -> impl Iterator<Item = HeldPod> {
        self.roles.values().flat_map(|role| {
            let unnumbered = role.unnumbered.values().filter(|pod| pod.held);
            role.replicas.held(..).chain(unnumbered.map(|pod| HeldPod { facts: pod.clone(), ordinal: 0 }))
        })
    }
}

impl RolePods {
    fn add(&mut self, pod: &Arc<PodFacts>) {
        match numbered(pod) {
            Some(ordinal) => self.replicas.add(pod, ordinal),
            None => _ = self.unnumbered.insert(pod.pod.clone(), pod.clone()),
        }
    }

    fn remove(&mut self, pod: &PodFacts) {
        match numbered(pod) {
            Some(ordinal) => self.replicas.remove(&pod.pod, ordinal),
            None => _ = self.unnumbered.remove(&pod.pod),
        }
    }

    fn pods(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.replicas.pods().map(|(_, pod)| pod).chain(self.unnumbered.values())
    }
}

/// Returns the ordinal that the controller of the pod gives.
fn numbered(pod: &PodFacts) -> Option<u32> {
    pod.identity.ordinal.filter(|_| pod.identity.unnumbered.is_none())
}

impl<'a> FromIterator<&'a Arc<PodFacts>> for GroupPods {
    fn from_iter<T: IntoIterator<Item = &'a Arc<PodFacts>>>(pods: T) -> Self {
        let mut all = Self::default();
        pods.into_iter().for_each(|pod| all.add(pod));
        all
    }
}

impl FromIterator<PodFacts> for GroupPods {
    fn from_iter<T: IntoIterator<Item = PodFacts>>(pods: T) -> Self {
        let mut all = Self::default();
        pods.into_iter().for_each(|pod| all.add(&Arc::new(pod)));
        all
    }
}
