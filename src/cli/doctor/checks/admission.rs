//! Checks of our webhook configurations: existence, version, endpoint.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector as Selector, ManagedFieldsEntry, ObjectMeta};

use super::selector::selects;
use crate::api::pod_group::POD_GROUP;
use crate::api::selector::LabelSelector;
use crate::cli::doctor::facts::{Facts, Probe, ServedNamespaces};
use crate::cli::doctor::finding::Findings;
use crate::cluster::registration::{KAI_PODS, Reach, Registration};
use crate::cluster::write::writer::MANAGER;
use crate::model::{LetGo, Mode};

#[derive(Clone, Debug, PartialEq)]
pub struct Ours {
    /// `mutating` or `validating`, and the name of the webhook.
    pub title: String,
    pub client: WebhookClientConfig,
    rules: Option<Vec<RuleWithOperations>>,
    conditions: Option<Vec<MatchCondition>>,
    /// Its `objectSelector`.
    objects: Selector,
    pub(super) failure_policy: Option<String>,
    pub(super) namespaces: Option<Selector>,
    /// True when a `rolegate serve` with `--webhooks all` applies the configuration.
    kept: bool,
}

/// Reports whether rolegate itself applied the whole configuration.
fn is_kept(metadata: &ObjectMeta) -> bool {
    let applies = |entry: &ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply")
    };
    metadata.managed_fields.iter().flatten().any(applies)
}

/// Returns the webhooks of a configuration. Both kinds have these fields, but no trait with them.
macro_rules! webhooks_of {
    ($configuration:expr, $kind:literal) => {
        $configuration.webhooks.iter().flatten().map(|hook| Ours {
            title: format!(concat!($kind, " webhook {}"), hook.name),
            client: hook.client_config.clone(),
            rules: hook.rules.clone(),
            conditions: hook.match_conditions.clone(),
            objects: hook.object_selector.clone().unwrap_or_default(),
            failure_policy: hook.failure_policy.clone(),
            namespaces: hook.namespace_selector.clone(),
            kept: is_kept(&$configuration.metadata),
        })
    };
}

fn of_mutating(configuration: &MutatingWebhookConfiguration) -> Vec<Ours> {
    webhooks_of!(configuration, "mutating").collect()
}

fn of_validating(configuration: &ValidatingWebhookConfiguration) -> Vec<Ours> {
    webhooks_of!(configuration, "validating").collect()
}

/// Returns our webhooks in the cluster, without missing or unreadable configurations.
pub fn ours(facts: &Facts) -> Vec<Ours> {
    let name = Some(facts.target.name.as_str());
    let mutating = facts.mutating.iter().flatten().filter(|one| one.metadata.name.as_deref() == name);
    let validating = facts.validating.iter().flatten().filter(|one| one.metadata.name.as_deref() == name);
    mutating.flat_map(of_mutating).chain(validating.flat_map(of_validating)).collect()
}

/// Returns our webhooks as this version registers them; the reach is a placeholder.
fn wanted(facts: &Facts) -> Vec<Ours> {
    let registration = Registration {
        name: facts.target.name.clone(),
        reach: Reach::Url(String::new()),
        own_namespace: facts.target.namespace.clone(),
        namespaces: Vec::new(),
        selector: LabelSelector::default(),
        mode: Mode::Enforce,
        kai_pods: true,
    };
    let mut wanted = of_mutating(&registration.mutating(None));
    wanted.extend(of_validating(&registration.validating(None)));
    wanted
}

/// Checks that both configurations exist.
pub fn are_there(facts: &Facts, found: &mut Findings) {
    let name = facts.target.name.as_str();
    let mutating = found.known(&facts.mutating, "mutating webhook configurations");
    let mutating = mutating.map(|all| all.iter().any(|one| one.metadata.name.as_deref() == Some(name)));
    let validating = found.known(&facts.validating, "validating webhook configurations");
    let validating = validating.map(|all| all.iter().any(|one| one.metadata.name.as_deref() == Some(name)));
    for (kind, there, harm) in
        [("mutating", mutating, "no pod is held"), ("validating", validating, "nothing is judged")]
    {
        match there {
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
    let all_wanted = wanted(facts);
    let (mut current, mut without_kai) = (true, false);
    for more in ours.iter().filter(|ours| all_wanted.iter().all(|wanted| wanted.title != ours.title)) {
        current = false;
        found.warning(
            format!("{} is not of this version", more.title),
            "apply the manifests of the version that runs; an upgrade whose new pods do not run can be taken back so",
        );
    }
    let kind = |title: &str| title.split(' ').next().map(str::to_owned);
    // A missing configuration is another finding.
    let there = |wanted: &Ours| ours.iter().any(|ours| kind(&ours.title) == kind(&wanted.title));
    for wanted in all_wanted.into_iter().filter(there) {
        let have = ours.iter().find(|have| have.title == wanted.title);
        if have.is_none() && wanted.title.ends_with(&format!(" {KAI_PODS}")) {
            without_kai = true;
            continue;
        }
        let differs = match have {
            None => Some("is missing"),
            Some(have) if have.rules != wanted.rules => Some("has other rules than this version"),
            Some(have) if (&have.conditions, &have.objects) != (&wanted.conditions, &wanted.objects) => {
                Some("has other conditions than this version")
            }
            Some(_) => None,
        };
        if let Some(differs) = differs {
            current = false;
            let hint = if ours.iter().any(|ours| ours.kept) {
                "`rolegate serve` with --webhooks all keeps them, as its version has them: is it of another version than this program, or \
                 does somebody else write them? Its metric rolegate_webhook_repairs_total counts that"
            } else {
                "apply the manifests of this version, or run `rolegate serve` with --webhooks all"
            };
            found.warning(
                format!("{} {differs}: the objects that it lacks are neither judged nor held", wanted.title),
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
    if facts.served.as_ref().is_ok_and(ServedNamespaces::only_observes) {
        return;
    }
    for ours in ours(facts).iter().filter(|ours| ours.failure_policy.as_deref() == Some("Ignore")) {
        found.warning(
            format!("{} is ignored while rolegate is away: pods pass without a hold", ours.title),
            "set its failurePolicy to Fail, or add policies/hold.yaml",
        );
    }
}

/// Checks that the cluster can start while rolegate is down.
pub fn exclusions(facts: &Facts, found: &mut Findings) {
    let Some(namespaces) = found.known(&facts.namespaces, "namespaces") else { return };
    for name in ["kube-system", facts.target.namespace.as_str()] {
        let Some(labels) = namespaces.get(name) else { continue };
        let closed = |ours: &&Ours| ours.failure_policy.as_deref() != Some("Ignore");
        if let Some(ours) = ours(facts).iter().filter(closed).find(|ours| selects(ours.namespaces.as_ref(), labels)) {
            found.error(
                format!("{} is for namespace {name} too: the cluster may not start without rolegate", ours.title),
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
    let ours = ours(facts);
    let mut by_address = BTreeMap::<_, Vec<_>>::new();
    for ours in &ours {
        by_address.entry(address(&ours.client)).or_default().push(ours.title.as_str());
    }
    let Some(most) = by_address.iter().max_by_key(|(_, titles)| titles.len()).map(|(address, _)| address.clone())
    else {
        return;
    };
    for (address, titles) in by_address.iter().filter(|(address, _)| **address != most) {
        found.warning(
            format!("{} leads to {address}, and the other webhooks to {most}", titles.join(", ")),
            "`rolegate serve` fills in the caBundle of webhooks that lead to its own --reach, and of no other",
        );
    }
}

/// Checks that the Services of the webhooks have a ready endpoint.
pub fn endpoint(facts: &Facts, found: &mut Findings) {
    address_is_one(facts, found);
    let Some(services) = found.known(&facts.services, "Services") else { return };
    let mut seen = std::collections::BTreeSet::new();
    for ours in ours(facts) {
        if ours.client.url.is_some() {
            let host = address(&ours.client);
            if seen.insert(host.clone()) {
                found.info(format!("the webhook is called at {host}"));
            }
        }
        let Some(service) = &ours.client.service else { continue };
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
            _ => found.error(format!("{} leads to Service {name}, which is not there", ours.title), start),
        }
    }
}

/// Returns why nothing is held in the namespace of the dry run.
fn rests(facts: &Facts) -> Option<LetGo> {
    facts.served.as_ref().ok()?.stances.get(&facts.try_in)?.lets_go()
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
pub fn answers(facts: &Facts, found: &mut Findings) {
    let Some(probe) = found.known(&facts.probe, "whether a pod is held") else { return };
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
