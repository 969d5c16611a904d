//! The layers of a cluster, from narrow to wide.

use std::collections::BTreeMap;

use super::FieldPath;
use crate::api::ObjectKind;
use crate::api::cluster_topology::{ClusterTopology, ClusterTopologySpec};

/// A layer of a cluster's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub name: String,
    /// Node label whose values are the domains.
    pub key: String,
}

/// A ClusterTopology independent of its spelling.
#[derive(Clone, Debug)]
pub struct Layers {
    /// Kind that the topology was read from.
    pub kind: ObjectKind,
    pub name: String,
    pub spec: ClusterTopologySpec,
    /// Path of the list of layers, in the user's spelling.
    pub at: FieldPath,
    pub deleting: bool,
}

impl Layers {
    /// Reads a ClusterTopology of either kind.
    pub fn parse(kind: ObjectKind, topology: &ClusterTopology) -> Self {
        let field =
            if topology.spec.layers.is_none() && topology.spec.layers_kep75.is_some() { "Layers" } else { "layers" };
        Self {
            kind,
            name: topology.metadata.display_name().to_owned(),
            spec: topology.spec.clone(),
            at: FieldPath::new("spec").child(field),
            deleting: topology.metadata.is_deleting(),
        }
    }

    /// Returns the layers from narrow to wide: by `topologyScope`, else in list order. Layers without a scope, which only an
    /// invalid topology has, come last.
    pub fn narrow_to_wide(&self) -> Vec<Layer> {
        let none = BTreeMap::new();
        let scope = self.spec.topology_scope.as_ref().unwrap_or(&none);
        let mut layers: Vec<_> = self.spec.layers().iter().collect();
        layers.sort_by_key(|layer| scope.get(&layer.name).copied().unwrap_or(i64::MAX));
        layers.into_iter().map(|layer| Layer { name: layer.name.clone(), key: layer.key.clone() }).collect()
    }

    pub fn layer(&self, name: &str) -> Option<Layer> {
        self.narrow_to_wide().into_iter().find(|layer| layer.name == name)
    }

    /// Returns `status.currentTopologyLevel`: `Host < TOR < Pod`.
    pub fn current_topology_level(&self) -> String {
        let names: Vec<_> = self.narrow_to_wide().into_iter().map(|layer| layer.name).collect();
        names.join(" < ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::cluster_topology::CLUSTER_TOPOLOGY;

    fn layers(spec: &serde_json::Value) -> Layers {
        let topology = serde_json::from_value(json!({"metadata": {"name": "t"}, "spec": spec})).expect("a topology");
        Layers::parse(CLUSTER_TOPOLOGY, &topology)
    }

    #[test]
    fn the_list_goes_from_narrow_to_wide() {
        let list = json!([{"name": "Host", "key": "a"}, {"name": "TOR", "key": "b"}, {"name": "Pod", "key": "c"}]);
        assert_eq!(layers(&json!({"layers": list})).current_topology_level(), "Host < TOR < Pod");
        assert_eq!(layers(&json!({"Layers": list})).current_topology_level(), "Host < TOR < Pod");
    }

    #[test]
    fn the_scope_says_otherwise() {
        let topology = layers(&json!({
            "layers": [{"name": "Pod", "key": "c"}, {"name": "Host", "key": "a"}, {"name": "TOR", "key": "b"}],
            "topologyScope": {"Host": 1, "TOR": 10, "Pod": 100},
        }));
        assert_eq!(topology.current_topology_level(), "Host < TOR < Pod");
        assert_eq!(topology.layer("TOR").map(|layer| layer.key), Some("b".to_owned()));
    }
}
