//! What is to be added to a pod, gathered from every step before any of it is written: two steps may want entries of one
//! map, whose parent may not be there yet.

use std::borrow::Cow;
use std::collections::BTreeSet;

use json_patch::jsonptr::Token;
use serde::Serialize;

use super::Patch;
use super::env::{Variable, prepend};
use super::terms::{Term, merge};
use crate::api::{ObjectKind, Pod};
use crate::model::names;

/// Key and value of a label or annotation.
pub type Entry = (Cow<'static, str>, String);

/// What is to be added to a pod.
#[derive(Debug, Default)]
pub(super) struct Additions {
    /// Labels; those that have the value already cost nothing.
    pub labels: Vec<Entry>,
    /// Annotations; likewise.
    pub annotations: Vec<Entry>,
    /// Where to look for the reason when the pod is to be held.
    pub held_by: Option<String>,
    /// Kind of the object that carries the group of a pod which is to be held.
    pub carrier: Option<ObjectKind>,
    /// Group and role of a pod that is to be held.
    pub born_as: Option<String>,
    /// Entries of `nodeSelector` that were written when this pod, or the one that it is a copy of, was let go.
    pub pinned: Option<BTreeSet<String>>,
    /// Affinity to other pods.
    pub terms: Vec<Term>,
    /// Variables that stand first in every container.
    pub variables: Vec<Variable>,
    /// Shown to whoever creates the pod.
    pub warnings: Vec<String>,
}

impl Additions {
    /// The smallest patch that adds what the pod lacks, and all warnings.
    pub fn into_patch(self, pod: &Pod) -> (Patch, Vec<String>) {
        let Self { labels, mut annotations, held_by, carrier, born_as, pinned, terms, variables, mut warnings } = self;
        let mut patch = Patch::default();
        let held = held_by.is_some();
        annotations.extend(held_by.map(|by| (names::HELD_BY.into(), by)));
        annotations.extend(born_as.map(|born_as| (names::BORN_AS.into(), born_as)));
        annotations.extend(carrier.map(|kind| (names::CARRIER.into(), kind.full_name())));
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
        warnings.extend(prepend(&mut patch, pod, &variables));
        (patch, warnings)
    }
}

/// An entry of `spec.schedulingGates`.
#[derive(Serialize)]
struct Gate {
    name: &'static str,
}

fn borrowed(entries: &[Entry]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().map(|(key, value)| (key.as_ref(), value.as_str()))
}
