//! Rules of groups: RoleBasedGroup and RoleCoordination (SPEC §2.1).

mod conflicts;
mod values;

use super::Rule;
use crate::model::Group;

/// One row for each rule.
pub(super) const RULES: &[Rule<Group>] = &[
    Rule::error("coordination-role-unknown", "every role named in a coordination exists", values::roles_exist),
    Rule::error("segment-size", "sizes, ratios and steps are at least 1", values::sizes_are_positive),
    Rule::error("progression", "progression and batchMode are known words", values::progression_is_known),
    Rule::error("segment-size-conflict", "coordinations agree on the batch size of a role", conflicts::sizes_agree),
    Rule::error("progression-conflict", "coordinations agree on the progression", conflicts::progressions_agree),
];
