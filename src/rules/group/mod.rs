//! Rules of groups: RoleBasedGroup and RoleCoordination (SPEC §2.1).

mod conflicts;
mod values;

use super::Rule;
use crate::model::Group;

/// One row for each rule.
pub(super) const RULES: &[Rule<Group>] = &[
    Rule { id: "coordination-role-unknown", check: values::roles_exist },
    Rule { id: "segment-size", check: values::sizes_are_positive },
    Rule { id: "progression", check: values::progression_is_known },
    Rule { id: "segment-size-conflict", check: conflicts::sizes_agree },
    Rule { id: "progression-conflict", check: conflicts::progressions_agree },
];
