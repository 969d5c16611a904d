//! Mutation of a pod at creation, as a table of steps: everything that cannot be added later.

use super::additions::Additions;
use super::{Patch, affinity, discovery, engine, labels, membership, subgroup};
use crate::api::Pod;
use crate::model::{names, pinned, queued};
use crate::mutate::context::{Coordinated, GroupLookup, Lookups, MutationContext, PodSettings, Subject};

/// The result of the mutation.
#[derive(Debug, Default)]
pub struct PodMutation {
    /// Empty when the pod needs no change.
    pub patch: Patch,
    /// Shown to the creator of the pod.
    pub warnings: Vec<String>,
    /// True when the pod has the gate afterwards.
    pub held: bool,
    /// Value of the annotation with the holder of the pod.
    pub held_by: Option<String>,
}

type Step = fn(&MutationContext<'_>, &mut Additions);

/// The steps, in the order of their warnings.
const STEPS: &[Step] = &[
    hold,
    unpin,
    place,
    queue,
    labels::of_batch,
    labels::of_rollout,
    affinity::of_batch,
    membership::of_batch,
    subgroup::of_role,
    discovery::of_clique,
    discovery::of_group,
    engine::of_pod,
];

/// Mutates a pod at creation. Pure: the same input gives the same patch, also on a dry run, and a mutated pod gives an empty
/// one. A foreign pod stays as it is.
pub fn mutate_pod(pod: &Pod, subject: &Subject, lookups: &Lookups<'_>, settings: &PodSettings) -> PodMutation {
    if subject.is_foreign() {
        return PodMutation {
            warnings: engine::engine_of_foreign(pod).into_iter().collect(),
            ..PodMutation::default()
        };
    }
    let context = MutationContext::new(pod, subject, lookups, settings);
    let mut additions = Additions::default();
    for step in STEPS {
        step(&context, &mut additions);
    }
    let held_by = additions.held_by.clone();
    let (patch, warnings) = additions.into_patch(pod);
    PodMutation { patch, warnings, held: held_by.is_some(), held_by }
}

/// Gates every pod of a batched role. When in doubt a pod is gated: a gate can be removed later, not added. No ordinal and no
/// count exempts a pod. Exempt are only a pod with a node, since the API server refuses the pair, and a pod that its group
/// can never hold.
fn hold(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(by) = held_by(context, additions) else { return };
    if context.is_bound() {
        additions.warnings.push("spec.nodeName is set: the pod is bound at creation and is not held".to_owned());
        return;
    }
    additions.held_by = Some(by);
    additions.carrier = context.coordinated.map(|coordinated| coordinated.group.carrier.kind);
    let identity = context.subject.identity.as_ref();
    additions.born_as =
        identity.and_then(|identity| Some(format!("{}/{}", identity.group.name, identity.role.as_deref()?)));
}

/// Returns the holder of the pod: `<group>/<coordination>`, or the group alone while it lacks the pod's role or does not
/// exist.
fn held_by(context: &MutationContext<'_>, additions: &mut Additions) -> Option<String> {
    let identity = context.subject.identity.as_ref()?;
    let (role, name) = (context.subject.role()?, &identity.group.name);
    match (context.lookups.group, context.coordinated) {
        (GroupLookup::Absent, _) => Some(name.to_string()),
        (GroupLookup::Found(_), None) => {
            let holds = identity.named_by_us && !context.settings.frees_unknown_roles;
            let what = if holds { "held until the group has it" } else { "not coordinated" };
            additions.warnings.push(format!("role {role:?} is not in group {name:?}: the pod is {what}"));
            holds.then(|| name.to_string())
        }
        (GroupLookup::Found(_), Some(Coordinated { group, .. })) => {
            let (coordination, _) = group.batchings_of(role).next()?;
            // A gate that somebody else added stays until the loop removes it.
            let is_held = context.pod.has_gate(names::GATE) || !context.lookups.is_certain;
            let holds = is_held || !group.never_holds(identity);
            holds.then(|| format!("{name}/{}", coordination.display_name()))
        }
    }
}

/// Unpins a copy of a released pod, as from a backup: the copy gets its own place.
fn unpin(context: &MutationContext<'_>, additions: &mut Additions) {
    let pod = context.pod;
    let Some(recorded) = pod.metadata.annotation(names::PINNED) else { return };
    let is_ours = |key: &str, value: &str| pod.spec.node_selector.get(key).is_some_and(|found| found == value);
    let ours = pinned::read(recorded).filter(|(key, value)| is_ours(key, value)).map(|(key, _)| key.to_owned());
    additions.pinned = Some(ours.collect());
}

/// Gates every pod whose PodGroup asks for placement, or that asks itself while its PodGroup does not exist. A pod held for
/// its group is placed with it.
fn place(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(key) = &context.subject.pod_group else { return };
    let says_so = || context.pod.metadata.annotation(names::PLACE) == Some("enabled");
    let asks = context.lookups.pod_group.map_or_else(says_so, |tree| tree.place);
    if !asks {
        return;
    }
    let name = &key.name;
    let mut no_effect = |why: &str| {
        let warning = format!("annotation {} of PodGroup {name:?} has no effect on this pod: {why}", names::PLACE);
        additions.warnings.push(warning);
    };
    if !context.settings.places {
        no_effect("nothing is placed here (--placement off)");
    } else if additions.held_by.is_some() {
        no_effect("it is held for its group");
    } else if context.is_bound() {
        no_effect("spec.nodeName is set");
    } else {
        additions.labels.push((names::PLACED_BY.into(), names::label_value(name)));
        additions.held_by = Some(format!("podgroup/{name}"));
    }
}

/// Makes Kueue wait for the gate, and then take a quota pod by pod: otherwise later batches would hold quota that an earlier
/// one waits for. Where rolegate places the batch, Kueue comes first, since it may choose the nodes. An annotation of the
/// user stays.
fn queue(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, .. }) = context.coordinated else { return };
    let meta = &context.pod.metadata;
    let is_placed = || {
        let places = context.settings.places && group.batchings_of(role).any(|(_, own)| own.placed_in().is_some());
        places || additions.labels.iter().any(|(key, _)| key == names::PLACED_BY)
    };
    let topology =
        group.batchings_of(role).find(|(_, own)| own.topology.is_some()).map(|(coordination, _)| coordination);
    if let (Some(key), Some(coordination)) = (queued::asks_for_topology(meta), topology) {
        additions.warnings.push(format!(
            "annotation {key} asks Kueue for a place, and coordination {:?} has one for the batch: where they differ, the pod \
             does not run",
            coordination.display_name()
        ));
    }
    let says_nothing = meta.annotation(names::KUEUE_GATED_BY).is_none_or(str::is_empty);
    if additions.held_by.is_some() && says_nothing && queued::is_queued_alone(meta) && !is_placed() {
        additions.annotations.push((names::KUEUE_GATED_BY.into(), names::GATE.to_owned()));
    }
}
