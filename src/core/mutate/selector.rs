//! Selectors of rolegate's affinity terms, and their comparison with other terms.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::model::names;

/// The label values that a pod's own terms select by.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    pub group: String,
    pub role: String,
    pub batch: String,
}

impl Selector {
    /// Returns a term for the pods of the own batch (KEP-75, Pod Affinity Example).
    pub fn same_batch(&self, topology_key: &str) -> Value {
        term(topology_key, &[(names::KEP75_GROUP, "In", &self.group), (names::KEP75_BATCH, "In", &self.batch)])
    }

    /// Returns a term for the pods of other batches of the own role. KEP-75's example selects by role alone: its batches
    /// would repel themselves.
    pub fn other_batches_of_the_role(&self, topology_key: &str) -> Value {
        term(
            topology_key,
            &[
                (names::KEP75_GROUP, "In", &self.group),
                (names::KEP75_ROLE, "In", &self.role),
                (names::KEP75_BATCH, "NotIn", &self.batch),
            ],
        )
    }

    /// Reports whether `wide` selects every pod that `narrow` selects, on one topology key, by comparing their requirements
    /// one by one.
    pub fn narrows(narrow: &Value, wide: &Value) -> bool {
        match (Requirements::of(narrow), Requirements::of(wide)) {
            (Some(narrow), Some(wide)) => narrow.topology_key == wide.topology_key && wide.all.is_subset(&narrow.all),
            _ => false,
        }
    }
}

fn term(topology_key: &str, requirements: &[(&str, &str, &str)]) -> Value {
    let expressions: Vec<_> = requirements
        .iter()
        .map(|(key, operator, value)| json!({ "key": key, "operator": operator, "values": [value] }))
        .collect();
    json!({ "labelSelector": { "matchExpressions": expressions }, "topologyKey": topology_key })
}

/// Reports whether `present` is a term of rolegate for the purpose of `wanted`, whatever batch and domain it names: it has
/// the same requirements of the same group. A user's term with the batch label names no group.
pub(super) fn is_ours(present: &Value, wanted: &Value) -> bool {
    let shape = |term: &Value| -> Option<Vec<(String, String, Option<String>)>> {
        let expressions = term.pointer("/labelSelector/matchExpressions")?.as_array()?;
        expressions
            .iter()
            .map(|expression| {
                let key = expression.get("key")?.as_str()?;
                let value = expression.pointer("/values/0").and_then(Value::as_str);
                let value = value.filter(|_| key != names::KEP75_BATCH).map(str::to_owned);
                Some((key.to_owned(), expression.get("operator")?.as_str()?.to_owned(), value))
            })
            .collect()
    };
    shape(present).is_some() && shape(present) == shape(wanted)
}

/// A comparable form of a term.
#[derive(Debug)]
struct Requirements<'a> {
    topology_key: &'a str,
    all: BTreeSet<(&'a str, &'a str, BTreeSet<&'a str>)>,
}

impl<'a> Requirements<'a> {
    /// Returns `None` for a term with other relevant fields: other namespaces, or keys from the pod's labels.
    fn of(term: &'a Value) -> Option<Self> {
        let fields = term.as_object()?;
        let others = fields.iter().filter(|(field, _)| !matches!(field.as_str(), "labelSelector" | "topologyKey"));
        let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !others.into_iter().all(|(_, value)| is_empty(value)) {
            return None;
        }
        let selector = fields.get("labelSelector")?.as_object()?;
        let mut all = BTreeSet::new();
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        for (key, value) in labels {
            all.insert((key.as_str(), "In", BTreeSet::from([value.as_str()?])));
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        for expression in expressions {
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values: Option<BTreeSet<_>> = values.map(Value::as_str).collect();
            all.insert((expression.get("key")?.as_str()?, expression.get("operator")?.as_str()?, values?));
        }
        // An empty selector matches every pod, an absent one none: neither is compared.
        (!all.is_empty()).then_some(Self { topology_key: fields.get("topologyKey")?.as_str()?, all })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn own() -> Selector {
        Selector { group: "g".to_owned(), role: "p".to_owned(), batch: "c-1".to_owned() }
    }

    #[test]
    fn a_term_is_narrower_with_more_requirements() {
        let term = own().same_batch("host");
        let labels: BTreeMap<_, _> = [(names::KEP75_GROUP, "g"), (names::KEP75_BATCH, "c-1"), ("x", "y")].into();
        let narrower = json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": "host" });
        assert!(Selector::narrows(&narrower, &term) && !Selector::narrows(&term, &narrower));
        assert!(!Selector::narrows(&narrower, &own().same_batch("rack")));
        let elsewhere =
            json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": "host", "namespaces": ["x"] });
        assert!(!Selector::narrows(&elsewhere, &term));
        let of_none = json!({ "topologyKey": "host" });
        let of_all = json!({ "labelSelector": {}, "topologyKey": "host" });
        assert!(!Selector::narrows(&term, &of_none) && !Selector::narrows(&term, &of_all));
    }

    #[test]
    fn ours_are_known_by_shape_and_group() {
        let other_batch = Selector { batch: "c-2".to_owned(), ..own() };
        let other_group = Selector { group: "h".to_owned(), ..own() };
        assert!(is_ours(&other_batch.same_batch("rack"), &own().same_batch("host")));
        assert!(!is_ours(&other_group.same_batch("host"), &own().same_batch("host")));
        assert!(!is_ours(&own().other_batches_of_the_role("host"), &own().same_batch("host")));
        assert!(!is_ours(&json!({ "topologyKey": "host" }), &own().same_batch("host")));
    }
}
