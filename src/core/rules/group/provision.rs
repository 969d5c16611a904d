//! Rules of requests for nodes (`whenNoFit: provision`).

use crate::model::{Batching, Coordination, Group, Provision, names};
use crate::rules::{Cause, Known, Need, Report, World};

/// Returns the coordinations that request nodes.
pub(super) fn that_request(group: &Group) -> impl Iterator<Item = (&Coordination, &Provision)> {
    group.coordinations.iter().filter_map(|coordination| Some((coordination, coordination.provision()?)))
}

/// Warns where no request is made or served, and where Kueue may make one as well.
pub(super) fn provision(group: &Group, world: &World, report: &mut Report) {
    for (coordination, provision) in that_request(group) {
        let (subject, at) = (coordination.display_name(), coordination.at.child("whenNoFit"));
        if !world.options.allowed.provision {
            let detail = if world.manifests {
                "rolegate must run with `--allow provision`: it requests nodes"
            } else {
                "has the effect of hold: rolegate runs without `--allow provision`, and requests no nodes"
            };
            report.notice(&subject, at.clone(), detail);
        }
        let kind = provision.by.kind();
        match world.known(&Need::Served(kind)) {
            Known::Present(()) => {}
            Known::Absent => {
                let detail = format!("{} are not served: no nodes are requested until they are", kind.crd_name());
                report.warn(&subject, at, Cause::NotFound, None, detail);
            }
            Known::Unknown => report.not_judged(&subject, at, &Need::Served(kind)),
        }
        coordination.batchings.iter().for_each(|batching| queued(group, (coordination, batching), world, report));
    }
}

/// Warns of each role whose pods Kueue queues: its admission checks may request nodes for them.
fn queued(group: &Group, of: (&Coordination, &Batching), world: &World, report: &mut Report) {
    let (coordination, batching) = of;
    for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
        let Some(key) = &role.workload.key else { continue };
        let Some(queue) = world.workload(key).present().and_then(|workload| workload.queue.as_deref()) else {
            continue;
        };
        let detail = format!(
            "Kueue queues the pods of {} {:?} ({}={queue}): an admission check of the queue that requests nodes asks for them by \
             workload, and rolegate requests none for pods that were admitted so; take the check off the queue",
            key.kind.as_str(),
            key.name,
            names::KUEUE_QUEUE
        );
        report.notice(&role.name, coordination.path_of(&role.name), detail);
    }
}

/// Requires that the author may create the requests: rolegate lends no rights, and nodes cost money.
pub(super) fn rights(group: &Group, world: &World, report: &mut Report) {
    let namespace = &*group.key.namespace;
    for (coordination, provision) in that_request(group) {
        let (subject, kind) = (coordination.display_name(), provision.by.kind());
        let need = Need::MayCreate { namespace: namespace.to_owned(), kind };
        let detail =
            format!("whoever sets it must be allowed to create {} in namespace {namespace:?}", kind.crd_name());
        world.right(&need, (&subject, coordination.at.child("whenNoFit")), detail, report);
    }
}
