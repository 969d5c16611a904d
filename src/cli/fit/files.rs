//! Files as a cluster: nodes, pods and workloads, and the groups that are to go there.

use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::cli::documents::Document;
use crate::cli::mutate::known::{Known, in_namespace};
use crate::fit::{Cluster, Fitted, MOST_PODS, domain_keys, fit};
use crate::model::Group;
use crate::rules::read_group;

/// What the files say.
pub struct FileCluster {
    pub(super) known: Known,
    pub(super) cluster: Cluster,
}

impl FileCluster {
    /// Takes in all objects; those that cannot be read are reported.
    pub fn of<'a>(documents: impl Iterator<Item = &'a Document> + Clone, unreadable: &mut Vec<String>) -> Self {
        // There may be very many of these two, and nothing about a group stands in them.
        let says_of_groups = |document: &&Document| document.kind != NODE.kind && document.kind != POD.kind;
        let known = Known::of(documents.clone().filter(says_of_groups), unreadable);
        let mut cluster = Cluster::new(MOST_PODS);
        for document in documents {
            let (file, kind, name) = (&document.source.name, &document.kind, &document.name);
            let added = cluster.add(&document.api_version, kind, in_namespace(&document.json), &known);
            unreadable.extend(added.err().map(|error| format!("{file}: unreadable: {kind} {name:?}: {error}")));
        }
        cluster.number();
        Self { known, cluster }
    }

    /// The same where there are nodes among them; what cannot be read is for others to say.
    pub fn with_nodes<'a>(documents: impl Iterator<Item = &'a Document> + Clone) -> Option<Self> {
        let is_node = |document: &Document| document.kind == NODE.kind && document.api_version == NODE.api_version();
        documents.clone().any(is_node).then(|| Self::of(documents, &mut Vec::new()))
    }

    /// The group that an object carries, in its namespace.
    pub fn group(&self, document: &Document) -> Option<Group> {
        read_group(document.carrier_kind()?, &in_namespace(&document.json).to_string(), &self.known.world).ok()
    }

    /// What fits of a group.
    pub fn fit(&self, group: &Group) -> Vec<Fitted> {
        let keys = domain_keys(group, |topology, layer| self.known.world.layer_key(topology, layer));
        fit(group, &keys, &self.cluster, usize::MAX)
    }
}
