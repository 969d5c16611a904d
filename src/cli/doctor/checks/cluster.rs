//! Checks of the API server, and of rolegate's rights.

use crate::cli::doctor::facts::{AskedRight, Facts, OptIn, Rights};
use crate::cli::doctor::finding::Findings;
use crate::model::wording::counted;

/// The first supported minor version: matchConditions of webhooks are on by default, as beta.
const OLDEST: u32 = 28;
/// The first minor version with stable matchConditions and scheduling gates.
const STABLE: u32 = 30;
/// The newest minor version that the tests run on.
const NEWEST: u32 = 37;

/// API groups of every API server. Kinds of other groups need rights only when they are installed.
pub const BUILT_IN: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "policy",
    "resource.k8s.io",
];

/// Checks that the API server is new enough.
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
        _ => found.info(format!("{version} is newer than the tested version, 1.{NEWEST}")),
    }
}

/// Hint for missing rights; `--allow` options such as `scale` need further rights.
const APPLY_RIGHTS: &str =
    "apply the ClusterRole and Role that `rolegate manifests` of this version prints for the options in use";

/// Checks that rolegate has its rights.
pub fn rights(rights: &Rights, facts: &Facts, found: &mut Findings) {
    let who = rights.user.as_deref().unwrap_or("the current user");
    if rights.missing.is_empty() {
        found.ok(format!("{who} has all {} rights", rights.asked));
    }
    for asked in &rights.missing {
        let what = format!("{who} may not {}", deed(asked));
        if is_installed(facts, asked) {
            found.error(format!("{what}: {}", asked.why), APPLY_RIGHTS);
        } else {
            found.note(format!("{what}; it is not installed"), "grant it before you install that kind");
        }
    }
}

/// Returns the right as text: `patch statefulsets/scale.apps`, and its namespace.
fn deed(asked: &AskedRight) -> String {
    let group = if asked.group.is_empty() { String::new() } else { format!(".{}", asked.group) };
    let place = asked.namespace.as_ref().map_or_else(String::new, |namespace| format!(" in {namespace}"));
    format!("{} {}{group}{place}", asked.verb, asked.resource)
}

/// Reports whether the kind is installed; a missing kind needs no rights.
fn is_installed(facts: &Facts, asked: &AskedRight) -> bool {
    let resource = asked.resource.split('/').next().unwrap_or_default();
    let name = format!("{resource}.{}", asked.group);
    BUILT_IN.contains(&asked.group)
        || facts.definitions.as_ref().map_or(true, |definitions| definitions.contains_key(&name))
}

/// Tells which device classes placement counts.
pub fn devices(facts: &Facts, found: &mut Findings) {
    let told = facts.groups.as_ref().ok().and_then(|all| all.served.told.as_ref());
    let ignored = told.map(|told| told.ignored_resources.list()).filter(|list| !list.is_empty());
    if let Some(ignored) = ignored {
        found.info(format!("these resources keep no pod back where no node has them (--ignore-resources): {ignored}"));
    }
    let Some(classes) = found.known(facts.device_classes.as_ref(), "DeviceClasses") else {
        let what =
            "an extended resource that no node has keeps no pod back: whether a DeviceClass names it is not known";
        return found.info(what);
    };
    let Some(classes) = classes else { return found.ok("the API server has no devices of DRA") };
    let counted: Vec<_> = classes.iter().filter(|(_, whys)| whys.is_empty()).map(|(name, _)| name.as_str()).collect();
    found.ok(match counted.as_slice() {
        [] => "no device class is counted".to_owned(),
        counted => format!("devices of these classes are counted: {}", counted.join(", ")),
    });
    for (class, whys) in classes.iter().filter(|(_, whys)| !whys.is_empty()) {
        let mend = "batches with such devices go to a domain, and the scheduler chooses the nodes";
        found.note(format!("devices of class {class} are not counted: {}", whys.join(", ")), mend);
    }
}

/// Checks that opt-ins that groups ask for are allowed, and that rolegate has the rights.
pub fn opt_ins(opt_ins: &[OptIn], facts: &Facts, found: &mut Findings) {
    if opt_ins.is_empty() {
        found.ok("no group asks for more than gates, statuses and partitions");
    }
    for OptIn { what, groups, is_on, rights } in opt_ins {
        let word = what.word();
        let who = rights.user.as_deref().unwrap_or("the current user");
        let asked = match groups.as_slice() {
            [] => format!("`--allow {word}` is on"),
            [one] => format!("group {one} asks for {word}"),
            [first, others @ ..] => format!("group {first} and {} ask for {word}", counted(others.len(), "other")),
        };
        let missing: Vec<_> = rights.missing.iter().filter(|asked| is_installed(facts, asked)).collect();
        let mend = format!(
            "`rolegate manifests --allow {word}`, of the chart `--set allow={{{word}}}`, gives the rights and the option"
        );
        match (is_on, missing.as_slice()) {
            (Some(false), _) => {
                found.warning(format!("{asked}, and rolegate runs without `--allow {word}`: it has no effect"), mend);
            }
            (_, []) => found.ok(format!("{asked}, and {who} has the rights for it")),
            (_, [first, ..]) => {
                let deeds: Vec<_> = missing.iter().map(|asked| deed(asked)).collect();
                found.error(format!("{asked}, and {who} may not {}: {}", deeds.join(", "), first.why), mend);
            }
        }
    }
}

/// Checks that the pods of our Deployment are created.
pub fn replicas(facts: &Facts, found: &mut Findings) {
    let Some(Some(why)) = found.known(facts.not_made.as_ref(), "whether our pods are made") else { return };
    let hint = if why.contains("quota") {
        "the manifests hold a ResourceQuota that lets the class of the pods in (the value resourceQuota.enabled); or name another \
         class by priorityClassName (`manifests --priority-class`)"
    } else {
        "change the quota or policy that refuses them, or the pods by `rolegate manifests` or values of the chart"
    };
    found.error(format!("the pods of Deployment {} are not made: {why}", facts.target.name), hint);
}
