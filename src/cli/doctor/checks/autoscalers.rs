//! Who else scales what is scaled by segments.

use crate::cli::doctor::facts::{Facts, Rivals};
use crate::cli::doctor::finding::Findings;
use crate::model::wording::counted;

/// Findings that are told one by one; more are counted.
const NAMED: usize = 5;

/// Does an autoscaler scale a workload of a group that is scaled by segments, or do two scale the group?
pub fn rivals(facts: &Facts, found: &mut Findings) {
    let Some(rivals) = found.known(&facts.rivals, "autoscalers") else { return };
    if rivals.is_empty() {
        found.ok("no autoscaler is in the way of another");
    }
    let mend = "let one autoscaler scale the RoleCoordination, and none its workloads";
    for Rivals { group, why } in rivals.iter().take(NAMED) {
        found.warning(format!("group {group}: {why}"), mend);
    }
    if let Some(more @ 1..) = rivals.len().checked_sub(NAMED) {
        found.warning(format!("{} more of autoscalers in each other's way", counted(more, "case")), mend);
    }
}
