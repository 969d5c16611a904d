//! Checks of other webhooks that may interfere with rolegate.

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::selector::{matches, selects};
use crate::cli::doctor::facts::Facts;
use crate::cli::doctor::finding::Findings;
use crate::model::installation::OF_PODS;

/// The common parts of mutating and validating webhooks.
struct Hook<'a> {
    configuration: &'a str,
    name: &'a str,
    path: &'a str,
    fails: bool,
    rules: Option<&'a [RuleWithOperations]>,
    namespaces: Option<&'a LabelSelector>,
}

/// Returns the webhooks of others, mutating and validating; `None` when they cannot be read, which is another finding.
fn others(facts: &Facts) -> Option<(Vec<Hook<'_>>, Vec<Hook<'_>>)> {
    let (mutating, validating) = (facts.mutating.as_ref().ok()?, facts.validating.as_ref().ok()?);
    let is_ours = |name: &Option<String>| name.as_deref() == Some(facts.target.name.as_str());
    macro_rules! hooks {
        ($configurations:expr) => {
            $configurations
                .iter()
                .filter(|one| !is_ours(&one.metadata.name))
                .flat_map(|one| one.webhooks.iter().flatten().map(move |hook| (one, hook)))
                .map(|(one, hook)| Hook {
                    configuration: one.metadata.name.as_deref().unwrap_or_default(),
                    name: &hook.name,
                    path: path(&hook.client_config),
                    fails: hook.failure_policy.as_deref() != Some("Ignore"),
                    rules: hook.rules.as_deref(),
                    namespaces: hook.namespace_selector.as_ref(),
                })
                .collect()
        };
    }
    Some((hooks!(mutating), hooks!(validating)))
}

fn path(config: &k8s_openapi::api::admissionregistration::v1::WebhookClientConfig) -> &str {
    let of_service = config.service.as_ref().and_then(|service| service.path.as_deref());
    of_service.or(config.url.as_deref()).unwrap_or_default()
}

/// Reports mutating webhooks that change pods after ours.
pub fn on_pods(facts: &Facts, found: &mut Findings) {
    let Some((mutating, _)) = others(facts) else { return };
    let after = mutating
        .iter()
        // Webhooks of another rolegate add no labels of groups, and have a check of their own.
        .filter(|hook| !hook.name.ends_with(OF_PODS))
        .filter(|hook| hook.configuration > facts.target.name.as_str() && matches(hook.rules, "", "pods", "CREATE"));
    let after: Vec<_> = after.map(|hook| hook.configuration).collect();
    if after.is_empty() {
        found.ok("no webhook changes pods after ours");
    }
    for configuration in after {
        found.note(
            format!("mutating webhook {configuration} sees pods after ours"),
            "a label of a group that it adds comes too late to hold the pod: put such labels into the pod's template, \
             or use policies/hold.yaml",
        );
    }
}

/// Resources that rolegate needs in its namespace: to start, to lead, to renew its certificate.
const OWN: &[(&str, &str)] = &[("", "pods"), ("", "secrets"), ("coordination.k8s.io", "leases")];

/// Reports webhooks that can keep rolegate from starting.
pub fn on_our_namespace(facts: &Facts, found: &mut Findings) {
    let Some(namespaces) = found.known(&facts.namespaces, "our namespace") else { return };
    let Some(labels) = namespaces.get(&facts.target.namespace) else {
        let namespace = &facts.target.namespace;
        found.error(format!("namespace {namespace} is not there"), "install rolegate, or set --namespace");
        return;
    };
    let Some((mutating, validating)) = others(facts) else { return };
    let mut free = true;
    for hook in mutating.iter().chain(&validating).filter(|hook| hook.fails && selects(hook.namespaces, labels)) {
        let hit = |(group, resource): &&(&str, &str)| {
            ["CREATE", "UPDATE"].iter().any(|operation| matches(hook.rules, group, resource, operation))
        };
        let hit: Vec<_> = OWN.iter().filter(hit).map(|(_, resource)| *resource).collect();
        if !hit.is_empty() {
            free = false;
            found.warning(
                format!(
                    "webhook {} of {} judges {} in our namespace and refuses them while it is away",
                    hook.name,
                    hook.configuration,
                    hit.join(", ")
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
    let Some((_, validating)) = others(facts) else { return };
    let (namespace, name) = (&facts.target.namespace, &facts.target.name);
    if validating.iter().any(|hook| hook.path.ends_with(AUTHORIZER)) {
        found.warning(
            "Grove's authorizer is on: it refuses to let others lift gates of its pods",
            format!(
                "add system:serviceaccount:{namespace}:{name} to exemptServiceAccountUserNames of Grove's authorizer"
            ),
        );
    }
}
