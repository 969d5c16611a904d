//! Limits of the size of a group. Its judgement and its reads cost all users of the webhook.

use crate::model::{FieldPath, Group};
use crate::rules::{Cause, Report, World};

const ROLES: usize = 1024;
const COORDINATIONS: usize = 256;
/// Largest number of roles in all coordinations together, each role once in each: the status has an entry for each.
const ENTRIES: usize = 4096;
/// Largest sum of the bytes of all names in a group.
const NAMES: usize = 64 << 10;

/// Limits roles, coordinations and names.
pub(super) fn size(group: &Group, _: &World, report: &mut Report) {
    let spec = FieldPath::new("spec");
    let roles_at = group.reference.as_ref().map_or_else(|| spec.child("roles"), |reference| reference.at.clone());
    let coordinations_at = group.coordinations.first().map_or_else(|| spec.clone(), |first| first.at.parent());
    for (path, count, most) in
        [(roles_at, group.roles.len(), ROLES), (coordinations_at, group.coordinations.len(), COORDINATIONS)]
    {
        if count > most {
            report.error("", path, Cause::TooMany, Some(count.to_string()), format!("must have at most {most} items"));
        }
    }
    let entries = entries(group);
    if entries > ENTRIES {
        let coordinations_at = group.coordinations.first().map_or_else(|| spec.clone(), |first| first.at.parent());
        let detail = format!("all coordinations together must name at most {ENTRIES} roles, each once in each");
        report.error("", coordinations_at, Cause::TooMany, Some(entries.to_string()), detail);
    }
    if names(group) > NAMES {
        let detail = format!("all names in it may not be more than {NAMES} bytes together");
        report.error("", spec, Cause::TooLong, None, detail);
    }
}

/// Reports whether a group is refused for its size alone: nothing is read for it.
pub(super) fn is_too_large(group: &Group) -> bool {
    group.roles.len() > ROLES
        || group.coordinations.len() > COORDINATIONS
        || entries(group) > ENTRIES
        || names(group) > NAMES
}

fn entries(group: &Group) -> usize {
    group.coordinations.iter().map(|coordination| coordination.role_names().len()).sum()
}

/// Returns the bytes of all names. An empty one counts as one byte.
fn names(group: &Group) -> usize {
    let roles = group.roles.iter().flat_map(|role| std::iter::once(&role.name).chain(&role.dependencies));
    let coordinations = group.coordinations.iter().flat_map(|coordination| {
        let sized = coordination.batchings.iter().flat_map(|batching| batching.sizes.keys());
        coordination.name.iter().chain(coordination.roles.iter().flatten()).chain(sized)
    });
    roles.chain(coordinations).map(|name| name.len().max(1)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::rbg::ROLE_BASED_GROUP;
    use crate::rules::{needs_of_group, read_group};

    fn group(roles: usize, name: &str, dependencies: &Value) -> Group {
        let role = |number| json!({ "name": format!("{name}{number}"), "dependencies": dependencies });
        let sizes: serde_json::Map<_, _> = (0..roles).map(|number| (format!("{name}{number}"), json!(1))).collect();
        let segments = json!({ "strategy": { "segmentPlacement": { "segmentSize": sizes } } });
        let roles: Vec<_> = (0..roles).map(role).collect();
        let object = json!({ "metadata": { "name": "pd" }, "spec": { "roles": roles, "coordination": [segments] } });
        read_group(ROLE_BASED_GROUP, &object.to_string(), &()).unwrap()
    }

    fn found(group: &Group) -> Vec<String> {
        crate::rules::judge_group(group, None, &World::default()).errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn as_many_roles_as_may_be_are_judged_and_one_more_is_refused_with_nothing_else_said() {
        assert_eq!(found(&group(ROLES, "r", &json!([]))), Vec::<String>::new());
        let beyond = group(ROLES + 1, "r", &json!([]));
        assert_eq!(found(&beyond), ["spec.roles: Too many: 1025: must have at most 1024 items"]);
        assert!(needs_of_group(&beyond).is_empty());
    }

    #[test]
    fn the_roles_of_all_coordinations_are_counted_together() {
        let of = |coordinations: usize, roles: usize| {
            let sizes: serde_json::Map<_, _> = (0..roles).map(|number| (format!("r{number}"), json!(1))).collect();
            let entry = |number| json!({ "name": format!("c{number}"), "strategy": { "segmentPlacement": { "segmentSize": sizes } } });
            let entries: Vec<_> = (0..coordinations).map(entry).collect();
            let roles: Vec<_> = (0..roles).map(|number| json!({ "name": format!("r{number}") })).collect();
            let object = json!({ "metadata": { "name": "pd" }, "spec": { "roles": roles, "coordination": entries } });
            read_group(ROLE_BASED_GROUP, &object.to_string(), &()).unwrap()
        };
        assert_eq!(found(&of(16, 256)), Vec::<String>::new());
        let too_many = "Too many: 4112: all coordinations together must name at most 4096 roles, each once in each";
        assert_eq!(found(&of(16, 257)), [format!("spec.coordination: {too_many}")]);
        assert!(needs_of_group(&of(16, 257)).is_empty());
    }

    #[test]
    fn names_are_counted_wherever_they_stand() {
        let long = "all names in it may not be more than 65536 bytes together";
        // Each name occurs twice.
        assert_eq!(found(&group(700, &"n".repeat(43), &json!([]))), Vec::<String>::new());
        assert_eq!(found(&group(700, &"n".repeat(45), &json!([]))), [format!("spec: Too long: {long}")]);
        let empty = group(2, "r", &json!(vec![""; NAMES / 2]));
        assert_eq!(found(&empty), [format!("spec: Too long: {long}")]);
    }
}
