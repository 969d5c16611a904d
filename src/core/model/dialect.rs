//! Dialects of KAI's PodGroup: the hierarchical PodGroup design, KAI before v0.15 and KAI since. They share a version and
//! differ in what `minMember` counts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::pod_group::PodGroupSpec;

/// Meaning of the counts in a PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The design: `minMember` counts child subgroups, in a leaf pods; constraints are in `topologyConstraints`.
    Proposal,
    /// KAI ≥ v0.15: `minMember` counts pods, `minSubGroup` child subgroups; each level has a `topologyConstraint`.
    Upstream,
    /// KAI v0.10 to v0.14: `minMember` counts pods on every level.
    Pods,
}

impl Dialect {
    /// Returns the dialect that a CustomResourceDefinition of PodGroups serves; `None` when its fields fit several or none.
    pub fn of_crd(crd: &Value) -> Option<Self> {
        let versions = crd.pointer("/spec/versions")?.as_array()?;
        let served = versions.iter().find(|version| version.get("name").and_then(Value::as_str) == Some("v2alpha2"))?;
        let fields = served.pointer("/schema/openAPIV3Schema/properties/spec/properties")?;
        Self::of_fields(|field| fields.get(field).is_some())
    }

    /// Returns the dialect of a `spec` that has these fields.
    pub fn of_fields(has: impl Fn(&str) -> bool) -> Option<Self> {
        match (has("topologyConstraints"), has("minSubGroup")) {
            (true, false) => Some(Self::Proposal),
            (false, true) => Some(Self::Upstream),
            (false, false) if has("minMember") => Some(Self::Pods),
            _ => None,
        }
    }

    /// Returns the dialect of a PodGroup by the fields that only one dialect has; [`Self::Pods`] has none of its own.
    pub fn of_object(spec: &PodGroupSpec) -> Option<Self> {
        let upstream = spec.min_sub_group.is_some()
            || spec.topology_constraint.is_some()
            || spec.preemptibility.is_some()
            || spec.sub_groups.iter().any(|group| group.min_sub_group.is_some() || group.topology_constraint.is_some());
        if upstream {
            return Some(Self::Upstream);
        }
        let parents: BTreeSet<_> = spec.sub_groups.iter().filter_map(|child| child.parent.as_deref()).collect();
        let counts_children = |group: &crate::api::pod_group::SubGroup| {
            group.min_member.is_some() && !group.name.is_empty() && parents.contains(group.name.as_str())
        };
        let proposal = spec.topology_constraints.is_some() || spec.sub_groups.iter().any(counts_children);
        proposal.then_some(Self::Proposal)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> PodGroupSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_podgroup_tells_its_dialect_by_the_fields_that_only_one_has() {
        let cases = [
            (json!({"minMember": 2, "subGroups": [{"name": "a", "minMember": 1}]}), None),
            (json!({"minSubGroup": 1}), Some(Dialect::Upstream)),
            (json!({"topologyConstraint": {}}), Some(Dialect::Upstream)),
            (json!({"preemptibility": "preemptible", "topologyConstraints": {}}), Some(Dialect::Upstream)),
            (json!({"topologyConstraints": {}}), Some(Dialect::Proposal)),
            (
                json!({"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "parent": "a"}]}),
                Some(Dialect::Proposal),
            ),
            (json!({"subGroups": [{"name": "a"}, {"name": "b", "parent": "a", "minMember": 1}]}), None),
        ];
        for (value, want) in cases {
            assert_eq!(Dialect::of_object(&spec(value.clone())), want, "{value}");
        }
    }

    /// Those that tell one: `tests/cases/podgroup/podgroup-min-member.yaml`.
    #[test]
    fn a_crd_of_other_fields_tells_no_dialect() {
        let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": {"topologyConstraint": {}}}}}});
        let crd = json!({"spec": {"versions": [{"name": "v2alpha2", "schema": schema}]}});
        assert_eq!([crd, json!({})].map(|crd| Dialect::of_crd(&crd)), [None; 2]);
    }
}
