//! Affinity terms, and their merge into the affinity of the user.

use serde_json::{Map, Value, json};

use super::Patch;
use super::selector::{Selector, is_ours};
use crate::api::affinity::{Affinity, PodTerms};
use crate::model::Strength;

/// A list of terms in `spec.affinity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Near(Strength),
    Far(Strength),
}

/// One term and its list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    list: List,
    term: Value,
}

impl List {
    const fn parent(self) -> &'static str {
        match self {
            Self::Near(_) => "podAffinity",
            Self::Far(_) => "podAntiAffinity",
        }
    }

    const fn field(self) -> &'static str {
        match self {
            Self::Near(Strength::Hard) | Self::Far(Strength::Hard) => "requiredDuringSchedulingIgnoredDuringExecution",
            _ => "preferredDuringSchedulingIgnoredDuringExecution",
        }
    }

    const fn weight(self) -> Option<u8> {
        match self {
            Self::Near(Strength::Soft(weight)) | Self::Far(Strength::Soft(weight)) => Some(weight),
            _ => None,
        }
    }

    fn terms(self, affinity: &Affinity) -> Option<&PodTerms> {
        match self {
            Self::Near(_) => affinity.pod_affinity.as_ref(),
            Self::Far(_) => affinity.pod_anti_affinity.as_ref(),
        }
    }

    fn present(self, terms: &PodTerms) -> Option<&Vec<Value>> {
        if self.weight().is_some() { terms.preferred.as_ref() } else { terms.required.as_ref() }
    }
}

impl Term {
    pub fn new(list: List, term: Value) -> Self {
        Self { list, term }
    }

    /// Returns the entry of its list.
    fn entry(&self) -> Value {
        match self.list.weight() {
            Some(weight) => json!({ "weight": weight, "podAffinityTerm": self.term }),
            None => self.term.clone(),
        }
    }

    /// Reports whether an existing required term implies this one. A required term needs no preference as well, and each term
    /// costs the scheduler time for every pod.
    fn is_implied_by(&self, affinity: &Affinity) -> bool {
        let required = self.list.terms(affinity).and_then(|terms| terms.required.as_ref());
        required.into_iter().flatten().any(|present| match self.list {
            List::Near(_) => Selector::narrows(present, &self.term),
            List::Far(_) => Selector::narrows(&self.term, present),
        })
    }

    /// Returns the term of a weighted entry.
    fn without_weight(entry: &Value) -> &Value {
        entry.get("podAffinityTerm").unwrap_or(entry)
    }
}

/// Adds terms to the affinity of the user. Creates missing parents, appends to lists, replaces outdated terms of rolegate,
/// and skips existing or implied ones.
pub(super) fn merge(patch: &mut Patch, affinity: Option<&Affinity>, terms: Vec<Term>) {
    let nothing = Affinity::default();
    let present = affinity.unwrap_or(&nothing);
    let terms: Vec<_> = terms.into_iter().filter(|term| !term.is_implied_by(present)).collect();
    let mut whole = Map::new();
    for parent in ["podAffinity", "podAntiAffinity"] {
        let of_parent: Vec<_> = terms.iter().filter(|term| term.list.parent() == parent).collect();
        let Some(first) = of_parent.first() else { continue };
        match first.list.terms(present) {
            Some(lists) => of_parent.iter().for_each(|term| into_list(patch, lists, term)),
            None => _ = whole.insert(parent.to_owned(), new_lists(&of_parent)),
        }
    }
    match affinity {
        None if whole.is_empty() => {}
        None => patch.add("/spec/affinity", whole),
        Some(_) => whole.into_iter().for_each(|(parent, lists)| patch.add(format!("/spec/affinity/{parent}"), lists)),
    }
}

fn new_lists(terms: &[&Term]) -> Value {
    let mut lists = Map::new();
    for term in terms {
        if let Value::Array(list) = lists.entry(term.list.field()).or_insert_with(|| json!([])) {
            list.push(term.entry());
        }
    }
    Value::Object(lists)
}

fn into_list(patch: &mut Patch, lists: &PodTerms, term: &Term) {
    let at = format!("/spec/affinity/{}/{}", term.list.parent(), term.list.field());
    let Some(list) = term.list.present(lists) else { return patch.add(at, json!([term.entry()])) };
    let entry = term.entry();
    if list.contains(&entry) {
        return;
    }
    match list.iter().position(|present| is_ours(Term::without_weight(present), &term.term)) {
        Some(position) => patch.replace(format!("{at}/{position}"), entry),
        None => patch.add(format!("{at}/-"), entry),
    }
}
