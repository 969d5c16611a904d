//! Affinity of a pod to its own batch, and anti-affinity to the other batches of its role: KEP-75 deployTopologyConstraint,
//! KEP-30 affinityScheduling, KEP-32 topologyAffinity.
//!
//! Every selector names the group: two groups may use one coordination name. No term names a namespace, so all apply to the
//! pod's own.

use super::additions::Additions;
use super::labels::shared_label;
use super::selector::Selector;
use super::terms::{List, Term};
use crate::model::{Domain, Strength, names};
use crate::mutate::context::{Coordinated, MutationContext, TopologyLookup};

/// Weight of keeping batches apart (KEP-75).
const APART: u8 = 100;

/// Adds the terms of the pod's batch. A pod without an ordinal has no batch yet, and its affinity cannot be added later: a
/// hard batch is pinned when it is released, a soft one gets no affinity.
pub(super) fn of_batch(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, ordinal }) = context.coordinated.filter(|_| !context.is_bound()) else {
        return;
    };
    let mut asked = group
        .batchings_of(role)
        .filter_map(|(coordination, batching)| Some((coordination.display_name(), batching.topology.as_ref()?)));
    let Some((coordination, topology)) = asked.next() else { return };
    let key = match (&topology.domain, context.lookups.topology) {
        (Domain::Key(key), _) => key.as_str(),
        (Domain::Layer { .. }, TopologyLookup::Found(key)) => key,
        (Domain::Layer { topology, layer }, TopologyLookup::Missing) => {
            let what =
                format!("layer {layer:?} of ClusterTopology {topology:?}, which coordination {coordination:?} names");
            let then = "the pod is held, and has to be made again when it is: an affinity cannot be added later";
            return additions.warnings.push(format!("{what}, is not there: {then}"));
        }
    };
    let Some(ordinal) = ordinal else {
        if !topology.is_hard() {
            let why = "the pod has no ordinal at creation";
            additions
                .warnings
                .push(format!("{why}: the preference of coordination {coordination:?} does not hold for it"));
        }
        return;
    };
    let Some(batch) = group.batch_with_topology(role, ordinal) else { return };
    let meta = &context.pod.metadata;
    let own = Selector {
        group: shared_label(meta, names::KEP75_GROUP, &group.key.name),
        role: shared_label(meta, names::KEP75_ROLE, role),
        batch: batch.label(),
    };
    additions.terms.push(Term::new(List::Near(topology.strength), own.same_batch(key)));
    if topology.spread {
        additions.terms.push(Term::new(List::Far(Strength::Soft(APART)), own.other_batches_of_the_role(key)));
    }
}
