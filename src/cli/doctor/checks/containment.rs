//! Checks of the ValidatingAdmissionPolicies that limit our own account, so that a stolen token can do little.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::cli::doctor::facts::{Facts, Policies, Target};
use crate::cli::doctor::finding::Findings;
use crate::cli::manifests::{Choice, Installation, Policy, authors, containment};

const MEND: &str = "`rolegate manifests --part containment`, with the options of the installation, prints them; until then whoever has \
                    the token of rolegate can do all that its rights allow";

/// Checks that each policy exists, is in force, and is unchanged.
pub fn contained(there: &Policies, facts: &Facts, found: &mut Findings) {
    let faults: Vec<_> = expected(&facts.target).iter().filter_map(|policy| fault(policy, there)).collect();
    if faults.is_empty() {
        found.ok("the policies over our own account are in force");
    }
    for fault in faults {
        found.warning(fault, MEND);
    }
}

/// A policy as an installation of this version may have it: the options of the installation are unknown.
struct Expected {
    name: String,
    policy: Value,
    /// The allowed expressions of each variable, by its name.
    variables: BTreeMap<String, BTreeSet<String>>,
    /// Whether every installation has it.
    always: bool,
}

/// Returns the policies of an installation.
fn expected(Target { namespace, name }: &Target) -> Vec<Expected> {
    let with = |chosen: Vec<Choice>| {
        let (name, namespace) = (name.clone(), namespace.clone());
        containment::policies(&Installation { name, namespace, ready_kinds: String::new(), chosen: Some(chosen) })
    };
    let least: BTreeMap<_, _> =
        with(Vec::new()).into_iter().map(|policy| (policy.suffix.clone(), object(&policy))).collect();
    let of = |policy: Policy| {
        let (name, least) = (format!("{name}-{}", policy.suffix), least.get(&policy.suffix));
        let policy = object(&policy);
        let mut known = variables(&policy);
        for (name, expressions) in least.map(variables).unwrap_or_default() {
            known.entry(name).or_default().extend(expressions);
        }
        Expected { name, policy, variables: known, always: least.is_some() }
    };
    with(Choice::ALL.into()).into_iter().map(of).collect()
}

/// Returns the fault of a policy.
fn fault(expected: &Expected, there: &Policies) -> Option<String> {
    let name = &expected.name;
    let Some(policy) = there.policies.get(name) else {
        return expected.always.then(|| format!("ValidatingAdmissionPolicy {name:?} is missing"));
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
fn differs(expected: &Expected, found: &Value) -> Option<&'static str> {
    const PARTS: &[&str] = &[
        "/spec/failurePolicy",
        "/spec/matchConditions",
        "/spec/matchConstraints/namespaceSelector",
        "/spec/matchConstraints/resourceRules",
        "/spec/validations",
    ];
    let part = |object: &Value, path: &str| object.pointer(path).filter(|part| !part.is_null()).cloned();
    let unlike = PARTS.iter().find(|path| part(&expected.policy, path) != part(found, path));
    let (known, there) = (&expected.variables, variables(found));
    let is_one_of = |(name, expressions): (&String, &BTreeSet<String>)| {
        known.get(name).is_some_and(|known| expressions.is_subset(known))
    };
    let same = known.len() == there.len() && there.iter().all(is_one_of);
    unlike.copied().or_else(|| (!same).then_some("/spec/variables"))
}

fn object(policy: &Policy) -> Value {
    json!({ "spec": policy.spec() })
}

/// Returns the expressions of each variable of a policy, by variable name.
fn variables(policy: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut known: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for variable in policy.pointer("/spec/variables").and_then(Value::as_array).into_iter().flatten() {
        if let (Some(name), Some(expression)) = (text(variable, "/name"), text(variable, "/expression")) {
            // What is watched is an option of the installation.
            let expression = if name == authors::READY_KINDS { "" } else { expression };
            known.entry(name.to_owned()).or_default().insert(expression.to_owned());
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
    for policy in expected(&Target { namespace: "rolegate-system".to_owned(), name: "rolegate".to_owned() }) {
        let Expected { name, mut policy, variables, .. } = policy;
        let one = |(name, expressions): (&String, &BTreeSet<String>)| json!({ "name": name, "expression": expressions.first() });
        policy["spec"]["variables"] = variables.iter().map(one).collect();
        all.bindings.insert(name.clone(), json!({ "spec": { "policyName": name, "validationActions": ["Deny"] } }));
        all.policies.insert(name, policy);
    }
    all
}
