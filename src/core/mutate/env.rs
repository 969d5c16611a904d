//! Variables at the start of the environment of every container, so that the user's own can refer to them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Patch;
use crate::api::Pod;
use crate::api::pod::{Container, EnvVar};

/// Name and value.
pub type Variable = (String, String);

/// Puts variables first in every container and init container. Replaces existing ones of the same name, and returns a warning
/// for each container that had another value. Changes nothing where all are first already.
pub fn prepend(patch: &mut Patch, pod: &Pod, variables: &[Variable]) -> Vec<String> {
    if variables.is_empty() {
        return Vec::new();
    }
    let by_name: BTreeMap<_, _> = variables.iter().map(|variable| (variable.0.as_str(), variable)).collect();
    let lists = [("initContainers", &pod.spec.init_containers), ("containers", &pod.spec.containers)];
    let mut warnings = Vec::new();
    for (list, containers) in lists {
        for (index, container) in containers.iter().enumerate() {
            let at = format!("/spec/{list}/{index}/env");
            match &container.env {
                Some(env) => in_front(patch, &at, env, variables, &by_name),
                None => patch.add(at, variables.iter().map(entry).collect::<Vec<_>>()),
            }
            warnings.extend(replaced(container, &by_name));
        }
    }
    warnings
}

fn in_front(patch: &mut Patch, at: &str, env: &[EnvVar], variables: &[Variable], by_name: &BTreeMap<&str, &Variable>) {
    let in_place = env.iter().zip(variables).take_while(|(there, (name, _))| there.name == *name).count();
    for (position, (there, variable)) in env.iter().zip(variables).take(in_place).enumerate() {
        if !is(there, variable) {
            patch.replace(format!("{at}/{position}"), entry(variable));
        }
    }
    let elsewhere =
        env.iter().enumerate().skip(in_place).filter(|(_, there)| by_name.contains_key(there.name.as_str()));
    for (position, _) in elsewhere.rev() {
        patch.remove(format!("{at}/{position}"));
    }
    for (position, variable) in variables.iter().enumerate().skip(in_place) {
        patch.add(format!("{at}/{position}"), entry(variable));
    }
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    value: &'a str,
}

fn entry((name, value): &Variable) -> Entry<'_> {
    Entry { name, value }
}

fn is(there: &EnvVar, (name, value): &Variable) -> bool {
    there.name == *name && there.value.as_deref() == Some(value) && !there.has_source
}

/// Returns a warning about the replaced variables of a container that had another value.
fn replaced(container: &Container, variables: &BTreeMap<&str, &Variable>) -> Option<String> {
    let differs = |there: &&EnvVar| variables.get(there.name.as_str()).is_some_and(|variable| !is(there, variable));
    let names: BTreeSet<_> = container.env.iter().flatten().filter(differs).map(|there| there.name.as_str()).collect();
    let names: Vec<_> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("container {:?}: replaced by discovery: {}", container.name, names.join(", ")))
}
