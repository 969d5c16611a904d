//! Requests for nodes, the autoscaler that meets them late, in part or not at all, and checks of them, independently of the planner.
//!
//! N1: an object of a request is created only for a committed one, and deleted only when none names it. N2: nodes are requested for
//! at most as many batches as asked for. N3: at rest no object is left that no committed request names.

use rolegate::api::ObjectKind;
use rolegate::api::provisioning::CAPACITY_BUFFER;
use rolegate::plan::provision::entry::{Phase, objects_of};
use rolegate::plan::reconcile::owned_memory::OwnedId;

use crate::machines::MachineStep;
use crate::prelude::*;

/// Maximum number of batches for which nodes are requested.
pub const AHEAD: usize = 2;

/// Returns `provision` of a coordination.
pub fn provision() -> Value {
    json!({ "after": "1s", "deadline": "20s", "maxSegmentsAhead": AHEAD })
}

/// Returns the objects of the requests in a status that are to exist.
pub fn requested(group: &Group, status: &GroupStatus) -> BTreeSet<(ObjectKind, String)> {
    let open = status.provisioning.iter().filter(|entry| Phase::of(entry) == Some(Phase::Requested));
    open.flat_map(|entry| objects_of(group, entry)).collect()
}

/// N1: checks that an object is created for a request that is committed as far as is known.
pub fn is_created(replica: &mut Replica, id: &OwnedId, group: Option<&Group>) -> Result<(), Broken> {
    replica.removing.remove(id);
    hold!(is_named(id, group), "N1: {} {} is created, and no committed request names it", id.kind.kind, id.name);
    Ok(())
}

/// N1: checks that no object of a committed request is deleted. What is deleted already is deleted to the end.
pub fn is_removed(replica: &mut Replica, id: &OwnedId, group: Option<&Group>) -> Result<(), Broken> {
    let is_new = replica.removing.insert(id.clone());
    hold!(!is_new || !is_named(id, group), "N1: {} {} is deleted, and a request names it", id.kind.kind, id.name);
    Ok(())
}

fn is_named(id: &OwnedId, group: Option<&Group>) -> bool {
    group.is_some_and(|group| requested(group, &group.status).contains(&(id.kind, id.name.clone())))
}

/// N2: checks a status that is written.
pub fn is_bounded(status: &GroupStatus) -> Result<(), Broken> {
    let open = status.provisioning.iter().filter(|entry| Phase::of(entry) == Some(Phase::Requested));
    let open: Vec<_> = open.map(|entry| entry.batch).collect();
    hold!(open.len() <= AHEAD, "N2: nodes are requested for the batches {open:?}");
    Ok(())
}

/// N3: checks what is left.
pub fn judge(server: &Server) -> Result<(), Broken> {
    let Some(stored) = server.group.as_ref().filter(|_| !server.ignored) else { return Ok(()) };
    // Those of an earlier carrier are left to the garbage collector.
    let committed = requested(&stored.group(), &stored.status);
    let own = server.requests.iter().filter(|(_, owner)| *owner == stored.uid()).map(|(object, _)| object.clone());
    let left: BTreeSet<_> = own.filter(|object| !committed.contains(object)).collect();
    hold!(left.is_empty(), "N3: {left:?} are left, and committed are {committed:?}");
    Ok(())
}

impl Server {
    /// Applies the `POST` of an object of a request; returns false when one of its name belongs to another owner.
    pub fn create_request(&mut self, owner: &str, object: (ObjectKind, String)) -> bool {
        let known = self.requests.entry(object).or_insert_with(|| owner.to_owned());
        let is_ours = known == owner;
        self.next_version();
        is_ours
    }

    /// Applies the `DELETE` of an object of a request of this owner.
    pub fn remove_request(&mut self, owner: &str, object: &(ObjectKind, String)) {
        if self.requests.get(object).is_some_and(|known| known == owner) {
            self.requests.remove(object);
            self.next_version();
        }
    }

    /// Lets the autoscaler add a node, or room on one, if nodes are requested; else it takes an empty node away.
    pub fn autoscale(&mut self, n: usize) {
        if self.machines.is_empty() {
            return;
        }
        let n = n % self.machines.len();
        if self.requests.keys().any(|(kind, _)| *kind == CAPACITY_BUFFER) {
            self.machine_step(n, MachineStep::Come);
            return self.machine_step(n, MachineStep::Room(2 + u32::try_from(n % 3).unwrap()));
        }
        let name = self.machines[n].name.clone();
        if self.pods_that(|pod| pod.spec.node_name.as_ref() == Some(&name)).is_empty() {
            self.machine_step(n, MachineStep::Go);
        }
    }
}
