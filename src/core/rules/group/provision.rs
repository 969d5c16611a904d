//! Rules of requests for nodes (`whenNoFit: provision`).

use std::borrow::Cow;

use crate::model::provision::PROVISION_BY;
use crate::model::{Coordination, Group, Provision, ProvisionBy};
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Known, Need, Report, World};

/// Returns the coordinations that request nodes.
pub(super) fn that_request(group: &Group) -> impl Iterator<Item = (&Coordination, Cow<'_, Provision>)> {
    group.coordinations.iter().filter_map(|coordination| Some((coordination, coordination.provision()?)))
}

/// Requires a known kind, a class and times, where they have an effect; warns where no request is made or served.
pub(super) fn provision(group: &Group, world: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let (Some(written), subject) = (&coordination.written_provision, coordination.display_name()) else { continue };
        format(&subject, written, report);
        if coordination.provision().is_none() {
            let detail = "may be set only with `whenNoFit: provision`";
            report.error(&subject, written.at.clone(), Cause::Forbidden, None, detail);
        }
    }
    for (coordination, provision) in that_request(group) {
        let (subject, at) = (coordination.display_name(), coordination.at.child("whenNoFit"));
        if !world.options.allowed.provision {
            let detail = if world.manifests {
                "rolegate must run with `--allow provision`: it requests nodes"
            } else {
                "has the effect of hold: rolegate runs without `--allow provision`, and requests no nodes"
            };
            report.warn(&subject, at.clone(), Cause::Notice, None, detail);
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
    }
}

fn format(subject: &str, written: &Provision, report: &mut Report) {
    if let Some(word) = &written.unknown_by {
        let detail = supported(PROVISION_BY.iter().map(|(word, _)| *word));
        report.error(subject, written.at.child("by"), Cause::NotSupported, quoted(word), detail);
    }
    for fault in &written.malformed {
        report.error(subject, fault.at.clone(), Cause::Invalid, fault.value.clone(), fault.detail);
    }
    if written.has_class && written.by == ProvisionBy::CapacityBuffer && written.unknown_by.is_none() {
        let detail = "may be set only with `by: ProvisioningRequest`";
        report.error(subject, written.at.child("class"), Cause::Forbidden, None, detail);
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
