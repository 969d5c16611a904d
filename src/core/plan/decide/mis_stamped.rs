//! Held pods that were created for another batch. Their affinity cannot be changed, so they stay held.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::model::{Group, HoldReason};
use crate::plan::decide::held::Held;
use crate::plan::decide::holds::missing_layer;
use crate::plan::decide::together::is_untouched;
use crate::plan::view::{GroupView, HeldPod, RoleView};

/// Returns the batch that a held pod was created for and the batch it belongs to; `None` if these are the same. A pod that is
/// older than its group, or has no number of its own, was created for no batch.
pub fn mismatch(group: &Group, pod: &HeldPod) -> Option<(Option<Arc<str>>, Option<String>)> {
    let marked = pod.stamp.batch.as_deref();
    let batch = group.batch_with_topology(pod.role(), pod.ordinal).map(|batch| batch.label());
    let differs = match (marked, batch.as_deref()) {
        (Some(marked), batch) => batch != Some(marked),
        (None, Some(_)) => pod.labelled.is_some() && pod.stamp.carrier.is_some(),
        (None, None) => false,
    };
    differs.then(|| (pod.stamp.batch.clone(), batch))
}

/// Held pods that stay held whatever their turn.
#[derive(Debug, Default)]
pub(in crate::plan) struct MisStamped {
    /// Pods that stay until they are recreated.
    pub(in crate::plan) wrong: Vec<HeldPod>,
    /// Pods that recreation would not help: the layer of their batch does not exist.
    layerless: Vec<HeldPod>,
    /// Other pods of batches that are released as a whole.
    beside: Vec<HeldPod>,
    /// The uids of all these pods.
    pub(in crate::plan) uids: HashSet<Arc<str>>,
}

/// Finds such pods. `missing_layers` lists the coordinations whose layer is missing. A role is skipped without looking at its
/// pods if none of its batches shares a domain and none of its pods has a stamp.
pub(in crate::plan) fn find(group: &Group, view: &GroupView, missing_layers: &[usize]) -> MisStamped {
    let may_differ = |(name, role): &(&String, &RoleView)| {
        let shares_domain = || group.batchings_of(name).any(|(_, batching)| batching.topology.is_some());
        !role.unknown && (role.replicas.has_stamped() || shares_domain())
    };
    let candidates = view.roles.iter().filter(may_differ).flat_map(|(_, role)| role.replicas.held(..role.desired));
    let mut wrong: Vec<_> = candidates.filter(|pod| mismatch(group, pod).is_some()).collect();
    if wrong.is_empty() {
        return MisStamped::default();
    }
    wrong.sort_by(HeldPod::in_order);
    let mut uids: HashSet<_> = wrong.iter().map(|pod| pod.pod.uid.clone()).collect();
    let wholes: BTreeSet<_> = wrong.iter().flat_map(|pod| untouched_units(group, view, pod)).collect();
    let stays = |pod: &HeldPod| untouched_units(group, view, pod).any(|whole| wholes.contains(&whole));
    let beside = if wholes.is_empty() { Vec::new() } else { view.held() };
    let beside: Vec<_> = beside.into_iter().filter(|pod| !uids.contains(&pod.pod.uid) && stays(pod)).collect();
    uids.extend(beside.iter().map(|pod| pod.pod.uid.clone()));
    let lacks_layer = |pod: &HeldPod| {
        let batch = group.batch_with_topology(pod.role(), pod.ordinal);
        batch.is_some_and(|batch| missing_layers.contains(&batch.coordination.index))
    };
    let (layerless, wrong) = wrong.into_iter().partition(lacks_layer);
    MisStamped { wrong, layerless, beside, uids }
}

/// Returns the batches of a pod that are released as a whole and of which no pod runs.
fn untouched_units<'a>(group: &'a Group, view: &'a GroupView, pod: &'a HeldPod) -> impl Iterator<Item = (usize, u32)> {
    let batches = group.batches_of(pod.role(), pod.ordinal).filter(|batch| batch.batching.is_all_or_nothing());
    let untouched = batches.filter(|batch| is_untouched(view, batch.batching, batch.index));
    untouched.map(|batch| (batch.coordination.index, batch.index))
}

impl MisStamped {
    /// Reports whether the pod stays.
    pub(in crate::plan) fn has(&self, pod: &HeldPod) -> bool {
        self.uids.contains(&pod.pod.uid)
    }

    /// Reports whether `explain` says that the layer of the coordination of a held batch is missing.
    pub(in crate::plan) fn tells_layer_of(&self, group: &Group, held: &Held) -> bool {
        let batch = self.layerless.first().and_then(|pod| group.batches_of(pod.role(), pod.ordinal).next());
        let told = batch.map(|batch| batch.coordination.index);
        told.is_some() && told == held.coordination.as_ref().map(|coordination| coordination.index)
    }

    /// Returns one entry for each reason, which names the first pod.
    pub(in crate::plan) fn explain(&self, group: &Group) -> impl Iterator<Item = Held> + use<> {
        let mut beside = &self.beside[..];
        let entries = [(HoldReason::TopologyMissing, &self.layerless), (HoldReason::StampMismatch, &self.wrong)];
        let entries = entries.map(|(reason, pods)| {
            let first = pods.first()?;
            let own = group.batches_of(first.role(), first.ordinal).next();
            let place = (own.map(|batch| batch.coordination), own.map(|batch| batch.index));
            let message = format!("pod {:?} is held: {}", &*first.pod.name, why(group, first, reason)?);
            let pods: Vec<_> = pods.iter().chain(std::mem::take(&mut beside)).cloned().collect();
            Some(Held::of(place, reason, message, pods))
        });
        entries.into_iter().flatten()
    }
}

fn why(group: &Group, pod: &HeldPod, reason: HoldReason) -> Option<String> {
    if reason == HoldReason::TopologyMissing {
        let batch = group.batch_with_topology(pod.role(), pod.ordinal)?;
        let missing = missing_layer(batch.batching)?;
        return Some(format!("{missing}, and it was made without its affinity"));
    }
    let (marked, batch) = mismatch(group, pod)?;
    let named =
        |batch: Option<&str>| batch.map_or_else(|| "no domain".to_owned(), |batch| format!("the domain of {batch}"));
    Some(format!("it was made for {} and belongs to {}", named(marked.as_deref()), named(batch.as_deref())))
}
