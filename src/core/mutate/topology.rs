//! The finalizer of a ClusterTopology, which keeps it while something refers to it (KEP-75, Resource Protection).

use serde_json::{Value, json};

use super::Patch;
use crate::api::ClusterTopology;
use crate::model::names::TOPOLOGY_FINALIZER;

/// Returns the patch that adds the finalizer at creation.
pub fn protect_topology(topology: &ClusterTopology) -> Patch {
    let mut patch = Patch::default();
    let finalizers = &topology.metadata.finalizers;
    if finalizers.is_empty() {
        patch.add("/metadata/finalizers", vec![TOPOLOGY_FINALIZER]);
    } else if !finalizers.iter().any(is_ours) {
        patch.add("/metadata/finalizers/-", TOPOLOGY_FINALIZER);
    }
    patch
}

/// Returns the JSON Merge Patch that adds the finalizer to a stored topology; `None` when it has one.
pub fn add_finalizer(finalizers: &[String], resource_version: Option<&str>) -> Option<Value> {
    let ours = TOPOLOGY_FINALIZER.to_owned();
    let all: Vec<_> = finalizers.iter().chain([&ours]).collect();
    (!finalizers.iter().any(is_ours)).then(|| set(&all, resource_version))
}

/// Returns the JSON Merge Patch that removes the finalizer from a stored topology; `None` when it has none.
pub fn remove_finalizer(finalizers: &[String], resource_version: Option<&str>) -> Option<Value> {
    let others: Vec<_> = finalizers.iter().filter(|finalizer| !is_ours(finalizer)).collect();
    (others.len() < finalizers.len()).then(|| set(&others, resource_version))
}

fn is_ours(finalizer: &String) -> bool {
    finalizer == TOPOLOGY_FINALIZER
}

/// A merge patch replaces the whole list: the version makes it fail after a concurrent change.
fn set(finalizers: &[&String], resource_version: Option<&str>) -> Value {
    json!({ "metadata": { "resourceVersion": resource_version, "finalizers": finalizers } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finalizers_of_others_stay() {
        let (theirs, ours) = ("example.com/theirs".to_owned(), TOPOLOGY_FINALIZER.to_owned());
        let (alone, both) = ([theirs.clone()], [theirs, ours]);
        let patch = |finalizers: &[String]| Some(set(&Vec::from_iter(finalizers), Some("7")));
        assert_eq!(add_finalizer(&alone, Some("7")), patch(&both));
        assert_eq!(remove_finalizer(&both, Some("7")), patch(&alone));
        assert_eq!((add_finalizer(&both, None), remove_finalizer(&alone, None)), (None, None));
    }
}
