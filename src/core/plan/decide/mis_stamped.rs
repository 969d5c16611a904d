//! Held pods that were created for another batch, or before their group. Their affinity and their variables cannot be changed, so
//! they stay held.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::model::{Group, HoldReason, names};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::held::Held;
use crate::plan::decide::holds::missing_layer;
use crate::plan::decide::together::is_untouched;
use crate::plan::view::{GroupView, HeldPod, PodRef, RoleView};

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
    /// The uids of those that lack the variables of their group.
    early: HashSet<Arc<str>>,
    /// Pods that recreation would not help: the layer of their batch does not exist.
    layerless: Vec<HeldPod>,
    /// Other pods of batches that are released as a whole.
    beside: Vec<HeldPod>,
    /// The uids of all these pods.
    pub(in crate::plan) uids: HashSet<Arc<str>>,
}

/// Reports whether a held pod was created before its group, and lacks the variables that the group gives.
fn is_unequipped(group: &Group, pod: &HeldPod, discovers: bool) -> bool {
    let numbered = pod.identity.ordinal.is_some();
    let equips = |role| discovers || group.equips(role, pod.stamp.engine.as_deref(), numbered);
    pod.stamp.is_early() && group.role(pod.role()).is_some_and(equips)
}

/// Finds such pods. A role is skipped without looking at its pods if none of its batches shares a domain, none of its pods has a
/// stamp, and the group gives them no variables.
pub(in crate::plan) fn find(group: &Group, view: &GroupView, context: DecisionContext<'_>) -> MisStamped {
    let (missing_layers, discovers) = (context.missing_layers, group.discovery && !context.discovery_is_off);
    let may_differ = |(name, role): &(&String, &RoleView)| {
        let shares_domain = || group.batchings_of(name).any(|(_, batching)| batching.topology.is_some());
        let equips = || discovers || group.role(name).is_some_and(|role| role.engine.is_some());
        !role.unknown && (role.replicas.has_stamped() || shares_domain() || equips())
    };
    let candidates = view.roles.iter().filter(may_differ).flat_map(|(_, role)| role.replicas.held(..role.desired));
    let (early, others): (Vec<_>, Vec<_>) = candidates.partition(|pod| is_unequipped(group, pod, discovers));
    let mut wrong: Vec<_> = others.into_iter().filter(|pod| mismatch(group, pod).is_some()).collect();
    wrong.extend(early.iter().cloned());
    let early: HashSet<_> = early.into_iter().map(|pod| pod.pod.uid.clone()).collect();
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
    let is_early = |pod: &HeldPod| early.contains(&pod.pod.uid);
    let (layerless, wrong) = wrong.into_iter().partition(|pod| !is_early(pod) && lacks_layer(pod));
    MisStamped { wrong, early, layerless, beside, uids }
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

    /// Returns the pods to recreate, each with whether it lacks the variables of its group.
    pub(in crate::plan) fn to_recreate(&self) -> Vec<(PodRef, bool)> {
        self.wrong.iter().map(|pod| (pod.pod.clone(), self.early.contains(&pod.pod.uid))).collect()
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
            let is_early = |pod: &&HeldPod| self.early.contains(&pod.pod.uid);
            let why = if is_early(&first) {
                unequipped(group, pods.iter().filter(is_early))
            } else {
                why(group, first, reason)?
            };
            let message = format!("pod {:?} is held: {why}", &*first.pod.name);
            let pods: Vec<_> = pods.iter().chain(std::mem::take(&mut beside)).cloned().collect();
            Some(Held::of(place, reason, message, pods))
        });
        entries.into_iter().flatten()
    }
}

/// The most pods that a command names one by one.
const NAMED: usize = 20;

/// Tells of pods that lack the variables of their group, with the command that has their workloads make them anew. It selects no
/// pod with a node, and none that was released: these have the label of their segment.
fn unequipped<'a>(group: &Group, pods: impl Iterator<Item = &'a HeldPod>) -> String {
    let (ours, others): (Vec<_>, Vec<_>) = pods.partition(|pod| pod.identity.named_by_us);
    let names: Vec<_> = others.iter().take(NAMED).map(|pod| &*pod.pod.name).collect();
    let roles: BTreeSet<_> = ours.iter().map(|pod| pod.role()).collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let which = if ours.is_empty() {
        names.join(" ")
    } else {
        format!(
            "-l '{}={},{} in ({roles}),!{}' --field-selector spec.nodeName=",
            names::GROUP,
            group.key.name,
            names::ROLE,
            names::SEGMENT
        )
    };
    format!(
        "it was made before its group, and lacks the variables that the group gives: with `--allow recovery` or \
         `--recreate-mis-stamped` rolegate recreates it; by hand `kubectl delete pod -n {} {which}` does",
        group.key.namespace
    )
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

#[cfg(test)]
#[path = "mis_stamped_tests.rs"]
mod tests;
