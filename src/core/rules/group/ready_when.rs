//! Rules of readiness beyond that of pods: `readyWhen`, and the soak of a canary.

use crate::model::{Coordination, Group, Progression, ReadyWhen};
use crate::rules::{Cause, Known, Need, Report, World};

/// Requires an object that its author may get, and fields that have an effect where they stand.
pub(super) fn ready_when(group: &Group, world: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        for when in coordination.ready_when() {
            right(group, coordination, when, world, report);
        }
        in_segments(coordination, report);
        in_rollout(coordination, report);
    }
}

/// Requires that rolegate may watch the object, and that the author may get it: its conditions become visible in the status.
fn right(group: &Group, coordination: &Coordination, when: &ReadyWhen, world: &World, report: &mut Report) {
    let Some(object) = when.object.as_ref() else { return };
    let (subject, path) = (coordination.display_name(), object.at.clone());
    let need = Need::MayGet { namespace: group.key.namespace.to_string(), kind: object.kind.clone() };
    let (kind, namespace) = (&object.kind, &*group.key.namespace);
    if world.known(&Need::ClusterScoped(kind.clone())) == Known::Present(()) {
        report.forbid(&subject, path, format!("must be of a kind with namespaces: {kind} has none"));
        return;
    }
    let detail = if world.options.ready_kinds.iter().any(|known| kind.is(*known)) {
        format!("whoever names it must be allowed to get {kind} in namespace {namespace:?}")
    } else {
        format!("must be of a kind that rolegate watches: `--ready-kinds` does not name {kind}")
    };
    world.right(&need, (&subject, path), detail, report);
}

fn in_segments(coordination: &Coordination, report: &mut Report) {
    let subject = coordination.display_name();
    for batching in &coordination.batchings {
        if batching.soak.is_some() && !batching.is_canary() {
            report.forbid(&subject, batching.at.child("soak"), "may be set only with `progression: Canary`");
        }
        let waits = matches!(batching.progression(), Progression::OrderedReady | Progression::Canary);
        let Some(object) = batching.ready_when.as_ref().and_then(|when| when.object.as_ref()).filter(|_| !waits) else {
            continue;
        };
        let detail = format!("has no effect: `progression: {}` waits for no readiness", batching.progression());
        report.warn(&subject, object.at.clone(), Cause::Invalid, None, detail);
    }
}

/// Requires steps for the object of a rolling update: it is looked at between them.
fn in_rollout(coordination: &Coordination, report: &mut Report) {
    let when = coordination.rolling_ready_when.as_ref();
    let Some(object) = when.and_then(|when| when.object.as_ref()) else { return };
    let has_steps = coordination.rolling_update.as_ref().is_some_and(|(update, _)| update.steps.is_some());
    if !has_steps {
        let detail = "may be set only together with `steps`: a step ends when the object has its condition";
        report.forbid(&coordination.display_name(), object.at.clone(), detail);
    }
}
