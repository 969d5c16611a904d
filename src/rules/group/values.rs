//! Rules that look at one coordination by itself.

use crate::model::batching::{BATCH_MODES, BatchKind, Choice, SEGMENT_PROGRESSIONS};
use crate::model::{FieldPath, Group};
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Report, World};

/// Every role named anywhere in a coordination exists in the group.
pub(super) fn roles_exist(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let roles_at = coordination.at.child("roles");
        let listed = coordination.roles.iter().flatten().enumerate().map(|(index, role)| (role, roles_at.index(index)));
        let sized = coordination
            .batchings
            .iter()
            .flat_map(|batching| batching.sizes.keys().map(|role| (role, batching.sizes_at.key(role.as_str()))));
        for (role, path) in listed.chain(sized).filter(|(role, _)| group.role(role).is_none()) {
            let names: Vec<_> = group.roles.iter().map(|role| role.name.as_str()).collect();
            report.error(role, path, Cause::NotFound, quoted(role), must_name_a_role(role, &names));
        }
    }
}

fn must_name_a_role(role: &str, names: &[&str]) -> String {
    match closest(role, names) {
        Some(name) => format!("must name an entry of `spec.roles`; did you mean {name:?}?"),
        None => "must name an entry of `spec.roles`".to_owned(),
    }
}

/// The name a typing mistake away, if there is one.
fn closest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let near = names.iter().map(|name| (strsim::damerau_levenshtein(word, name), *name));
    near.filter(|(distance, name)| *distance <= (name.len() / 3).max(1)).min().map(|(_, name)| name)
}

/// Sizes, ratios and steps are at least 1.
pub(super) fn sizes_are_positive(group: &Group, _: &World, report: &mut Report) {
    for batching in group.coordinations.iter().flat_map(|coordination| &coordination.batchings) {
        for (role, size) in batching.sizes.iter().filter(|(_, size)| **size < 1) {
            let path = batching.sizes_at.key(role.as_str());
            report.error(role, path, Cause::Invalid, Some(size.to_string()), "must be greater than or equal to 1");
        }
    }
}

/// The progression, or batch mode, is a known word.
pub(super) fn progression_is_known(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        for batching in &coordination.batchings {
            let Choice::Unknown(word) = &batching.progression else { continue };
            let words = if batching.kind == BatchKind::AffinityScheduling { BATCH_MODES } else { SEGMENT_PROGRESSIONS };
            let detail = supported(words.iter().map(|(word, _)| *word));
            let path: FieldPath = batching.progression_at.clone();
            report.error(&coordination.display_name(), path, Cause::NotSupported, quoted(word), detail);
        }
    }
}
