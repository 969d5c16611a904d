//! Rules on how far the pods of a set find each other.

use crate::model::clique_set::{DISCOVERY_SCOPES, WHOLE_SET};
use crate::model::{CliqueSet, FieldPath, names};
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Change, Report, World};

/// Requires a known scope, and warns where it has no effect.
pub(super) fn known(set: &CliqueSet, _: &World, report: &mut Report) {
    let Some(word) = set.discovery_scope.as_deref() else { return };
    let path = FieldPath::annotation(names::DISCOVERY_SCOPE);
    if !DISCOVERY_SCOPES.contains(&word) {
        let must = supported(DISCOVERY_SCOPES.iter().copied());
        let detail = report.with_hint(&must, word, DISCOVERY_SCOPES.iter().copied());
        report.error(names::DISCOVERY_SCOPE, path, Cause::NotSupported, quoted(word), detail);
    } else if let Some(why) = without_effect(set).filter(|_| word == WHOLE_SET) {
        report.notice(names::DISCOVERY_SCOPE, path, format!("has no effect: {why}"));
    }
}

fn without_effect(set: &CliqueSet) -> Option<&'static str> {
    let reasons = [
        (!set.discovery, "annotation `rolegate.dev/discovery` is `disabled`"),
        (!set.has_roles(), "no clique has a role"),
        (
            !set.has_standalone(),
            "every clique is in a scaling group, and pods of scaling groups find only cliques without one",
        ),
    ];
    reasons.into_iter().find_map(|(applies, why)| applies.then_some(why))
}

/// Warns of an edit that existing pods do not notice.
pub(super) fn change(change: &Change<'_, CliqueSet>, _: &World, report: &mut Report) {
    let (old, new) = (change.old, change.new);
    let edited = [
        (names::DISCOVERY, old.discovery != new.discovery),
        (
            names::DISCOVERY_SCOPE,
            old.discovery_scope != new.discovery_scope && old.joins_scopes() != new.joins_scopes(),
        ),
    ];
    let edited = edited.into_iter().find(|(_, edited)| *edited && new.has_roles());
    if let Some((annotation, _)) = edited {
        let detail = "existing pods keep the variables that they were created with; only new pods get others";
        report.notice(annotation, FieldPath::annotation(annotation), detail);
    }
}
