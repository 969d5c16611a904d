//! Nodes in racks, the changes that befall them, and the scheduler that binds pods to them.

use rolegate::api::Node;

use crate::build;
use crate::prelude::*;
use crate::server::MACHINES;

/// The label of racks on nodes.
pub const RACK: &str = "example.com/rack";
pub const HOST: &str = "kubernetes.io/hostname";
const RACKS: u32 = 3;

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Machine {
    pub name: String,
    pub rack: u32,
    /// Value of its rack label.
    pub label: String,
    /// Number of pods that it has room for.
    room: u32,
    open: bool,
    /// Whether its kubelet refuses bound pods.
    refuses: bool,
    /// Whether the scheduler binds no pod to it, for a reason that only it knows.
    filtered: bool,
    pub is_there: bool,
}

/// A change of a node or of its rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineStep {
    Cordon,
    Uncordon,
    Refuse,
    Admit,
    Room(u32),
    Go,
    Come,
    /// The label of the whole rack changes its value.
    Rename,
}

impl MachineStep {
    pub fn random(random: &mut Random) -> Self {
        match random.below(12) {
            0..=1 => Self::Cordon,
            2 => Self::Uncordon,
            3..=5 => Self::Refuse,
            6 => Self::Admit,
            7 => Self::Room(random.below(4)),
            8..=9 => Self::Go,
            10 => Self::Come,
            _ => Self::Rename,
        }
    }
}

impl Setup {
    /// Returns the nodes: two per rack. Where nodes are requested, the autoscaler has yet to make them.
    pub fn machines(&self) -> Vec<Machine> {
        let is_there = !self.wish.coordinations().iter().any(|one| one.placed == Placed::OnDemand);
        let machine = |n: u32| Machine {
            name: format!("node-{n}"),
            rack: n % RACKS,
            label: format!("rack-{}", n % RACKS),
            room: if self.tight { 2 } else { 3 },
            open: true,
            refuses: false,
            filtered: false,
            is_there,
        };
        (0..if self.racks { 2 * RACKS } else { 0 }).map(machine).collect()
    }
}

impl Machine {
    pub fn node(&self) -> Node {
        let labels = json!({ RACK: self.label, HOST: self.name });
        let node = build::node(&self.name, &labels, &json!({ "cpu": self.room.to_string(), "pods": "100" }));
        build::typed(build::with(node, &json!({ "spec": { "unschedulable": !self.open } })))
    }
}

impl Server {
    /// Applies a change to a node.
    pub fn machine_step(&mut self, n: usize, step: MachineStep) {
        if self.machines.is_empty() {
            return;
        }
        let n = n % self.machines.len();
        match step {
            MachineStep::Cordon => self.change(n, |machine| machine.open = false),
            MachineStep::Uncordon => self.change(n, |machine| machine.open = true),
            MachineStep::Refuse if self.setup.filters => self.change(n, |machine| machine.filtered = true),
            MachineStep::Refuse => self.change(n, |machine| machine.refuses = true),
            MachineStep::Admit => self.change(n, |machine| (machine.refuses, machine.filtered) = (false, false)),
            MachineStep::Room(room) => self.change(n, |machine| machine.room = room),
            MachineStep::Come => self.change(n, |machine| machine.is_there = true),
            MachineStep::Go => {
                self.change(n, |machine| machine.is_there = false);
                let name = self.machines[n].name.clone();
                let on_it = self.pods_that(|pod| pod.spec.node_name.as_ref() == Some(&name) && !pod.is_gone());
                on_it.iter().for_each(|pod| self.evict(pod));
            }
            MachineStep::Rename => {
                let (rack, label) = (self.machines[n].rack, format!("rack-{}-{}", self.machines[n].rack, self.version));
                let of_rack = |(at, machine): (usize, &Machine)| (machine.rack == rack).then_some(at);
                let of_rack: Vec<_> = self.machines.iter().enumerate().filter_map(of_rack).collect();
                of_rack.into_iter().for_each(|at| self.change(at, |machine| machine.label.clone_from(&label)));
            }
        }
    }

    fn change(&mut self, n: usize, change: impl FnOnce(&mut Machine)) {
        change(&mut self.machines[n]);
        self.next_version();
        let machine = self.machines[n].clone();
        self.tell(MACHINES, Event::Machine(machine));
    }

    /// Restores all nodes with room for everything, and adds more.
    pub fn heal_machines(&mut self) {
        for n in 0..self.machines.len() {
            self.change(n, |machine| {
                (machine.room, machine.open, machine.is_there) = (40, true, true);
                (machine.refuses, machine.filtered) = (false, false);
            });
        }
        for n in 0..self.machines.len().min(RACKS as usize) {
            let name = format!("spare-{n}");
            self.machines.push(Machine { name, ..self.machines[n].clone() });
            self.change(self.machines.len() - 1, |_| {});
        }
    }

    /// Binds a pod if a node fits; its kubelet may refuse it.
    pub fn schedule(&mut self, pod: &str) {
        if self.lacks_members(pod) {
            return;
        }
        if self.machines.is_empty() {
            return self.edit_pod(pod, |pod| pod.spec.node_name = Some("node".to_owned()));
        }
        let Some(wanted) = self.pods.get(pod).map(|pod| pod.spec.node_selector.clone()) else { return };
        let takes = |machine: &&Machine| {
            let has = |(key, value): (&String, &String)| match key.as_str() {
                RACK => *value == machine.label,
                _ => *value == machine.name,
            };
            let on_it = |pod: &&std::sync::Arc<Pod>| {
                pod.spec.node_name.as_ref() == Some(&machine.name) && pod.status.phase != "Failed"
            };
            let used = self.pods.values().filter(on_it).count();
            machine.is_there
                && machine.open
                && !machine.filtered
                && wanted.iter().all(has)
                && used < machine.room as usize
        };
        let fitting: Vec<_> = self.machines.iter().filter(takes).collect();
        // Any of them, as the scheduler may prefer.
        let Some(machine) = fitting.get(usize::try_from(self.version).unwrap() % fitting.len().max(1)) else {
            return self.find_no_node(pod);
        };
        let (name, refuses) = (machine.name.clone(), machine.refuses);
        self.edit_pod(pod, |pod| pod.spec.node_name = Some(name));
        if refuses {
            self.edit_pod(pod, |pod| {
                "Failed".clone_into(&mut pod.status.phase);
                "OutOfcpu".clone_into(&mut pod.status.reason);
            });
        }
    }

    /// Lets the scheduler say that no node takes a pod.
    fn find_no_node(&mut self, pod: &str) {
        if !self.setup.filters || self.pods.get(pod).is_none_or(|pod| pod.unschedulable().is_some()) {
            return;
        }
        let said = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/6 nodes are available: 6 others",
        });
        self.edit_pod(pod, |pod| pod.status.conditions = vec![build::typed(said)]);
    }

    /// Returns the rack of a bound pod that counts.
    pub fn rack_of(&self, pod: &str) -> Option<u32> {
        let pod = self.pods.get(pod).filter(|pod| !pod.is_gone())?;
        let node = pod.spec.node_name.as_ref()?;
        self.machines.iter().find(|machine| machine.name == *node).map(|machine| machine.rack)
    }
}
