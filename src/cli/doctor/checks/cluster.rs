//! The API server, and what rolegate may do there.

use crate::cli::doctor::facts::{AskedRight, Facts};
use crate::cli::doctor::finding::Findings;

/// The first minor version with all that is needed, if only as beta: matchConditions of webhooks are on from here.
const OLDEST: u32 = 28;
/// The first in which matchConditions and scheduling gates are stable.
const STABLE: u32 = 30;
/// The newest that the tests run on.
const NEWEST: u32 = 36;

/// API groups that every API server has; a kind of another that is not installed needs no rights yet.
pub const BUILT_IN: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "policy",
];

/// Is the API server new enough?
pub fn api_server(facts: &Facts, found: &mut Findings) {
    let (major, minor) = facts.version;
    let version = format!("Kubernetes {major}.{minor}");
    match facts.version {
        (1, minor) if minor < OLDEST => found.error(
            format!("{version} has no matchConditions of webhooks: every pod would wait for rolegate"),
            format!("upgrade to 1.{STABLE} or later"),
        ),
        (1, minor) if minor < STABLE => found.warning(
            format!("{version} has matchConditions and scheduling gates as beta only"),
            format!("keep their feature gates on, or upgrade to 1.{STABLE}"),
        ),
        (1, minor) if minor <= NEWEST => found.ok(version),
        _ => found.info(format!("{version} is newer than what rolegate was tested on, 1.{NEWEST}")),
    }
}

/// May rolegate do what it must?
pub fn rights(facts: &Facts, found: &mut Findings) {
    let Some(rights) = found.known(&facts.rights, "what rolegate may do") else { return };
    let who = rights.user.as_deref().unwrap_or("whoever runs this");
    if rights.missing.is_empty() {
        found.ok(format!("{who} has all {} rights", rights.asked));
    }
    let installed = |asked: &AskedRight| {
        let resource = asked.resource.split('/').next().unwrap_or_default();
        let name = format!("{resource}.{}", asked.group);
        BUILT_IN.contains(&asked.group.as_str())
            || facts.definitions.as_ref().map_or(true, |definitions| definitions.contains_key(&name))
    };
    for asked in &rights.missing {
        let group = if asked.group.is_empty() { String::new() } else { format!(".{}", asked.group) };
        let place = asked.namespace.as_ref().map_or_else(String::new, |namespace| format!(" in {namespace}"));
        let what = format!("{who} may not {} {}{group}{place}", asked.verb, asked.resource);
        if installed(asked) {
            found.error(format!("{what}: {}", asked.why), "apply the ClusterRole and Role of this version again");
        } else {
            found.note(format!("{what}; it is not installed"), "grant it before you install that kind");
        }
    }
}
