//! The checks: findings from facts, without reads.

mod admission;
mod certificates;
mod cluster;
mod containment;
mod definitions;
#[cfg(test)]
pub mod healthy;
mod holds;
mod modes;
mod neighbours;
mod selector;
#[cfg(test)]
mod tests;

pub use definitions::looked_at;

use crate::cli::doctor::facts::Facts;
use crate::cli::doctor::finding::{Finding, Findings};

/// A check: its id and its function.
type Check = (&'static str, fn(&Facts, &mut Findings));

/// All checks; a check comes after the checks that it depends on.
pub const CHECKS: &[Check] = &[
    ("api-server", cluster::api_server),
    ("definitions", definitions::carriers),
    ("definitions-current", definitions::are_current),
    ("neighbours", definitions::neighbours),
    ("pod-groups", definitions::pod_groups),
    ("rights", cluster::rights),
    ("opt-ins", cluster::opt_ins),
    ("containment", containment::contained),
    ("webhooks", admission::are_there),
    ("webhooks-current", admission::are_current),
    ("mode", modes::mode),
    ("selection", modes::selection),
    ("failure-policy", admission::failure_policy),
    ("exclusions", admission::exclusions),
    ("replicas", cluster::replicas),
    ("endpoint", admission::endpoint),
    ("certificate", certificates::served),
    ("ca-bundle", certificates::trusted),
    ("admission", admission::answers),
    ("other-webhooks", neighbours::on_pods),
    ("other-rolegates", neighbours::serve_the_same),
    ("our-namespace", neighbours::on_our_namespace),
    ("grove-authorizer", neighbours::grove_authorizer),
    ("leader", holds::leader),
    ("orphans", holds::orphans),
    ("held", holds::held),
    ("uncoordinated", holds::uncoordinated),
    ("nobodys", holds::nobodys),
    ("unknown-roles", holds::strangers),
    ("autoscalers", holds::rivals),
    ("addresses", holds::addresses),
    ("devices", cluster::devices),
];

/// Runs all checks in order.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let found = CHECKS.iter().flat_map(|(id, check)| {
        let mut findings = Findings::of(id);
        check(facts, &mut findings);
        findings.into_vec()
    });
    found.collect()
}
