//! Nodes in racks for groups whose batches share one, and checks of the placement, independently of the planner.
//!
//! P1: a pod goes to the rack that is committed for its batch. P2: running pods of a batch are in one rack. P3: a pod
//! is deleted to be placed again only if it has no node, and its batch has lacked nodes for the timeout, with no gate
//! of others on its pods. P4: no pod of a batch goes to a node that refused one of its pods twice within a minute. P5:
//! at rest every released pod has a node. P6: a batch that goes whole begins with all of its pods.

use rolegate::api::Node;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::model::batching::CLUSTER;
use rolegate::plan::Sight;
use rolegate::plan::placement::Capacity;

use crate::places::{Place, Places};
use crate::prelude::*;
use crate::replica::Request;
use crate::server::MACHINES;

/// The label of racks on nodes.
pub const RACK: &str = "example.com/rack";
const HOST: &str = "kubernetes.io/hostname";
const RACKS: u32 = 3;
/// Maximum time of a placed pod without a node.
const BIND_TIMEOUT: Duration = Duration::from_secs(60);
/// Minimum time for which a node is excluded.
const LEFT_OUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct Machine {
    pub name: String,
    rack: u32,
    /// Value of its rack label.
    label: String,
    /// Number of pods that it has room for.
    room: u32,
    open: bool,
    /// Whether its kubelet refuses bound pods.
    refuses: bool,
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
    /// Adds batches that share a rack each.
    pub fn in_racks(mut self, random: &mut Random) -> Self {
        let progression = random.pick(&[Progression::OrderedReady, Progression::Ordered, Progression::Parallel]);
        let sizes = [1 + random.below(2), 1 + random.below(2), 0];
        let recovers = random.percent(30);
        self.racks = true;
        self.gated_by_others = random.percent(25);
        let placed = if random.percent(40) { Placed::InCluster } else { Placed::InRack };
        // A batch that is released as a whole waits for all its pods.
        for maker in &mut self.makers {
            if let Maker::Leaders { late, .. } = maker {
                *late = false;
            }
        }
        // The scheduler of a gang of the whole batch would place it.
        let pod_groups = level(random).filter(|level| *level != GangLevel::Batch);
        self.wish = Wish::All(vec![Coordination { progression, sizes, pod_groups, recovers, placed }]);
        self
    }

    /// Returns the nodes: two per rack.
    pub fn machines(&self) -> Vec<Machine> {
        let machine = |n: u32| Machine {
            name: format!("node-{n}"),
            rack: n % RACKS,
            label: format!("rack-{}", n % RACKS),
            room: 3,
            open: true,
            refuses: false,
            is_there: true,
        };
        (0..if self.racks { 2 * RACKS } else { 0 }).map(machine).collect()
    }
}

impl Machine {
    fn node(&self) -> Node {
        let labels = json!({ RACK: self.label, HOST: self.name });
        serde_json::from_value(json!({
            "metadata": { "name": self.name, "labels": labels },
            "spec": { "unschedulable": !self.open },
            "status": {
                "allocatable": { "cpu": self.room.to_string(), "pods": "100" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        }))
        .unwrap()
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
            MachineStep::Refuse => self.change(n, |machine| machine.refuses = true),
            MachineStep::Admit => self.change(n, |machine| machine.refuses = false),
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
                *machine = Machine { room: 40, open: true, refuses: false, is_there: true, ..machine.clone() };
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
            machine.is_there && machine.open && wanted.iter().all(has) && used < machine.room as usize
        };
        let Some((name, refuses)) =
            self.machines.iter().find(takes).map(|machine| (machine.name.clone(), machine.refuses))
        else {
            return;
        };
        self.edit_pod(pod, |pod| pod.spec.node_name = Some(name));
        if refuses {
            self.edit_pod(pod, |pod| {
                "Failed".clone_into(&mut pod.status.phase);
                "OutOfcpu".clone_into(&mut pod.status.reason);
            });
        }
    }

    /// Returns the rack of a bound pod that counts.
    fn rack_of(&self, pod: &str) -> Option<u32> {
        let pod = self.pods.get(pod).filter(|pod| !pod.is_gone())?;
        let node = pod.spec.node_name.as_ref()?;
        self.machines.iter().find(|machine| machine.name == *node).map(|machine| machine.rack)
    }
}

impl Stored {
    /// Returns the batch of a replica that is placed, and its committed domain.
    fn rack_of(&self, place: Place) -> Option<(u32, Option<&str>)> {
        let all = self.wish.coordinations().into_iter().enumerate();
        let mut sharing = all.filter(|(_, one)| one.placed != Placed::Nowhere && one.sizes[place.role] > 0);
        let (index, one) = sharing.next()?;
        let (name, batch) = (format!("c{index}"), place.ordinal / one.sizes[place.role]);
        let state = self.status.coordination_state.iter().find(|state| state.name == name);
        Some((batch, state.and_then(|state| state.domains.get(&batch.to_string())).map(String::as_str)))
    }

    /// Reports whether the pods of a role are released only when there is room.
    pub fn is_placed(&self, role: usize) -> bool {
        self.rack_of(Place { role, ordinal: 0, member: 0 }).is_some()
    }

    fn goes_whole(&self) -> bool {
        self.wish.coordinations().iter().any(|one| one.placed == Placed::InCluster)
    }
}

/// P1, P4: checks the node selector of a released pod.
pub fn is_pinned(
    replica: &Replica,
    (pod, pin): (&PodRef, &Pin),
    place: Place,
    stored: &Stored,
    (places, server): (&Places, &Server),
) -> Result<(), Broken> {
    let goes_to = pin.get(RACK).map(String::as_str);
    let Some((batch, committed)) = stored.rack_of(place) else {
        hold!(pin.is_empty(), "P1: {} is bound to {pin:?}, and shares no rack", pod.name);
        return Ok(());
    };
    hold!(
        if stored.goes_whole() {
            goes_to.is_none() && committed == Some(CLUSTER)
        } else {
            goes_to.is_some() && goes_to == committed
        },
        "P1: {} goes to {goes_to:?}, and {committed:?} is committed for batch {batch}",
        pod.name
    );
    if replica.asked.contains_key(&pod.uid) {
        return Ok(());
    }
    for ((other, node), refused) in &replica.refusals {
        let is_peer = places.get(other).or(server.setup.named(other).as_ref()).and_then(|place| stored.rack_of(*place));
        let is_left_out = refused.times >= 2 && server.now < refused.last + LEFT_OUT;
        hold!(
            !is_left_out || pin.get(HOST) != Some(node) || is_peer.is_none_or(|(other, _)| other != batch),
            "P4: {} goes to {node}, which has refused {other} {} times",
            pod.name,
            refused.times
        );
    }
    Ok(())
}

/// P2: checks that a pod goes to the rack of its batch.
pub fn goes(server: &Server, pod: &Pod) -> Result<(), Broken> {
    if server.machines.is_empty() {
        return Ok(());
    }
    let (Some(group), false) = (&server.group, server.uncounted || server.ignored || server.setup.two) else {
        return Ok(());
    };
    if group.goes_whole() {
        return Ok(());
    }
    let name = pod.metadata.name.as_deref().unwrap();
    // Pods of a Deployment are renumbered when others are deleted.
    let numbered = |name: &str| server.setup.named(name);
    let Some((batch, _)) = numbered(name).and_then(|place| group.rack_of(place)) else { return Ok(()) };
    let label = pod.spec.node_selector.get(RACK);
    let Some(goes_to) = server.machines.iter().find(|machine| Some(&machine.label) == label) else { return Ok(()) };
    for (other, peer) in &server.pods {
        // A pod that was created without batches runs anywhere.
        let is_placed = peer.spec.node_selector.contains_key(RACK);
        let of_batch = numbered(other).and_then(|place| group.rack_of(place)).is_some_and(|(of, _)| of == batch);
        let is_peer = is_placed && of_batch;
        let runs_in = server.rack_of(other).filter(|_| is_peer);
        hold!(
            runs_in.is_none_or(|rack| rack == goes_to.rack),
            "P2: {name} goes to {}, and {other} of its batch runs in rack {runs_in:?}",
            goes_to.label
        );
    }
    Ok(())
}

/// P6: checks that a batch that goes whole begins with all of its pods. `requests` are those of one pass.
pub fn begin_whole(
    replica: &Replica,
    (snapshot, places): (&Snapshot, &Places),
    requests: &[Request],
    (group, stored): (&Group, &Stored),
) -> Result<(), Broken> {
    // A pod that is younger than the last read of the group waits for the next one, and keeps its place.
    let reads = requests.iter().any(|request| matches!(request, Request::Confirm));
    if reads || !stored.goes_whole() || snapshot.lets_go().is_some() {
        return Ok(());
    }
    // Pods beyond the replicas of the group are of no batch. A replica that was added to a batch of fewer waits for its turn.
    let may = |place: Place| {
        let desired = group.role(ROLES[place.role]).map_or(0, |role| role.desired);
        Some(place.ordinal) < stored.committed(place.role).map(|count| count.min(desired))
    };
    let batch = |pod: &PodRef| {
        let place = places[&*pod.name];
        stored.rack_of(place).filter(|_| may(place)).map(|(batch, _)| batch)
    };
    let going: BTreeSet<_> = requests
        .iter()
        .filter_map(|request| match request {
            Request::Release { pod, .. } => Some(&pod.uid),
            _ => None,
        })
        .collect();
    let is_on_its_way = |pod: &PodFacts| {
        !pod.held || replica.asked.contains_key(&pod.pod.uid) || replica.refused.contains(&pod.pod.uid)
    };
    let begun: BTreeSet<_> = snapshot.pods.iter().filter(|pod| is_on_its_way(pod)).map(|pod| batch(&pod.pod)).collect();
    let begins: BTreeSet<_> = snapshot
        .pods
        .iter()
        .filter(|pod| going.contains(&pod.pod.uid))
        .map(|pod| batch(&pod.pod))
        .filter(|batch| batch.is_some() && !begun.contains(batch))
        .collect();
    for pod in snapshot.pods.iter().filter(|pod| begins.contains(&batch(&pod.pod))) {
        hold!(going.contains(&pod.pod.uid), "P6: {} stays while its batch begins: {going:?}", pod.pod.name);
    }
    Ok(())
}

/// Applies the deletion of a pod for a new placement, if it is the same pod and, with `looks`, has no
/// node and no gate of others.
pub fn make_again(server: &mut Server, pod: &PodRef, looks: bool) -> Result<Answered<bool>, Broken> {
    let Some(found) = server.pods.get(&*pod.name).cloned() else { return Ok(Ok(true)) };
    if found.metadata.uid.as_deref() != Some(&*pod.uid) || found.metadata.is_deleting() {
        return Ok(Ok(true));
    }
    if looks && (found.spec.node_name.is_some() || found.has_gate(FOREIGN)) {
        return Ok(Ok(false));
    }
    if looks && found.metadata.controller().is_none() {
        return Ok(Err(refusal(409, "")));
    }
    let node = &found.spec.node_name;
    hold!(node.is_none(), "P3: {} is deleted to be placed again, and is on {node:?}", pod.name);
    hold!(!found.has_gate(FOREIGN), "P3: {} is deleted to be placed again, and others hold it", pod.name);
    server.evict(&pod.name);
    Ok(Ok(true))
}

/// P3: checks a decision to delete a pod for a new placement.
pub fn is_made_again(
    replica: &Replica,
    pod: &PodRef,
    (snapshot, places): (&Snapshot, &Places),
    stored: Option<&Stored>,
    now: Duration,
) -> Result<(), Broken> {
    let known = snapshot.pods.iter().find(|known| known.pod == *pod);
    hold!(
        known.is_some_and(|known| !known.held && !known.scheduled),
        "P3: {} is deleted to be placed again, and is {known:?}",
        pod.name
    );
    let batch = stored.and_then(|stored| stored.rack_of(places[&*pod.name])).map(|(batch, _)| batch);
    let since = batch.and_then(|batch| *replica.unbound.get(&batch)?);
    let is_late = since.is_some_and(|since| now >= since + BIND_TIMEOUT);
    hold!(is_late, "P3: {} is deleted at {now:?}, and batch {batch:?} lacks nodes since {since:?}", pod.name);
    Ok(())
}

/// Records since when batches lack nodes for released pods, as a replica sees it; `None` while others gate one of the
/// pods.
pub fn note_unbound(
    replica: &mut Replica,
    (snapshot, places): (&Snapshot, &Places),
    stored: Option<&Stored>,
    now: Duration,
) {
    // While the group is missing, nothing changes.
    let Some(stored) = stored else { return };
    let mut before = std::mem::take(&mut replica.unbound);
    for pod in snapshot.pods.iter().filter(|pod| !pod.held && !pod.scheduled) {
        if let Some((batch, _)) = stored.rack_of(places[&*pod.pod.name]) {
            let since = before.remove(&batch).flatten().unwrap_or(now);
            let since = replica.unbound.entry(batch).or_insert(Some(since));
            *since = since.filter(|_| !pod.gated);
        }
    }
}

/// Reports whether released pods wait for a node of their racks.
pub fn lacks_nodes(server: &Server) -> bool {
    !server.machines.is_empty() && server.pods.values().any(|pod| crate::nature::is_unscheduled(pod))
}

/// P5: checks that released pods have nodes, apart from those beyond the replicas of the group, which are of no batch.
pub fn judge(server: &Server) -> Result<(), Broken> {
    if server.ignored || server.group.is_none() || server.machines.is_empty() {
        return Ok(());
    }
    let places = server.places();
    let is_wanted = |pod: &String| places.get(pod).is_none_or(|place| place.ordinal < server.desired(place.role));
    let late: Vec<_> = server.pods_that(crate::nature::is_unscheduled).into_iter().filter(is_wanted).collect();
    hold!(late.is_empty(), "P5: at rest {late:?} have no node");
    Ok(())
}

/// The refusals of a pod by a node, as delivered to a replica.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    uid: String,
    times: u32,
    last: Duration,
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
