//! The place of a Grove pod in its set. Only labels and the known prefix of a name are read: the name of one clique may be a
//! suffix of another's, and may contain numbers.

use super::identity::number;
use super::names;
use crate::api::{Meta, Pod};

/// Place of a pod in its Grove set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliquePod {
    /// Name of the set, in the pod's namespace.
    pub set: String,
    /// Index of the copy of the set, from 0.
    pub set_replica: u32,
    /// Name of the scaling group in the set, and index of its copy, from 0; `None` for a standalone clique.
    pub scaling_group: Option<(String, u32)>,
    /// Name of the clique in the set.
    pub clique: String,
    /// Index of the pod in the clique, from 0; `None` when neither label nor hostname tells it.
    pub index: Option<u32>,
}

impl CliquePod {
    /// Returns the Service of the set's copy, under which its pods have their names: that of the pod, else as Grove names it.
    pub fn service(&self, pod: &Pod) -> String {
        let own = pod.spec.subdomain.clone().filter(|subdomain| !subdomain.is_empty());
        own.unwrap_or_else(|| format!("{}-{}", self.set, self.set_replica))
    }
}

/// Returns the place of a pod in its Grove set; `None` for other pods, and for labels that contradict each other.
pub fn identify_clique_pod(pod: &Pod) -> Option<CliquePod> {
    let meta = &pod.metadata;
    let (set, full_name) = (label(meta, names::PART_OF)?, label(meta, names::GROVE_CLIQUE)?);
    let replica_label = names::GROVE_SET_REPLICA.iter().find_map(|key| label(meta, key)).and_then(number);
    let (set_replica, in_set) = split(full_name, set, replica_label)?;
    let (scaling_group, clique) = match label(meta, names::GROVE_SCALING_GROUP) {
        None => (None, in_set),
        Some(group_full_name) => {
            let replica_label = label(meta, names::GROVE_SCALING_GROUP_REPLICA).and_then(number);
            let (_, group) = split(group_full_name, set, Some(set_replica))?;
            let (replica, clique) = split(full_name, group_full_name, replica_label)?;
            (Some((group.to_owned(), replica)), clique)
        }
    };
    let in_hostname = || pod.spec.hostname.as_deref()?.strip_prefix(full_name)?.strip_prefix('-').and_then(number);
    Some(CliquePod {
        set: set.to_owned(),
        set_replica,
        scaling_group,
        clique: clique.to_owned(),
        index: label(meta, names::GROVE_POD_INDEX).and_then(number).or_else(in_hostname),
    })
}

/// Splits `<prefix>-<replica>-<rest>` into replica and rest. A replica known from a label must equal the one in the name.
fn split<'a>(name: &'a str, prefix: &str, told: Option<u32>) -> Option<(u32, &'a str)> {
    let (replica, rest) = name.strip_prefix(prefix)?.strip_prefix('-')?.split_once('-')?;
    let replica = number(replica).filter(|replica| told.is_none_or(|told| told == *replica))?;
    (!rest.is_empty()).then_some((replica, rest))
}

fn label<'a>(meta: &'a Meta, key: &str) -> Option<&'a str> {
    meta.label(key).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MEMBER: [(&str, &str); 5] = [
        ("app.kubernetes.io/part-of", "inf-0"),
        ("grove.io/podclique", "inf-0-1-decode-3-dleader"),
        ("grove.io/podgangset-replica-index", "1"),
        ("grove.io/podcliquescalinggroup", "inf-0-1-decode"),
        ("grove.io/podcliquescalinggroup-replica-index", "3"),
    ];

    /// Where labels agree: `tests/identities` and `tests/cases/discovery/scopes.yaml`.
    #[test]
    fn a_pod_whose_labels_contradict_each_other_has_no_place_and_a_foreign_hostname_tells_no_index() {
        let place = |labels: &[(&str, &str)]| {
            let labels: std::collections::BTreeMap<_, _> = labels.iter().copied().collect();
            let pod = json!({"metadata": {"labels": labels}, "spec": {"hostname": "other-7"}});
            identify_clique_pod(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(place(&MEMBER).unwrap().index, None);
        assert_eq!((place(&[]), place(&MEMBER[1..])), (None, None), "foreign");
        for (label, wrong) in [(2, "0"), (3, "inf-0-1-prefill")] {
            let mut labels = MEMBER;
            labels[label].1 = wrong;
            assert_eq!(place(&labels), None, "{}", labels[label].0);
        }
    }
}
