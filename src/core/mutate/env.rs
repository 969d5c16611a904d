//! Variables at the start of the environment of every container, so that the user's own can refer to them.
//!
//! Those of discovery replace the user's of the same name: the names are its own, and a value that came with a template or a copy
//! is wrong. Those of an engine give way: the names are the engine's, and a user who sets one means it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Patch;
use crate::api::Pod;
use crate::api::pod::{Container, EnvVar};
use crate::model::names;

/// Name and value.
pub type Variable = (String, String);

/// A variable that an engine reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineVariable {
    pub name: String,
    pub value: EnvValue,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvValue {
    Text(String),
    /// Path of a field of the pod, which kubelet reads.
    Field(&'static str),
}

/// What becomes of the variables of a pod's containers.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub warnings: Vec<String>,
    /// The variables that each container has for its engine; `None` without any.
    pub of_engine: Option<String>,
}

/// Puts variables first in every container and init container. Replaces existing ones of the same name, and returns a warning
/// for each container that had another value. Changes nothing where all are first already.
pub fn prepend(patch: &mut Patch, pod: &Pod, variables: &[Variable]) -> Vec<String> {
    write(patch, pod, variables, &[]).warnings
}

/// Puts the variables of discovery and then those of the engine first in every container and init container.
pub(super) fn write(patch: &mut Patch, pod: &Pod, discovery: &[Variable], engine: &[EngineVariable]) -> Written {
    let mut written = Written::default();
    if discovery.is_empty() && engine.is_empty() {
        return written;
    }
    let of_engine: BTreeSet<_> = engine.iter().map(|variable| variable.name.as_str()).collect();
    let (discovery, given_way): (Vec<_>, Vec<_>) =
        discovery.iter().partition(|(name, _)| !of_engine.contains(name.as_str()));
    if !given_way.is_empty() {
        let names: Vec<_> = given_way.iter().map(|(name, _)| name.as_str()).collect();
        written.warnings.push(format!("discovery gives way to the engine of the pod: {}", names.join(", ")));
    }
    let first: Vec<_> = discovery.into_iter().map(Entry::of_discovery).collect();
    let by_name: BTreeMap<_, _> = first.iter().map(|entry| (entry.name, entry)).collect();
    let recorded = Recorded::of(pod);
    let lists = [("initContainers", &pod.spec.init_containers), ("containers", &pod.spec.containers)];
    let mut record = Vec::new();
    for (list, containers) in lists {
        for (index, container) in containers.iter().enumerate() {
            let ours = recorded.of_container(&container.name);
            let is_users =
                |name: &str| !ours.contains(name) && container.env.iter().flatten().any(|own| own.name == name);
            let (kept, given): (Vec<_>, Vec<_>) = engine.iter().partition(|variable| is_users(&variable.name));
            let names: Vec<_> = given.iter().map(|variable| variable.name.as_str()).collect();
            if !names.is_empty() {
                record.push(format!("{}={}", container.name, names.join(",")));
            }
            written.warnings.extend(replaced(container, &by_name));
            written.warnings.extend(kept_by(container, &kept));
            let of_engine = given.into_iter().map(Entry::of_engine);
            let wanted: Vec<_> = first.iter().copied().chain(of_engine).collect();
            let at = format!("/spec/{list}/{index}/env");
            match &container.env {
                Some(env) => {
                    let is_ours = |name: &str| {
                        by_name.contains_key(name)
                            || ours.contains(name)
                            || wanted.iter().skip(first.len()).any(|entry| entry.name == name)
                    };
                    in_front(patch, &at, env, &wanted, is_ours);
                }
                None if wanted.is_empty() => {}
                None => patch.add(at, wanted),
            }
        }
    }
    written.of_engine = (!record.is_empty()).then(|| record.join(";"));
    written
}

/// The variables that the containers of a pod have for its engine, as its annotation records them.
#[derive(Debug, Default)]
pub(super) struct Recorded<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Recorded<'a> {
    pub fn of(pod: &'a Pod) -> Self {
        let text = pod.metadata.annotation(names::ENGINE_VARIABLES).unwrap_or_default();
        let containers = text.split(';').filter_map(|entry| entry.split_once('='));
        Self(containers.map(|(container, names)| (container, names.split(',').collect())).collect())
    }

    pub fn of_container(&self, container: &str) -> BTreeSet<&'a str> {
        self.0.get(container).cloned().unwrap_or_default()
    }
}

/// Puts the wanted variables first, and takes out others that are ours: of the same name, or such as the container had for an engine
/// and has no longer.
fn in_front(patch: &mut Patch, at: &str, env: &[EnvVar], wanted: &[Entry<'_>], is_ours: impl Fn(&str) -> bool) {
    let in_place = env.iter().zip(wanted).take_while(|(there, entry)| there.name == *entry.name).count();
    for (position, (there, entry)) in env.iter().zip(wanted).take(in_place).enumerate() {
        if !entry.is(there) {
            patch.replace(format!("{at}/{position}"), entry);
        }
    }
    let elsewhere = env.iter().enumerate().skip(in_place).filter(|(_, there)| is_ours(&there.name));
    for (position, _) in elsewhere.rev() {
        patch.remove(format!("{at}/{position}"));
    }
    for (position, entry) in wanted.iter().enumerate().skip(in_place) {
        patch.add(format!("{at}/{position}"), entry);
    }
}

/// An entry of `env`.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_from: Option<ValueFrom>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ValueFrom {
    field_ref: FieldRef,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FieldRef {
    api_version: &'static str,
    field_path: &'static str,
}

impl<'a> Entry<'a> {
    fn of_discovery((name, value): &'a Variable) -> Self {
        Self { name, value: Some(value), value_from: None }
    }

    fn of_engine(EngineVariable { name, value }: &'a EngineVariable) -> Self {
        match value {
            EnvValue::Text(value) => Self { name, value: Some(value), value_from: None },
            EnvValue::Field(field_path) => {
                let field_ref = FieldRef { api_version: "v1", field_path };
                Self { name, value: None, value_from: Some(ValueFrom { field_ref }) }
            }
        }
    }

    /// Reports whether a variable has this value. Of a field, the path is not compared.
    fn is(&self, there: &EnvVar) -> bool {
        there.name == self.name && there.value.as_deref() == self.value && there.has_source == self.value_from.is_some()
    }
}

/// Returns a warning about the replaced variables of a container that had another value.
fn replaced(container: &Container, by_name: &BTreeMap<&str, &Entry<'_>>) -> Option<String> {
    let differs = |there: &&EnvVar| by_name.get(there.name.as_str()).is_some_and(|entry| !entry.is(there));
    let names: BTreeSet<_> = container.env.iter().flatten().filter(differs).map(|there| there.name.as_str()).collect();
    let names: Vec<_> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("container {:?}: replaced by discovery: {}", container.name, names.join(", ")))
}

/// Returns a warning about the variables of a container that its user set to another value than the engine would get.
fn kept_by(container: &Container, engine: &[&EngineVariable]) -> Option<String> {
    let own = |name: &str| container.env.iter().flatten().rev().find(|there| there.name == name);
    let differs =
        |variable: &&&EngineVariable| own(&variable.name).is_some_and(|there| !Entry::of_engine(variable).is(there));
    let would_be: Vec<_> = engine
        .iter()
        .filter(differs)
        .map(|variable| match &variable.value {
            EnvValue::Text(value) => format!("{}={value}", variable.name),
            EnvValue::Field(path) => format!("{}=({path})", variable.name),
        })
        .collect();
    (!would_be.is_empty()).then(|| {
        format!(
            "container {:?}: keeps its own value instead of that of the engine: {}",
            container.name,
            would_be.join(", ")
        )
    })
}
