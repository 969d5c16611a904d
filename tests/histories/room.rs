//! A replica's knowledge of nodes: the room on them, and the pods that they refused.

use rolegate::api::scheduling::SchedulingPod;
use rolegate::plan::Sight;
use rolegate::plan::placement::Capacity;

use crate::machines::Machine;
use crate::prelude::*;
use crate::server::MACHINES;

/// The refusals of a pod by a node, as delivered to a replica.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    uid: String,
    pub times: u32,
    pub last: Duration,
}

/// Refusals by name of the pod and of the node.
pub type Refusals = BTreeMap<(String, String), Refused>;

/// Records the refusal of a delivered pod.
pub fn note_refusal(refusals: &mut Refusals, pod: &Pod, now: Duration) {
    let (Some(name), Some(node)) = (&pod.metadata.name, &pod.spec.node_name) else { return };
    let key = (name.clone(), node.clone());
    if pod.condition_is_true("Ready") {
        refusals.remove(&key);
    }
    let uid = pod.metadata.uid.as_deref().unwrap();
    if pod.status.phase == "Failed" && pod.status.reason == "OutOfcpu" {
        let known = refusals.entry(key).or_default();
        if known.uid != uid {
            *known = Refused { uid: uid.to_owned(), times: known.times + 1, last: now };
        }
    }
}

/// A replica's knowledge of nodes and of the pods on them, from two watches.
#[derive(Default)]
pub struct Room {
    capacity: Capacity,
    /// Positions of the watches of nodes and pods; `None` before their lists.
    cursors: [Option<usize>; 2],
    changed: bool,
}

impl Room {
    pub fn sight(&mut self) -> Sight<'_> {
        if self.cursors.iter().all(Option::is_some) { Sight::Known(&mut self.capacity) } else { Sight::NotYet }
    }

    /// Returns the freed capacity, if something has changed.
    pub fn take_freed(&mut self) -> Option<u64> {
        std::mem::take(&mut self.changed).then(|| self.capacity.freed())
    }

    /// Delivers the next event of the watch of nodes or pods; returns false when there is none.
    pub fn see(&mut self, watch: usize, server: &Server) -> bool {
        if server.machines.is_empty() || (watch == 1 && self.cursors[0].is_none()) {
            return false;
        }
        let log = &server.log[[MACHINES, 0][watch]];
        match &mut self.cursors[watch] {
            None => {
                if watch == 0 {
                    server.machines.iter().for_each(|machine| self.machine(machine));
                } else {
                    server.pods.values().for_each(|pod| self.pod(pod));
                }
                self.cursors[watch] = Some(log.len());
            }
            Some(cursor) => {
                let Some((_, event)) = log.get(*cursor) else { return false };
                *cursor += 1;
                match event {
                    Event::Machine(machine) => self.machine(machine),
                    Event::Pod(pod) => self.pod(pod),
                    Event::PodGone(pod) => self.capacity.remove_pod(pod.metadata.uid.as_deref().unwrap()),
                    _ => {}
                }
            }
        }
        self.changed = true;
        true
    }

    fn machine(&mut self, machine: &Machine) {
        if machine.is_there {
            self.capacity.apply_node(&machine.node()).unwrap();
        } else {
            self.capacity.remove_node(&machine.name);
        }
    }

    fn pod(&mut self, pod: &Pod) {
        let mut pod = serde_json::to_value(pod).unwrap();
        pod["spec"]["containers"] = json!([{ "name": "main", "resources": { "requests": { "cpu": "1" } } }]);
        let pod: SchedulingPod = serde_json::from_value(pod).unwrap();
        self.capacity.apply_pod(&pod).unwrap();
    }
}
