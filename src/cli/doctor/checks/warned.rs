//! Checks of rule warnings for stored groups.

use crate::cli::doctor::facts::{Facts, Read, Warned};
use crate::cli::doctor::finding::Findings;
use crate::model::wording::counted;

/// Warnings to list; further ones are counted.
const NAMED: usize = 5;

/// Checks that no autoscaler scales a workload of a group that is scaled by segments, and that only one scales the
/// group.
pub fn rivals(facts: &Facts, found: &mut Findings) {
    let mend = "let one autoscaler scale the RoleCoordination, and none its workloads";
    tell(&facts.rivals, ("autoscalers", "no autoscaler is in the way of another", mend), found);
}

/// Checks that the addresses given to pods resolve.
pub fn addresses(facts: &Facts, found: &mut Findings) {
    let mend = "apply the Service with `clusterIP: None` and `publishNotReadyAddresses: true`";
    tell(&facts.addresses, ("Services", "the addresses that pods are given resolve", mend), found);
}

fn tell(all: &Read<Vec<Warned>>, (what, none, mend): (&str, &str, &'static str), found: &mut Findings) {
    let Some(all) = found.known(all, what) else { return };
    if all.is_empty() {
        found.ok(none);
    }
    for Warned { group, why } in all.iter().take(NAMED) {
        found.warning(format!("group {group}: {why}"), mend);
    }
    if let Some(more @ 1..) = all.len().checked_sub(NAMED) {
        found.warning(format!("{} more of this kind", counted(more, "case")), mend);
    }
}
