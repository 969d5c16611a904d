//! Checks of CustomResourceDefinitions: installed kinds, and fields that they prune.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::cluster::BUILT_IN;
use crate::api::ObjectKind;
use crate::api::cluster_topology::CLUSTER_TOPOLOGY;
use crate::api::crd;
use crate::api::grove::POD_CLIQUE_SET;
use crate::api::pod_group::POD_GROUP;
use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::workload::LEADER_WORKER_SET;
use crate::cli::doctor::facts::{Definitions, Facts};
use crate::cli::doctor::finding::Findings;
use crate::cli::rights::RIGHTS;
use crate::model::Dialect;
use crate::model::wording::counted;

/// Path to the coordination of roles in a RoleBasedGroup.
const COORDINATION: &[&str] = &["spec", "coordination", "[]", "strategy", "segmentPlacement"];
/// Hint to install our definitions.
const INSTALL: &str = "`rolegate manifests --part crds | kubectl apply --server-side -f -`";

/// Returns the names of the definitions to read: of the kinds that rights name. The absence of other projects' kinds decides how bad
/// a missing right is.
pub fn looked_at() -> impl Iterator<Item = String> {
    let all = RIGHTS.iter().flat_map(|right| {
        let resources = right.resources.iter().filter(|resource| !resource.contains('/'));
        let groups = || right.groups.iter().filter(|group| !BUILT_IN.contains(group));
        resources.flat_map(move |resource| groups().map(move |group| format!("{resource}.{group}")))
    });
    all.collect::<BTreeSet<_>>().into_iter()
}

/// Checks that a kind for coordinations is installed and keeps its fields.
pub fn carriers(definitions: &Definitions, _: &Facts, found: &mut Findings) {
    let ours = definitions.get(&ROLE_COORDINATION.crd_name());
    let mut keeps_one = false;
    for kind in [ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI] {
        let Some(definition) = definitions.get(&kind.crd_name()) else { continue };
        let (name, served) = (kind.crd_name(), served(definition).join(", "));
        if schema(definition, kind.version).is_some_and(|schema| keeps(schema, COORDINATION)) {
            keeps_one = true;
            found.ok(format!("{name} ({served}) carries coordinations"));
        } else {
            found.warning(
                format!("{name} ({served}) drops spec.coordination, without a warning to its author"),
                "coordinate its groups by a RoleCoordination with groupRef",
            );
        }
    }
    match ours {
        Some(definition) if is_established(definition) => found.ok("rolecoordinations.rolegate.dev is there"),
        Some(_) => found.error("rolecoordinations.rolegate.dev is not established", "look at its conditions"),
        None if keeps_one => found.note("rolecoordinations.rolegate.dev is not there", INSTALL),
        None => found.error("no kind that carries coordinations is installed", INSTALL),
    }
}

/// Checks that our definitions are those of this version.
pub fn are_current(definitions: &Definitions, _: &Facts, found: &mut Findings) {
    for kind in [ROLE_COORDINATION, CLUSTER_TOPOLOGY] {
        let name = kind.crd_name();
        let (Some(wanted), Some(installed)) = (crd::schema_of(kind), definitions.get(&name)) else { continue };
        let mut missing = Vec::new();
        match schema(installed, kind.version) {
            Some(installed) => compare(wanted, installed, "", &mut missing),
            None => missing.push(kind.version.to_owned()),
        }
        match missing.as_slice() {
            [] => found.ok(format!("{name} is that of this version")),
            [first, ..] => found.warning(
                format!("{name} is older than this version: it drops {first}, and {} more", missing.len() - 1),
                INSTALL,
            ),
        }
    }
}

/// Reports installed kinds of other projects that rolegate works with.
pub fn neighbours(definitions: &Definitions, _: &Facts, found: &mut Findings) {
    if let Some(groups) = definitions.get(&POD_GROUP.crd_name()) {
        let dialect = match Dialect::of_crd(groups) {
            Some(Dialect::Proposal) => "counts as in the hierarchical design",
            Some(Dialect::Upstream) => "counts as in KAI v0.15 and later",
            Some(Dialect::Pods) => "counts pods, as KAI v0.10 to v0.14 does",
            None => "its counts are not known: set --kai-dialect",
        };
        found.info(format!("KAI is there ({}): {dialect}", served(groups).join(", ")));
    }
    for (name, kind) in [("Grove", POD_CLIQUE_SET), ("LeaderWorkerSet", LEADER_WORKER_SET)] {
        if let Some(definition) = definitions.get(&kind.crd_name()) {
            found.info(format!("{name} is there ({})", served(definition).join(", ")));
        }
    }
}

fn versions(definition: &Value) -> &[Value] {
    definition.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Checks that the PodGroup kinds that groups ask for are served.
pub fn pod_groups(facts: &Facts, found: &mut Findings) {
    let (Ok(definitions), Some(gangs)) = (&facts.definitions, found.known(facts.of_groups(|all| &all.gangs), "groups"))
    else {
        return;
    };
    let is_served = |kind: &ObjectKind| {
        let definition = definitions.get(&kind.crd_name()).filter(|definition| is_established(definition));
        definition.is_some_and(|definition| served(definition).contains(&kind.version))
    };
    let mut waiting = BTreeMap::<_, BTreeSet<_>>::new();
    for (group, kind) in gangs.iter().filter(|(_, kind)| !is_served(kind)) {
        waiting.entry(*kind).or_default().insert(group.as_str());
    }
    if waiting.is_empty() {
        found.ok("the PodGroups that groups ask for are served");
    }
    let rewrites = definitions.get(&POD_GROUP.crd_name()).and_then(Dialect::of_crd) == Some(Dialect::Pods);
    if rewrites && gangs.iter().any(|(_, kind)| *kind == POD_GROUP) {
        found.note(
            "KAI before v0.15 is there: its podgrouper puts pods into PodGroups of their workloads, over those of their batches",
            "keep it out of the namespaces of these groups (namespaceLabelSelector in KAI's Config), or update KAI",
        );
    }
    for (kind, groups) in waiting {
        let (name, version, count) = (kind.crd_name(), kind.version, counted(groups.len(), "group"));
        let first = groups.first().copied().unwrap_or_default();
        found.warning(
            format!("{name} are not served as {version}, and batches of {count} wait for them, first {first}"),
            "install the gang scheduler, or remove podGroupPolicy",
        );
    }
}

fn served(definition: &Value) -> Vec<&str> {
    let served = versions(definition).iter().filter(|version| version.get("served") == Some(&Value::Bool(true)));
    served.filter_map(|version| version.get("name").and_then(Value::as_str)).collect()
}

fn schema<'a>(definition: &'a Value, version: &str) -> Option<&'a Value> {
    let named = |one: &&Value| one.get("name").and_then(Value::as_str) == Some(version);
    versions(definition).iter().find(named)?.pointer("/schema/openAPIV3Schema")
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    let is = |one: &Value, field: &str, text: &str| one.get(field).and_then(Value::as_str) == Some(text);
    conditions.into_iter().flatten().any(|one| is(one, "type", "Established") && is(one, "status", "True"))
}

/// Reports whether a value at a path is stored; `[]` steps into the items of a list.
fn keeps(schema: &Value, path: &[&str]) -> bool {
    let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let Some((first, rest)) = path.split_first() else { return true };
    let next =
        if *first == "[]" { schema.get("items") } else { schema.get("properties").and_then(|all| all.get(first)) };
    open || next.is_some_and(|next| keeps(next, rest))
}

/// Collects fields of `wanted` that `installed` would drop.
fn compare(wanted: &Value, installed: &Value, at: &str, missing: &mut Vec<String>) {
    if installed.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return;
    }
    for (name, field) in wanted.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match installed.get("properties").and_then(|all| all.get(name)) {
            Some(theirs) => compare(field, theirs, &path, missing),
            // Every object has these, though few schemas name them.
            None if at.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") => {}
            None => missing.push(path),
        }
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(wanted @ Value::Object(_)) = wanted.get(key) {
            match installed.get(key) {
                Some(theirs) => compare(wanted, theirs, &format!("{at}{step}"), missing),
                None => missing.push(format!("{at}{step}")),
            }
        }
    }
}
