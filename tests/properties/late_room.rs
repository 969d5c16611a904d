//! The room of a cluster as a watch tells of it that is behind, and pods of others that take some of it.

use rolegate::plan::placement::Capacity;

use crate::prelude::*;

/// Something that the watch has yet to tell.
pub enum Told {
    Node(Value),
    Pod(Value),
    PodGone(String),
}

/// What was told, and what was not yet.
#[derive(Default)]
pub struct LateRoom {
    pub capacity: Capacity,
    pub untold: Vec<Told>,
}

impl LateRoom {
    /// A watch that lists first.
    pub fn listed(objects: impl Iterator<Item = Told>) -> Self {
        Self { capacity: Capacity::default(), untold: objects.collect() }
    }

    /// Tells so many changes, the oldest first.
    pub fn tell(&mut self, count: usize) {
        for told in self.untold.drain(..count.min(self.untold.len())) {
            match told {
                Told::Node(node) => self.capacity.apply_node(&serde_json::from_value(node).unwrap()).unwrap(),
                Told::Pod(pod) => self.capacity.apply_pod(&serde_json::from_value(pod).unwrap()).unwrap(),
                Told::PodGone(uid) => self.capacity.remove_pod(&uid),
            }
        }
    }
}

/// A pod of somebody else: its unique id, its node and its processors.
pub type Other = (String, usize, u32);

/// What a node has left of so many processors, beside our pods that are on it and those of others.
pub fn left(node: usize, cpu: u32, ours: impl Iterator<Item = u32>, others: &[Other]) -> i64 {
    let theirs = others.iter().filter(|(_, at, _)| *at == node).map(|(_, _, cpu)| *cpu);
    i64::from(cpu) - ours.chain(theirs).map(i64::from).sum::<i64>()
}

/// It as an object.
pub fn object_of((uid, node, cpu): &Other) -> Value {
    json!({
        "metadata": { "name": uid, "namespace": "else", "uid": uid },
        "spec": { "nodeName": format!("n{node}"), "containers": [{ "resources": { "requests": { "cpu": cpu } } }] },
    })
}
