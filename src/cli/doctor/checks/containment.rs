//! Checks of the ValidatingAdmissionPolicies that limit our own account, so that a stolen token can do little.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::cli::doctor::facts::{Facts, Policies, Target};
use crate::cli::doctor::finding::Findings;
use crate::cli::manifests::{Settings, authors, containment};

const MEND: &str = "`rolegate manifests --part containment`, with the options of the installation, prints them; until then whoever has \
                    the token of rolegate can do all that its rights allow";

/// Checks that each policy exists, is in force, and is unchanged.
pub fn contained(facts: &Facts, found: &mut Findings) {
    let Some(there) = found.known(&facts.policies, "the policies over our own account") else { return };
    let faults: Vec<_> = expected(&facts.target).iter().filter_map(|policy| fault(policy, there)).collect();
    if faults.is_empty() {
        found.ok("the policies over our own account are in force");
    }
    for fault in faults {
        found.warning(fault, MEND);
    }
}

/// Returns the policies of an installation, with the conditions on their parts.
fn expected(Target { namespace, name }: &Target) -> Vec<Value> {
    let settings = Settings { namespace: namespace.clone(), name: name.clone(), ..Settings::default() };
    let is_policy = |object: &Value| text(object, "/kind") == Some("ValidatingAdmissionPolicy");
    containment::objects(&settings).into_iter().filter(is_policy).collect()
}

/// Returns the fault of a policy.
fn fault(expected: &Value, there: &Policies) -> Option<String> {
    let name = text(expected, "/metadata/name")?;
    let Some(policy) = there.policies.get(name) else {
        // The options of the installation are unknown: a conditional policy may be absent.
        return expected
            .get("?")
            .is_none_or(Value::is_null)
            .then(|| format!("ValidatingAdmissionPolicy {name:?} is missing"));
    };
    let denies = |binding: &Value| {
        let actions = binding.pointer("/spec/validationActions").and_then(Value::as_array);
        // A binding that selects objects or namespaces refuses nothing of others.
        let selects = binding.pointer("/spec/matchResources").is_some_and(|selects| !selects.is_null());
        !selects && actions.is_some_and(|actions| actions.contains(&json!("Deny")))
    };
    let why = if let Some(text) = type_check(policy) {
        format!("fails its type check, so that it may refuse everything or nothing: {text}")
    } else if let Some(part) = differs(expected, policy) {
        format!("is not the one of this version: {part} differs")
    } else if !there.bindings.get(name).is_some_and(denies) {
        "has no binding that denies: it refuses nothing".to_owned()
    } else {
        return None;
    };
    Some(format!("ValidatingAdmissionPolicy {name:?} {why}"))
}

/// Returns the first type-check warning of the API server.
fn type_check(policy: &Value) -> Option<String> {
    let warning = policy.pointer("/status/typeChecking/expressionWarnings/0")?;
    let said = |path: &str| text(warning, path).unwrap_or_default().trim().replace('\n', " ");
    Some(format!("{}: {}", said("/fieldRef"), said("/warning")))
}

/// Returns the first part that differs.
fn differs(expected: &Value, found: &Value) -> Option<&'static str> {
    const PARTS: &[&str] = &[
        "/spec/failurePolicy",
        "/spec/matchConditions",
        "/spec/matchConstraints/namespaceSelector",
        "/spec/matchConstraints/resourceRules",
        "/spec/validations",
    ];
    let part = |object: &Value, path: &str| object.pointer(path).filter(|part| !part.is_null()).cloned();
    let unlike = PARTS.iter().find(|path| part(expected, path) != part(found, path));
    let (known, there) = (variables(expected), variables(found));
    let is_one_of = |(name, expressions): (&String, &BTreeSet<&str>)| {
        known.get(name).is_some_and(|known| expressions.is_subset(known))
    };
    let same = known.len() == there.len() && there.iter().all(is_one_of);
    unlike.copied().or_else(|| (!same).then_some("/spec/variables"))
}

/// Returns the allowed expressions of each variable of a policy, by variable name.
fn variables(policy: &Value) -> BTreeMap<String, BTreeSet<&str>> {
    let mut known: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for variable in policy.pointer("/spec/variables").and_then(Value::as_array).into_iter().flatten() {
        let variable = variable.get("=").unwrap_or(variable);
        if let (Some(name), Some(expression)) = (text(variable, "/name"), text(variable, "/expression")) {
            // What is watched is an option of the installation.
            let expression = if name == authors::READY_KINDS { "" } else { expression };
            known.entry(name.to_owned()).or_default().insert(expression);
        }
    }
    known
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path)?.as_str()
}

/// Returns all policies as installed with default options.
#[cfg(test)]
pub fn installed() -> Policies {
    let mut all = Policies::default();
    for mut policy in expected(&Target { namespace: "rolegate-system".to_owned(), name: "rolegate".to_owned() }) {
        let name = policy["metadata"]["name"].as_str().unwrap().to_owned();
        let one = |(name, expressions): (&String, &BTreeSet<&str>)| json!({ "name": name, "expression": expressions.first() });
        let chosen: Value = variables(&policy).iter().map(one).collect();
        policy["spec"]["variables"] = chosen;
        all.bindings.insert(name.clone(), json!({ "spec": { "policyName": name, "validationActions": ["Deny"] } }));
        all.policies.insert(name, policy);
    }
    all
}
