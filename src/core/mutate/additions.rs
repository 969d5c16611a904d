//! Additions to a pod, collected from all steps before the patch is written: two steps may add entries to one map whose
//! parent is missing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use json_patch::jsonptr::Token;
use serde::Serialize;

use super::Patch;
use super::env::{EngineVariable, Variable, write};
use super::terms::{Term, merge};
use crate::api::{ObjectKind, Pod};
use crate::model::names;

pub type Entry = (Cow<'static, str>, String);

#[derive(Debug, Default)]
pub(super) struct Additions {
    /// Labels; equal existing ones are skipped.
    pub labels: Vec<Entry>,
    /// Annotations; equal existing ones are skipped.
    pub annotations: Vec<Entry>,
    /// The holder of the pod, for its annotation; `None` when it is not held.
    pub held_by: Option<String>,
    /// Kind of the carrier of the group of a held pod.
    pub carrier: Option<ObjectKind>,
    /// Group and role of a held pod.
    pub born_as: Option<String>,
    /// Entries of `nodeSelector` that a release wrote to this pod, or to the pod that it is a copy of.
    pub pinned: Option<BTreeSet<String>>,
    pub terms: Vec<Term>,
    /// Variables at the start of the environment of every container.
    pub variables: Vec<Variable>,
    /// Variables of the pod's engine, which follow them.
    pub engine: Vec<EngineVariable>,
    /// Shown to the creator of the pod.
    pub warnings: Vec<String>,
}

impl Additions {
    /// Returns the smallest patch that adds what the pod lacks, and all warnings.
    pub fn into_patch(self, pod: &Pod) -> (Patch, Vec<String>) {
        let Self { labels, mut annotations, held_by, carrier, born_as, pinned, terms, variables, engine, mut warnings } =
            self;
        let mut environment = Patch::default();
        let written = write(&mut environment, pod, &variables, &engine);
        let mut patch = Patch::default();
        let held = held_by.is_some();
        annotations.extend(held_by.map(|by| (names::HELD_BY.into(), by)));
        annotations.extend(born_as.map(|born_as| (names::BORN_AS.into(), born_as)));
        annotations.extend(carrier.map(|kind| (names::CARRIER.into(), kind.full_name())));
        annotations.extend(written.of_engine.map(|names| (names::ENGINE_VARIABLES.into(), names)));
        patch.set_entries("/metadata/labels", &pod.metadata.labels, borrowed(&labels));
        patch.set_entries("/metadata/annotations", &pod.metadata.annotations, borrowed(&annotations));
        if held && !pod.has_gate(names::GATE) {
            let gate = Gate { name: names::GATE };
            match pod.spec.scheduling_gates {
                Some(_) => patch.add("/spec/schedulingGates/-", gate),
                None => patch.add("/spec/schedulingGates", [gate]),
            }
        }
        if let Some(pinned) = pinned {
            patch.remove(format!("/metadata/annotations/{}", Token::new(names::PINNED).encoded()));
            pinned.iter().for_each(|key| patch.remove(format!("/spec/nodeSelector/{}", Token::new(key).encoded())));
        }
        merge(&mut patch, pod.spec.affinity.as_ref(), terms);
        patch.extend(environment);
        warnings.extend(written.warnings);
        (patch, warnings)
    }
}

#[derive(Serialize)]
struct Gate {
    name: &'static str,
}

fn borrowed(entries: &[Entry]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().map(|(key, value)| (key.as_ref(), value.as_str()))
}
