//! Groups whose batches share a rack, and checks of the placement, independently of the planner.
//!
//! P1: a pod goes to the rack that is committed for its batch. P2: running pods of a batch are in one rack. P3: a pod
//! is deleted to be placed again only if it has no node, and its batch has lacked nodes for the timeout, with no gate
//! of others on its pods. P4: no pod of a batch goes to a node that refused one of its pods twice within a minute. P5:
//! at rest every released pod has a node. P6: a batch that goes whole begins with all of its pods. P7: no batch begins while
//! another controller gates one of its pods. P8: a pod of a Deployment is deleted because its batch is in another rack only while
//! the pods of its role are ready, and at rest no batch is in two racks.

use rolegate::model::batching::CLUSTER;

use crate::machines::{HOST, RACK};
use crate::places::{Place, Places};
use crate::prelude::*;
use crate::replica::Request;
use crate::server::is_held;

/// Maximum time of a placed pod without a node.
const BIND_TIMEOUT: Duration = Duration::from_secs(60);
/// Minimum time for which a node is excluded.
const LEFT_OUT: Duration = Duration::from_secs(60);

impl Setup {
    /// Adds batches that share a rack each.
    pub fn in_racks(mut self, random: &mut Random) -> Self {
        let progression = random.pick(&[Progression::OrderedReady, Progression::Ordered, Progression::Parallel]);
        let mut sizes = [1 + random.below(2), 1 + random.below(2), 0];
        let recovers = random.percent(30);
        self.racks = true;
        self.filters = recovers;
        self.gated_by_others = random.percent(25);
        let placed = if random.percent(40) {
            Placed::InCluster
        } else {
            random.pick(&[Placed::InRack, Placed::OnDemand, Placed::OnDemand])
        };
        // Each batch fills its rack, and its pods have no numbers of their own.
        if placed == Placed::InRack && !self.gated_by_others && progression != Progression::OrderedReady {
            self.makers[..2].fill(Maker::Alike);
            (self.tight, sizes) = (true, [2, 2, 0]);
        }
        // A batch that is released as a whole waits for all its pods.
        for maker in &mut self.makers {
            if let Maker::Leaders { late, .. } = maker {
                *late = false;
            }
        }
        // The scheduler of a gang of the whole batch would place it.
        let pod_groups = level(random).filter(|level| *level != GangLevel::Batch);
        let mut all = vec![Coordination { progression, sizes, pod_groups, recovers, placed }];
        if placed == Placed::InCluster && random.percent(50) {
            let sizes = [sizes[0], 0, 1 + random.below(2)];
            all.push(Coordination { progression, sizes, pod_groups: None, recovers: false, placed });
        }
        self.wish = Wish::All(all);
        self
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

    /// Returns the rack of the batch of a replica.
    pub fn home_of(&self, place: Place) -> Option<String> {
        let (_, domain) = self.rack_of(place)?;
        domain.filter(|domain| *domain != CLUSTER).map(str::to_owned)
    }

    /// Reports whether the pods of a role are released only when there is room.
    pub fn is_placed(&self, role: usize) -> bool {
        self.rack_of(Place { role, ordinal: 0, member: 0 }).is_some()
    }

    fn goes_whole(&self) -> bool {
        self.wish.coordinations().iter().any(|one| one.placed == Placed::InCluster)
    }
}

/// Reports whether the batch of a pod has not begun, and waits for gates of other controllers.
pub fn waits_for_gates(
    place: Place,
    (snapshot, places): (&Snapshot, &Places),
    stored: &Stored,
    desired: impl Fn(usize) -> u32,
) -> bool {
    let batched = stored.wish.of_role(place.role).into_iter().filter(|one| one.pod_groups.is_some());
    batched.into_iter().any(|one| {
        let batch = place.ordinal / one.sizes[place.role];
        let is_of_it = |other: &&Arc<PodFacts>| {
            let Place { role, ordinal, .. } = places[&*other.pod.name];
            one.sizes[role] > 0 && ordinal / one.sizes[role] == batch && ordinal < desired(role)
        };
        let pods = || snapshot.pods.iter().filter(is_of_it);
        pods().all(|pod| pod.held) && pods().any(|pod| pod.foreign_gate.is_some())
    })
}

/// P7: checks that the batch of a released pod has begun, or that no other controller gates one of its pods.
pub fn begins_ungated(
    pod: &PodRef,
    place: Place,
    (snapshot, places): (&Snapshot, &Places),
    stored: &Stored,
) -> Result<(), Broken> {
    let Some((batch, _)) = stored.rack_of(place) else { return Ok(()) };
    let group = snapshot.claims.as_ref().map(|claims| &claims.group);
    let is_desired = |place: Place| {
        group.and_then(|group| group.role(ROLES[place.role])).is_some_and(|role| place.ordinal < role.desired)
    };
    let of_batch = |other: &&Arc<PodFacts>| {
        let place = places[&*other.pod.name];
        is_desired(place) && stored.rack_of(place).is_some_and(|(other, _)| other == batch)
    };
    let pods: Vec<_> = snapshot.pods.iter().filter(of_batch).collect();
    let has_begun = pods.iter().any(|other| !other.held) || !is_desired(place);
    let gated = pods.iter().find(|other| other.foreign_gate.is_some() && !has_begun);
    hold!(
        gated.is_none(),
        "P7: {} goes, and another controller gates {:?}",
        pod.name,
        gated.map(|gated| &gated.pod.name)
    );
    Ok(())
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
    let desired = |role: usize| group.role(ROLES[role]).map_or(0, |role| role.desired);
    // Batches of two coordinations go together where they share replicas.
    let batch = |pod: &PodRef| {
        let place = places[&*pod.name];
        let (batch, _) = stored.rack_of(place).filter(|_| may(place))?;
        let own = stored.wish.coordinations().iter().position(|one| one.sizes[place.role] > 0)?;
        let shares = stored.wish.of_role(0).first().is_some_and(|one| batch * one.sizes[0] < desired(0));
        Some((batch, own * usize::from(!shares)))
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

/// P8: checks a decision to delete a pod since its batch is in another rack.
pub fn is_gathered(pod: &PodRef, (snapshot, places): (&Snapshot, &Places)) -> Result<(), Broken> {
    let role = places[&*pod.name].role;
    let of_role = snapshot.pods.iter().filter(|other| places[&*other.pod.name].role == role);
    let down: Vec<_> = of_role.filter(|other| !other.ready).map(|other| &other.pod.name).collect();
    hold!(down.is_empty(), "P8: {} is deleted for its batch, and {down:?} are not ready", pod.name);
    Ok(())
}

/// Reports whether a pod went without a place.
pub fn has_unplaced(server: &Server) -> bool {
    server.pods.values().any(|pod| !is_held(pod) && !pod.spec.node_selector.contains_key(RACK))
}

/// P8: checks that the pods of a Deployment are in the racks of their batches.
fn are_together(server: &Server) -> Result<(), Broken> {
    let Some(group) = server.group.as_ref().filter(|group| !group.goes_whole()) else { return Ok(()) };
    let mut racks: BTreeMap<(usize, u32), BTreeMap<u32, Vec<String>>> = BTreeMap::new();
    for (pod, place) in server.places() {
        let is_of_it = server.setup.makers[place.role] == Maker::Alike && place.ordinal < server.desired(place.role);
        // A pod that was created without batches runs anywhere.
        let is_placed = server.pods[&pod].spec.node_selector.contains_key(RACK);
        let batch = group.rack_of(place).filter(|_| is_of_it && is_placed);
        if let Some(((batch, _), rack)) = batch.zip(server.rack_of(&pod)) {
            racks.entry((place.role, batch)).or_default().entry(rack).or_default().push(pod);
        }
    }
    let split = racks.iter().find(|(_, racks)| racks.len() > 1);
    hold!(split.is_none(), "P8: at rest a batch is in two racks: {split:?}");
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
    are_together(server)
}
