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

type Judge = Box<dyn Fn(&Facts, &mut Findings)>;

/// A check: its id and its function.
type Check = (&'static str, Judge);

/// Returns the function of a check of one fact. If it could not be read, that is the finding.
fn reads<T: ?Sized + 'static>(
    what: &'static str,
    read: fn(&Facts) -> Result<&T, &String>,
    judge: fn(&T, &Facts, &mut Findings),
) -> Judge {
    Box::new(move |facts, found| {
        found.known(read(facts), what).into_iter().for_each(|fact| judge(fact, facts, found));
    })
}

const DEFINITIONS: &str = "CustomResourceDefinitions";

/// Returns all checks; a check comes after the checks that it depends on.
pub fn checks() -> [Check; 32] {
    [
        ("api-server", Box::new(cluster::api_server)),
        ("definitions", reads(DEFINITIONS, |all| all.definitions.as_ref(), definitions::carriers)),
        ("definitions-current", reads(DEFINITIONS, |all| all.definitions.as_ref(), definitions::are_current)),
        ("neighbours", reads(DEFINITIONS, |all| all.definitions.as_ref(), definitions::neighbours)),
        ("pod-groups", Box::new(definitions::pod_groups)),
        ("rights", reads("the rights of rolegate", |all| all.rights.as_ref(), cluster::rights)),
        ("opt-ins", reads("the options of groups", |all| all.opt_ins.as_deref(), cluster::opt_ins)),
        (
            "containment",
            reads("the policies over our own account", |all| all.policies.as_ref(), containment::contained),
        ),
        ("webhooks", Box::new(admission::are_there)),
        ("webhooks-current", Box::new(admission::are_current)),
        ("mode", reads("how namespaces are served", |all| all.of_groups(|all| &all.served), modes::mode)),
        ("selection", reads("how namespaces are served", |all| all.of_groups(|all| &all.served), modes::selection)),
        ("failure-policy", Box::new(admission::failure_policy)),
        ("exclusions", reads("namespaces", |all| all.namespaces.as_ref(), admission::exclusions)),
        ("replicas", Box::new(cluster::replicas)),
        ("endpoint", Box::new(admission::endpoint)),
        ("certificate", Box::new(certificates::served)),
        ("ca-bundle", Box::new(certificates::trusted)),
        ("admission", reads("whether a pod is held", |all| all.probe.as_ref(), admission::answers)),
        ("other-webhooks", Box::new(neighbours::on_pods)),
        ("other-rolegates", reads("other rolegates", |all| all.others.as_deref(), neighbours::serve_the_same)),
        ("our-namespace", reads("our namespace", |all| all.namespaces.as_ref(), neighbours::on_our_namespace)),
        ("grove-authorizer", Box::new(neighbours::grove_authorizer)),
        ("leader", Box::new(holds::leader)),
        ("orphans", reads("held pods", |all| all.of_groups(|all| &*all.orphans), holds::orphans)),
        ("held", reads("groups", |all| all.of_groups(|all| &*all.held), holds::held)),
        ("uncoordinated", reads("pods", |all| all.of_groups(|all| &*all.uncoordinated), holds::uncoordinated)),
        ("nobodys", reads("held pods", |all| all.nobodys.as_deref(), holds::nobodys)),
        ("unknown-roles", reads("pods", |all| all.of_groups(|all| &*all.strangers), holds::strangers)),
        ("autoscalers", reads("autoscalers", |all| all.rivals.as_deref(), holds::rivals)),
        ("addresses", reads("Services", |all| all.addresses.as_deref(), holds::addresses)),
        ("devices", Box::new(cluster::devices)),
    ]
}

/// Runs all checks in order.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let found = checks().into_iter().flat_map(|(id, check)| {
        let mut findings = Findings::of(id);
        check(facts, &mut findings);
        findings.into_vec()
    });
    found.collect()
}
