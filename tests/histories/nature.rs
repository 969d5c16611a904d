//! The cluster without rolegate: controllers create pods, the scheduler binds them, kubelets run them.

use rolegate::api::meta::OwnerReference;
use rolegate::api::pod::{PodCondition, SchedulingGate};
use rolegate::model::{GroupKey, PodIdentity, Unnumbered, place_labels};

use crate::places::{Place, role_of};
use crate::prelude::*;

/// A gate of another project.
pub const FOREIGN: &str = "example.com/other";

impl Setup {
    pub fn pod_name(&self, place: Place) -> String {
        let Place { role, ordinal, member } = place;
        match self.makers[role] {
            Maker::Set { start } => format!("{}-{}", ROLES[role], start + ordinal),
            Maker::Leaders { .. } if member == 0 => format!("{}-{ordinal}", ROLES[role]),
            Maker::Leaders { .. } => format!("{}-{ordinal}-{member}", ROLES[role]),
            // The ordinal only makes the name unique; names are not in order.
            Maker::Alike => format!("{}-{}", ROLES[role], u64::from(ordinal) * 7_919 % 10_007),
        }
    }

    pub fn replica_size(&self, role: usize) -> u32 {
        if let Maker::Leaders { size, .. } = self.makers[role] { size } else { 1 }
    }
}

impl Server {
    /// Lets the controller of a role's workload make up to `most` changes; returns whether it made one. With `stale`,
    /// the webhook still sees a deleted coordination, and gates pods without need.
    pub fn control(&mut self, role: usize, most: usize, stale: bool) -> bool {
        if self.setup.makers[role] == Maker::Alike {
            return self.control_alike(role, most, stale);
        }
        let setup = self.setup.clone();
        let replicas = self.workloads[role];
        let surplus = self.pods.values().filter(|pod| {
            let name = pod.metadata.name.as_deref().unwrap();
            role_of(name) == role
                && (setup.named(name).unwrap().ordinal >= replicas || pod.status.phase == "Failed")
                && !pod.metadata.is_deleting()
        });
        let surplus: Vec<_> = surplus.take(most).filter_map(|pod| pod.metadata.name.clone()).collect();
        surplus.iter().for_each(|name| self.evict(name));
        let places = (0..replicas)
            .flat_map(|ordinal| (0..setup.replica_size(role)).map(move |member| Place { role, ordinal, member }));
        let missing: Vec<_> = places
            .filter(|place| !self.pods.contains_key(&setup.pod_name(*place)) && self.may_be_made(*place))
            .take(most)
            .collect();
        missing.iter().for_each(|place| self.make_pod(*place, stale));
        !surplus.is_empty() || !missing.is_empty()
    }

    /// Lets a ReplicaSet create missing pods, and delete those that serve least first.
    fn control_alike(&mut self, role: usize, most: usize, stale: bool) -> bool {
        let of_role = self.pods_that(|pod| role_of(pod.metadata.name.as_deref().unwrap()) == role);
        let failed =
            |name: &String| self.pods[name].status.phase == "Failed" && !self.pods[name].metadata.is_deleting();
        let mut going: Vec<_> = of_role.iter().filter(|name| failed(name)).cloned().collect();
        let mut active: Vec<_> = of_role.into_iter().filter(|name| !self.pods[name].is_gone()).collect();
        active.sort_by_key(|name| {
            let pod = &self.pods[name];
            let cost = pod.metadata.annotation(names::DELETION_COST).map_or(0, |cost| cost.parse::<i32>().unwrap());
            (pod.condition_is_true("Ready"), pod.spec.node_name.is_some(), !is_gated(pod), cost)
        });
        let (there, wanted) = (active.len(), self.workloads[role] as usize);
        let stay = active.split_off(there.saturating_sub(wanted));
        let is_marked = |name: &String| self.pods[name].metadata.label(names::DRAINING).is_some();
        if stay.iter().any(is_marked) {
            let taken = active.iter().take(most).filter(|name| is_ready(&self.pods[*name]) && !is_marked(name));
            self.taken.extend(taken.cloned().collect::<Vec<_>>());
        }
        going.extend(active);
        let changes = going.len().min(most);
        going.iter().take(most).for_each(|name| self.evict(name));
        let missing = wanted.saturating_sub(there).min(most);
        for _ in 0..missing {
            let number = u32::try_from(self.version).unwrap();
            self.make_pod(Place { role, ordinal: number, member: 0 }, stale);
        }
        changes + missing > 0
    }

    /// Reports whether the pod may be created: workers of a late LeaderWorkerSet wait until their leader is ready.
    fn may_be_made(&self, place: Place) -> bool {
        let late = matches!(self.setup.makers[place.role], Maker::Leaders { late: true, .. });
        let leader = self.pods.get(&self.setup.pod_name(Place { member: 0, ..place }));
        !late || place.member == 0 || leader.is_some_and(|leader| leader.condition_is_true("Ready"))
    }

    fn make_pod(&mut self, place: Place, stale: bool) {
        let Place { role, ordinal, member } = place;
        let size = self.group.as_ref().and_then(|group| group.group().batch_size(ROLES[role]));
        let maker = self.setup.makers[role];
        let free = self.group.as_ref().is_some_and(|group| {
            group.group().never_holds(&PodIdentity {
                group: GroupKey::new(NAMESPACE, GROUP),
                role: Some(ROLES[role].into()),
                ordinal: (maker != Maker::Alike).then_some(ordinal),
                member: Some(member),
                replica_size: self.setup.replica_size(role),
                made_at_once: false,
                unnumbered: (maker == Maker::Alike).then(Unnumbered::default),
                named_by_us: true,
            })
        });
        let gated = !self.ignored && (stale || !free);
        let labelled = !self.ignored;
        let of_set = self.labels_of_set(role, ordinal);
        let name = self.setup.pod_name(place);
        self.create_pod(&name, |pod| {
            let meta = &mut pod.metadata;
            let mut label = |key: &str, value: &str| _ = meta.labels.insert(key.to_owned(), value.to_owned());
            label(names::GROUP, GROUP);
            label(names::ROLE, ROLES[role]);
            if let (true, Some(size)) = (labelled && maker != Maker::Alike, size) {
                label(names::KEP75_INSTANCE_INDEX, &ordinal.to_string());
                place_labels(size, ordinal).iter().for_each(|(key, value)| label(key, value));
            }
            of_set.iter().for_each(|(key, value)| label(key, value));
            let owner = |kind: &str, name: String| OwnerReference {
                kind: kind.to_owned(),
                name,
                controller: true,
                ..Default::default()
            };
            meta.owner_references.push(match maker {
                Maker::Set { start } => {
                    label(names::POD_INDEX, &(start + ordinal).to_string());
                    owner("StatefulSet", ROLES[role].to_owned())
                }
                Maker::Leaders { size, .. } => {
                    label(names::LWS_NAME, ROLES[role]);
                    meta.annotations.insert(names::LWS_SIZE.to_owned(), size.to_string());
                    let of_workers = format!("{}-{ordinal}", ROLES[role]);
                    owner("StatefulSet", if member == 0 { ROLES[role].to_owned() } else { of_workers })
                }
                Maker::Alike => owner("ReplicaSet", format!("{}-5d4f", ROLES[role])),
            });
            if gated {
                pod.spec.scheduling_gates = Some(vec![SchedulingGate { name: names::GATE.to_owned() }]);
            }
        });
        if self.setup.gated_by_others {
            self.gate(&name);
        }
    }

    /// Returns the names of pods that pass a test.
    pub fn pods_that(&self, test: impl Fn(&Pod) -> bool) -> Vec<String> {
        self.pods.iter().filter(|(_, pod)| test(pod)).map(|(name, _)| name.clone()).collect()
    }

    /// Marks a pod as terminating, until `reap`.
    pub fn evict(&mut self, name: &str) {
        self.edit_pod(name, |pod| pod.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned()));
    }

    pub fn gate(&mut self, name: &str) {
        self.edit_pod(name, |pod| {
            let gates = pod.spec.scheduling_gates.get_or_insert_default();
            gates.push(SchedulingGate { name: FOREIGN.to_owned() });
        });
    }

    pub fn lift(&mut self, name: &str, gate: &str) {
        self.edit_pod(name, |pod| {
            pod.spec.scheduling_gates.iter_mut().for_each(|gates| gates.retain(|one| one.name != gate));
        });
    }

    pub fn set_ready(&mut self, name: &str, ready: bool) {
        let status = if ready { "True" } else { "False" }.to_owned();
        let since = Some(crate::steps::now(self.now).text());
        self.edit_pod(name, |pod| {
            if pod.condition_is_true("Ready") == ready && !pod.status.conditions.is_empty() {
                return;
            }
            let condition = PodCondition { r#type: "Ready".to_owned(), status, ..PodCondition::default() };
            pod.status.conditions = vec![PodCondition { last_transition_time: since, ..condition }];
        });
    }

    pub fn fail(&mut self, name: &str) {
        self.edit_pod(name, |pod| {
            "Failed".clone_into(&mut pod.status.phase);
            pod.status.conditions.clear();
        });
    }
}

pub fn is_gated(pod: &Pod) -> bool {
    pod.spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty())
}

/// Reports whether a pod waits for a node.
pub fn is_unscheduled(pod: &Pod) -> bool {
    !is_gated(pod) && !pod.is_gone() && pod.spec.node_name.is_none()
}

/// Reports whether a pod is bound but not ready.
pub fn is_unready(pod: &Pod) -> bool {
    !pod.is_gone() && pod.spec.node_name.is_some() && !pod.condition_is_true("Ready")
}

pub fn is_ready(pod: &Pod) -> bool {
    !pod.is_gone() && pod.condition_is_true("Ready")
}
