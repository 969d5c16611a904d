//! Checks of other webhooks that may interfere with rolegate, and of other rolegates.

use super::selector::{matches, selects};
use crate::cli::doctor::facts::{Facts, Namespaces, Other};
use crate::cli::doctor::finding::{Findings, listed};
use crate::cli::doctor::hooks::{Hook, webhooks};
use crate::model::installation::OF_PODS;
use crate::model::wording::counted;

/// Returns the webhooks of others; `None` when they cannot be read, which is another finding.
fn others(facts: &Facts) -> Option<impl Iterator<Item = Hook<'_>>> {
    let all = webhooks(&facts.mutating, &facts.validating).filter(move |one| one.configuration() != facts.target.name);
    (facts.mutating.is_ok() && facts.validating.is_ok()).then_some(all)
}

/// Reports mutating webhooks that change pods after ours.
pub fn on_pods(facts: &Facts, found: &mut Findings) {
    let Some(others) = others(facts) else { return };
    let is_after = |hook: &Hook<'_>| {
        // Webhooks of another rolegate add no labels of groups, and have a check of their own.
        hook.kind == "mutating"
            && !hook.spec.name.ends_with(OF_PODS)
            && hook.configuration() > facts.target.name.as_str()
            && matches(hook.spec.rules.as_deref(), "", "pods", "CREATE")
    };
    let after: Vec<_> = others.filter(is_after).collect();
    if after.is_empty() {
        found.ok("no webhook changes pods after ours");
    }
    for hook in after {
        found.note(
            format!("mutating webhook {} sees pods after ours", hook.configuration()),
            "a label of a group that it adds comes too late to hold the pod: put such labels into the pod's template, \
             or use policies/hold.yaml",
        );
    }
}

/// Resources that rolegate needs in its namespace: to start, to lead, to renew its certificate.
const OWN: &[(&str, &str)] = &[("", "pods"), ("", "secrets"), ("coordination.k8s.io", "leases")];

/// Reports webhooks that can keep rolegate from starting.
pub fn on_our_namespace(namespaces: &Namespaces, facts: &Facts, found: &mut Findings) {
    let Some(labels) = namespaces.get(&facts.target.namespace) else {
        let namespace = &facts.target.namespace;
        found.error(format!("namespace {namespace} is not there"), "install rolegate, or set --namespace");
        return;
    };
    let Some(others) = others(facts) else { return };
    let mut free = true;
    for hook in others.filter(|hook| hook.is_closed() && selects(hook.spec.namespace_selector.as_ref(), labels)) {
        let hit = |(group, resource): &&(&str, &str)| {
            ["CREATE", "UPDATE"].iter().any(|operation| matches(hook.spec.rules.as_deref(), group, resource, operation))
        };
        let hit = OWN.iter().filter(hit).map(|(_, resource)| *resource).collect::<Vec<_>>().join(", ");
        if !hit.is_empty() {
            free = false;
            let (name, configuration) = (&hook.spec.name, hook.configuration());
            found.warning(
                format!(
                    "webhook {name} of {configuration} judges {hit} in our namespace and refuses them while it is away"
                ),
                "exclude our namespace from it, or rolegate cannot start before it",
            );
        }
    }
    if free {
        found.ok("no other webhook can keep rolegate from starting");
    }
}

/// The end of the path of Grove's authorizer webhook, which is off by default.
const AUTHORIZER: &str = "/webhooks/authorizer-webhook";

/// Reports Grove's authorizer: it refuses changes of its pods by unknown users, and a lifted gate is a change.
pub fn grove_authorizer(facts: &Facts, found: &mut Findings) {
    let (namespace, name) = (&facts.target.namespace, &facts.target.name);
    let is_one = |hook: Hook<'_>| {
        let client = &hook.spec.client_config;
        let path = client.service.as_ref().and_then(|service| service.path.as_ref()).or(client.url.as_ref());
        hook.kind == "validating" && path.is_some_and(|path| path.ends_with(AUTHORIZER))
    };
    if others(facts).is_some_and(|mut others| others.any(is_one)) {
        found.warning(
            "Grove's authorizer is on: it refuses to let others lift gates of its pods",
            format!(
                "add system:serviceaccount:{namespace}:{name} to exemptServiceAccountUserNames of Grove's authorizer"
            ),
        );
    }
}

/// Namespaces to name; further ones are counted.
const NAMED: usize = 3;

/// Checks that no other installation holds the same pods.
pub fn serve_the_same(others: &[Other], _: &Facts, found: &mut Findings) {
    for Other { name, shared } in others {
        if shared.is_empty() {
            found.ok(format!("the rolegate {name} serves other namespaces than ours"));
            continue;
        }
        let (count, named) = (counted(shared.len(), "namespace"), listed(shared.iter().map(String::as_str), NAMED));
        found.error(
            format!("the rolegate {name} serves {count} that ours serves too: {named}"),
            "both decide about each group there: give them namespaces apart (--namespaces, --namespace-selector), or uninstall \
             one of them",
        );
    }
}
