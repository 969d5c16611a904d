//! Rules on single values.

use crate::api::rbg::ROLE_BASED_GROUP;
use crate::model::batching::{BATCH_MODES, Choice, SEGMENT_PROGRESSIONS};
use crate::model::pod_groups::{GANG_LEVELS, POD_GROUP_POLICIES};
use crate::model::topology::{AFFINITY_STRATEGIES, CONSTRAINT_MODES};
use crate::model::when_no_fit::WHEN_NO_FIT;
use crate::model::{BatchKind, Batching, Coordination, Domain, FieldPath, Group, PodGroupPolicy, Strength};
use crate::rules::names::label_key_fault;
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Report, World};

fn batchings(group: &Group) -> impl Iterator<Item = (&Coordination, &Batching)> {
    group.coordinations.iter().flat_map(|coordination| coordination.batchings.iter().map(move |b| (coordination, b)))
}

/// Requires that every role named in a coordination exists in the group.
pub(super) fn roles_exist(group: &Group, _: &World, report: &mut Report) {
    // The roles are in another object, which does not exist (yet).
    if group.reference.as_ref().is_some_and(|reference| !reference.found) {
        return;
    }
    let is_empty_rbg = group.roles.is_empty() && group.carrier.kind.kind == ROLE_BASED_GROUP.kind;
    if is_empty_rbg && group.coordinations.iter().any(|coordination| !coordination.role_names().is_empty()) {
        // An excerpt, like KEP-30's first example: it makes no pods that could be held for ever.
        let path = FieldPath::new("spec").child("roles");
        report.warn("", path, Cause::Notice, None, "the group has no roles, so that nothing is coordinated");
        return;
    }
    let names: Vec<_> = group.roles.iter().map(|role| role.name.as_str()).collect();
    let owner = match &group.reference {
        Some(reference) => format!("must name a role of RoleBasedGroup {:?}", reference.name),
        None => "must name an entry of `spec.roles`".to_owned(),
    };
    for coordination in &group.coordinations {
        let roles_at = coordination.at.child("roles");
        let listed = coordination.roles.iter().flatten().enumerate().map(|(index, role)| (role, roles_at.index(index)));
        let sized = coordination
            .batchings
            .iter()
            .flat_map(|batching| batching.sizes.keys().map(|role| (role, batching.sizes_at.key(role.as_str()))));
        for (role, path) in listed.chain(sized).filter(|(role, _)| group.role(role).is_none()) {
            let detail = report.with_hint(&owner, role, names.iter().copied());
            report.error(role, path, Cause::NotFound, quoted(role), detail);
        }
    }
}

/// Requires sizes, ratios and steps from 1 to the largest number of replicas.
pub(super) fn sizes_are_positive(group: &Group, _: &World, report: &mut Report) {
    for (_, batching) in batchings(group) {
        for (role, size) in &batching.sizes {
            let detail = match *size {
                ..1 => "must be greater than or equal to 1",
                1..=2_147_483_647 => continue,
                _ => "must be less than or equal to 2147483647",
            };
            let path = batching.sizes_at.key(role.as_str());
            report.error(role, path, Cause::Invalid, Some(size.to_string()), detail);
        }
    }
}

/// Requires a known word for the progression or batch mode.
pub(super) fn progression_is_known(group: &Group, _: &World, report: &mut Report) {
    for (coordination, batching) in batchings(group) {
        let Choice::Unknown(word) = &batching.progression else { continue };
        let words = if batching.kind == BatchKind::AffinityScheduling { BATCH_MODES } else { SEGMENT_PROGRESSIONS };
        let detail = supported(words.iter().map(|(word, _)| *word));
        let path: FieldPath = batching.progression_at.clone();
        report.error(&coordination.display_name(), path, Cause::NotSupported, quoted(word), detail);
    }
}

/// Requires a known word for `constraintMode` (KEP-75).
pub(super) fn constraint_mode(group: &Group, _: &World, report: &mut Report) {
    strength_is_known(group, BatchKind::RollingDeploy, CONSTRAINT_MODES, report);
}

/// Requires a known word for `topologyAffinity.strategy` (KEP-32, future enhancements).
pub(super) fn affinity_strategy(group: &Group, _: &World, report: &mut Report) {
    strength_is_known(group, BatchKind::SegmentPlacement, AFFINITY_STRATEGIES, report);
}

fn strength_is_known(group: &Group, kind: BatchKind, words: &[(&str, Strength)], report: &mut Report) {
    for (coordination, batching) in batchings(group).filter(|(_, batching)| batching.kind == kind) {
        let unknown = batching.topology.as_ref().and_then(|topology| topology.unknown_strength.as_ref());
        let Some((word, path)) = unknown else { continue };
        let detail = supported(words.iter().map(|(word, _)| *word));
        report.error(&coordination.display_name(), path.clone(), Cause::NotSupported, quoted(word), detail);
    }
}

/// Requires topology keys that are label keys.
pub(super) fn label_keys(group: &Group, _: &World, report: &mut Report) {
    for (coordination, batching) in batchings(group) {
        let Some(topology) = &batching.topology else { continue };
        let Domain::Key(key) = &topology.domain else { continue };
        if let Some(fault) = label_key_fault(key) {
            let path = topology.domain_at.clone();
            report.error(&coordination.display_name(), path, Cause::Invalid, quoted(key), fault);
        }
    }
}

/// Requires that `podGroupPolicy` names one known scheduler (KEP-75) and a known level.
pub(super) fn pod_group_policy(group: &Group, _: &World, report: &mut Report) {
    for (coordination, batching) in batchings(group) {
        let Some(gangs) = &batching.gangs else { continue };
        let name = coordination.display_name();
        if gangs.policy == PodGroupPolicy::Unknown {
            let detail = format!("must set exactly one of {}", POD_GROUP_POLICIES.join(", "));
            report.error(&name, gangs.at.clone(), Cause::Invalid, None, detail);
        }
        if let Some(word) = &gangs.unknown_level {
            let detail = supported(GANG_LEVELS.iter().map(|(word, _)| *word));
            report.error(&name, gangs.at.child("level"), Cause::NotSupported, Some(word.clone()), detail);
        }
        for fault in &gangs.malformed {
            report.error(&name, fault.at.clone(), Cause::Invalid, fault.value.clone(), fault.detail);
        }
    }
}

/// Requires a known word for `whenNoFit`, and warns where it has no effect: it applies only to batches that must share a
/// domain or go whole.
pub(super) fn when_no_fit(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let Some(word) = coordination.when_no_fit.as_deref().filter(|word| !word.is_empty()) else { continue };
        let (name, path) = (coordination.display_name(), coordination.at.child("whenNoFit"));
        if !WHEN_NO_FIT.iter().any(|(known, _)| *known == word) {
            let detail = supported(WHEN_NO_FIT.iter().map(|(known, _)| *known));
            report.error(&name, path, Cause::NotSupported, quoted(word), detail);
        } else if coordination.batching().is_none_or(|batching| batching.placed_in().is_none()) {
            let would_place = |batching: &Batching| batching.whole || batching.hard_topology().is_some();
            let is_gang = coordination.batching().is_some_and(would_place);
            let why = if is_gang {
                "its PodGroups are placed by their scheduler"
            } else {
                "its batches neither share a domain nor go whole"
            };
            report.warn(&name, path, Cause::Invalid, quoted(word), format!("has no effect: {why}"));
        }
    }
}
