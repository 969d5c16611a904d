//! Checks of our webhook configurations: existence, version, endpoint.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration, WebhookClientConfig};

use super::selector::selects;
use crate::api::pod_group::POD_GROUP;
use crate::api::selector::LabelSelector;
use crate::cli::doctor::facts::{Facts, Namespaces, Probe, Target};
use crate::cli::doctor::finding::Findings;
use crate::cli::doctor::hooks::{Hook, as_mutating, of, webhooks};
use crate::cluster::registration::{KAI_PODS, Reach, Registration};
use crate::model::{LetGo, Mode};

/// Returns our webhooks in the cluster, without missing or unreadable configurations.
pub fn ours(facts: &Facts) -> Vec<Hook<'_>> {
    let all = webhooks(&facts.mutating, &facts.validating);
    all.filter(|hook| hook.configuration() == facts.target.name).collect()
}

/// Returns our configurations as this version registers them; the reach is a placeholder.
fn wanted(Target { name, namespace }: &Target) -> [(&'static str, MutatingWebhookConfiguration); 2] {
    let registration = Registration {
        name: name.clone(),
        reach: Reach::Url(String::new()),
        own_namespace: namespace.clone(),
        namespaces: Vec::new(),
        selector: LabelSelector::default(),
        mode: Mode::Enforce,
        kai_pods: true,
    };
    [("mutating", registration.mutating(None)), ("validating", as_mutating(registration.validating(None)))]
}

/// Checks that both configurations exist.
pub fn are_there(facts: &Facts, found: &mut Findings) {
    let name = facts.target.name.as_str();
    let kinds =
        [("mutating", &facts.mutating, "no pod is held"), ("validating", &facts.validating, "nothing is judged")];
    let known = kinds
        .map(|(kind, all, harm)| (kind, found.known(all.as_ref(), &format!("{kind} webhook configurations")), harm));
    for (kind, all, harm) in known {
        match all.map(|all| all.iter().any(|one| one.metadata.name.as_deref() == Some(name))) {
            Some(true) => found.ok(format!("the {kind} webhook configuration {name} is there")),
            Some(false) => found.error(
                format!("there is no {kind} webhook configuration {name}: {harm}"),
                "apply the manifests, or run `rolegate serve` with --webhooks all; --name says which",
            ),
            None => {}
        }
    }
}

/// Checks that the rules of the webhooks are those of this version.
pub fn are_current(facts: &Facts, found: &mut Findings) {
    let ours = ours(facts);
    if ours.is_empty() {
        return;
    }
    let all_wanted = wanted(&facts.target);
    let all_wanted: Vec<_> = all_wanted.iter().flat_map(|(kind, one)| of(kind, one)).collect();
    let (mut current, mut without_kai) = (true, false);
    for more in ours.iter().filter(|ours| all_wanted.iter().all(|wanted| !wanted.is(ours))) {
        current = false;
        found.warning(
            format!("{} is not of this version", more.title()),
            "apply the manifests of the version that runs; an upgrade whose new pods do not run can be taken back so",
        );
    }
    // A missing configuration is another finding.
    for wanted in all_wanted.iter().filter(|wanted| ours.iter().any(|ours| ours.kind == wanted.kind)) {
        let have = ours.iter().find(|have| have.is(wanted)).map(|have| have.spec);
        if have.is_none() && wanted.spec.name == KAI_PODS {
            without_kai = true;
            continue;
        }
        let conditions =
            |of: &MutatingWebhook| (of.match_conditions.clone(), of.object_selector.clone().unwrap_or_default());
        let differs = match have {
            None => Some("is missing"),
            Some(have) if have.rules != wanted.spec.rules => Some("has other rules than this version"),
            Some(have) => {
                (conditions(have) != conditions(wanted.spec)).then_some("has other conditions than this version")
            }
        };
        if let Some(differs) = differs {
            current = false;
            let hint = if ours.iter().any(Hook::is_kept) {
                "`rolegate serve` with --webhooks all keeps them, as its version has them: is it of another version than this program, or \
                 does somebody else write them? Its metric rolegate_webhook_repairs_total counts that"
            } else {
                "apply the manifests of this version, or run `rolegate serve` with --webhooks all"
            };
            found.warning(
                format!("{} {differs}: the objects that it lacks are neither judged nor held", wanted.title()),
                hint,
            );
        }
    }
    current &= !without_kai || kai_is_absent(facts, found);
    if current {
        found.ok("the webhook configurations are those of this version");
    }
}

/// Reports whether KAI is missing, so that its webhooks may be left out; otherwise adds a warning.
fn kai_is_absent(facts: &Facts, found: &mut Findings) -> bool {
    let has_kai = facts.definitions.as_ref().is_ok_and(|all| all.contains_key(&POD_GROUP.crd_name()));
    if has_kai {
        found.warning(
            "KAI is there, and webhooks for pods which name its PodGroups are left out",
            "take `kai-pods` out of --without (kaiPods.enabled=true, `serve --kai-pods on`)",
        );
    } else {
        found.info("webhooks for pods which name a PodGroup of KAI are left out, and there is no KAI");
    }
    !has_kai
}

/// Checks that the webhooks fail closed.
pub fn failure_policy(facts: &Facts, found: &mut Findings) {
    // Nothing is held anyway.
    if facts.groups.as_ref().is_ok_and(|all| all.served.only_observes()) {
        return;
    }
    for ours in ours(facts).iter().filter(|ours| !ours.is_closed()) {
        found.warning(
            format!("{} is ignored while rolegate is away: pods pass without a hold", ours.title()),
            "set its failurePolicy to Fail, or add policies/hold.yaml",
        );
    }
}

/// Checks that the cluster can start while rolegate is down.
pub fn exclusions(namespaces: &Namespaces, facts: &Facts, found: &mut Findings) {
    for name in ["kube-system", facts.target.namespace.as_str()] {
        let Some(labels) = namespaces.get(name) else { continue };
        let is_for = |ours: &Hook<'_>| ours.is_closed() && selects(ours.spec.namespace_selector.as_ref(), labels);
        if let Some(ours) = ours(facts).into_iter().find(is_for) {
            found.error(
                format!("{} is for namespace {name} too: the cluster may not start without rolegate", ours.title()),
                "exclude the namespace in its namespaceSelector by kubernetes.io/metadata.name",
            );
        }
    }
}

/// Returns where a webhook leads to: its Service, or the host of its URL.
fn address(client: &WebhookClientConfig) -> String {
    let url = client.url.as_ref().map(|url| url.split('/').take(3).collect::<Vec<_>>().join("/"));
    let service = client.service.as_ref().map(|service| format!("Service {}/{}", service.namespace, service.name));
    service.or(url).unwrap_or_default()
}

/// Checks that the webhooks lead to one address: who fills in their caBundle serves one.
fn address_is_one(facts: &Facts, found: &mut Findings) {
    let mut by_address = BTreeMap::<_, Vec<_>>::new();
    for ours in ours(facts) {
        by_address.entry(address(&ours.spec.client_config)).or_default().push(ours.title());
    }
    let Some((most, _)) = by_address.iter().max_by_key(|(_, titles)| titles.len()) else { return };
    for (address, titles) in by_address.iter().filter(|(address, _)| *address != most) {
        found.warning(
            format!("{} leads to {address}, and the other webhooks to {most}", titles.join(", ")),
            "`rolegate serve` fills in the caBundle of webhooks that lead to its own --reach, and of no other",
        );
    }
}

/// Checks that the Services of the webhooks have a ready endpoint.
pub fn endpoint(facts: &Facts, found: &mut Findings) {
    address_is_one(facts, found);
    let Some(services) = found.known(facts.services.as_ref(), "Services") else { return };
    let mut seen = BTreeSet::new();
    for ours in ours(facts) {
        let client = &ours.spec.client_config;
        if client.url.is_some() && seen.insert(address(client)) {
            found.info(format!("the webhook is called at {}", address(client)));
        }
        let Some(service) = &client.service else { continue };
        let (name, port) = (format!("{}/{}", service.namespace, service.name), service.port.unwrap_or(443));
        if !seen.insert(format!("{name}:{port}")) {
            continue;
        }
        let start = "install it, or correct `--reach` of `rolegate serve`";
        match services.get(&(service.namespace.clone(), service.name.clone())) {
            Some(Some((known, ready))) => {
                let spec = known.spec.as_ref();
                let elsewhere = spec.filter(|spec| spec.type_.as_deref() == Some("ExternalName"));
                let ports = spec.and_then(|spec| spec.ports.as_ref());
                if let Some(host) = elsewhere.and_then(|spec| spec.external_name.as_ref()) {
                    found.info(format!("Service {name} leads to {host}:{port}"));
                } else if !ports.into_iter().flatten().any(|one| one.port == port) {
                    found.error(format!("Service {name} has no port {port}"), start);
                } else if *ready == 0 {
                    let look = format!(
                        "`kubectl get pods -n {}`: is a replica running, and does its /readyz say ok?",
                        service.namespace
                    );
                    found.error(format!("Service {name} has no endpoint that is ready"), look);
                } else {
                    found.ok(format!("Service {name} has {ready} ready"));
                }
            }
            _ => found.error(format!("{} leads to Service {name}, which is not there", ours.title()), start),
        }
    }
}

/// Returns why nothing is held in the namespace of the dry run.
fn rests(facts: &Facts) -> Option<LetGo> {
    facts.groups.as_ref().ok()?.served.stances.get(&facts.try_in)?.lets_go()
}

/// Part of the API server's message when it fails for the TLS version.
const OLD_TLS: &str = "protocol version not supported";
const SPEAK_OLD_TLS: &str =
    "the API server speaks TLS 1.2 alone, as some do in FIPS mode: run `rolegate serve` with --tls-min 1.2";

/// Parts of the API server's message when it does not reach the webhook.
const UNREACHED: &[&str] = &["dial tcp", "deadline exceeded", "Client.Timeout", "no route to host", "i/o timeout"];
const REACH: &str = "the API server does not reach the pods: a firewall must let it to their webhook port, which is 9443 without \
     --webhook-port. Ways out, of which one is enough: `rolegate manifests --webhook-port 10250`, which such firewalls often let \
     through to the network of the pods; or `--host-network`, with a port that is free on the nodes, and 10250 is not";

/// Checks that the API server gets an answer.
pub fn answers(probe: &Probe, facts: &Facts, found: &mut Findings) {
    match probe {
        Probe::Held => found.ok("a pod of a group, created as a dry run, is held"),
        Probe::NotHeld if rests(facts).is_some() => found.info(format!(
            "a pod of a group, created as a dry run in {}, is not held: {}",
            facts.try_in,
            rests(facts).map_or("", LetGo::words)
        )),
        Probe::NotHeld => found.error(
            "a pod of a group, created as a dry run, is not held",
            "is the namespace excluded, or labelled rolegate.dev/ignore? --try-in names another",
        ),
        Probe::Refused(why) => found.error(
            format!("a pod of a group, created as a dry run, is refused: {why}"),
            if why.contains(OLD_TLS) {
                SPEAK_OLD_TLS
            } else if UNREACHED.iter().any(|part| why.contains(part)) {
                REACH
            } else {
                "see the findings above and the log of `rolegate serve`"
            },
        ),
    }
}
