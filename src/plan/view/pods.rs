//! The pods of one group by role, counted pod event by pod event.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plan::view::{HeldPod, PodFacts, PodRef, Replicas};

/// The pods of one group by role. A copy shares what it has with the original until one of the two is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPods {
    /// Those that name no role are under an empty one; no role is without pods.
    roles: BTreeMap<String, Arc<RolePods>>,
}

/// The pods of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolePods {
    /// Those whose maker numbers its replicas.
    pub replicas: Replicas,
    /// The others: which ordinals they have is decided by how many are desired and who runs.
    pub unnumbered: BTreeMap<PodRef, Arc<PodFacts>>,
}

impl GroupPods {
    /// Takes in a pod.
    pub fn add(&mut self, pod: &Arc<PodFacts>) {
        let name = pod.identity.role.as_deref().unwrap_or_default();
        if let Some(role) = self.roles.get_mut(name) {
            return Arc::make_mut(role).add(pod);
        }
        let mut role = RolePods::default();
        role.add(pod);
        self.roles.insert(name.to_owned(), Arc::new(role));
    }

    /// Forgets a pod, as it was added.
    pub fn remove(&mut self, pod: &PodFacts) {
        let name = pod.identity.role.as_deref().unwrap_or_default();
        let Some(role) = self.roles.get_mut(name) else { return };
        let role = Arc::make_mut(role);
        role.remove(pod);
        if role.replicas.is_empty() && role.unnumbered.is_empty() {
            self.roles.remove(name);
        }
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// All of them, role by role.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.roles.values().flat_map(|role| role.pods())
    }

    /// The roles that they name, an empty one for those that name none.
    pub fn roles(&self) -> impl Iterator<Item = (&str, &RolePods)> {
        self.roles.iter().map(|(name, role)| (name.as_str(), &**role))
    }

    /// Those of one role.
    pub fn of_role(&self, role: &str) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.roles.get(role).into_iter().flat_map(|role| role.pods())
    }

    /// The held ones, as far as they are numbered with their ordinals.
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

/// The ordinal that a pod has from its maker.
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
