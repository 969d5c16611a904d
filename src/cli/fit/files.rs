//! A cluster from files: nodes, pods, workloads, and the groups to place.

use std::collections::HashSet;

use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::api::runtime_class::RUNTIME_CLASS;
use crate::cli::documents::{Document, Unreadable, in_namespace};
use crate::cli::mutate::known::Known;
use crate::fit::{Cluster, DomainKeys, Fitted, MOST_PODS, domain_keys, fit};
use crate::model::{Group, IgnoredResources};
use crate::plan::simulate::Site;
use crate::rules::read_group;

pub struct FileCluster {
    pub(super) known: Known,
    pub(super) cluster: Cluster,
    /// Objects that lack the shape of their kind.
    pub(super) misshapen: Vec<Unreadable>,
    /// Objects with unreadable quantities.
    pub(super) unmeasured: Vec<Unreadable>,
}

impl FileCluster {
    /// Builds the cluster from all objects; some resources need not be on a node.
    pub fn of<'a>(documents: impl Iterator<Item = &'a Document> + Clone, ignored: IgnoredResources) -> Self {
        // Nodes and pods may be very many, and say nothing of groups.
        let says_of_groups = |document: &&Document| !document.is(NODE) && !document.is(POD);
        let mut misshapen = Vec::new();
        let known = Known::of(documents.clone().filter(says_of_groups), &mut misshapen);
        let mut cluster = Cluster::new(MOST_PODS);
        cluster.room.ignored = ignored;
        let mut unmeasured = Vec::new();
        let told: HashSet<_> = misshapen.iter().map(|(document, _)| std::ptr::from_ref(*document)).collect();
        let is_class = |document: &&Document| document.is(RUNTIME_CLASS);
        let documents = documents.clone().filter(is_class).chain(documents.filter(move |document| !is_class(document)));
        for document in documents.filter(|document| !told.contains(&std::ptr::from_ref(*document))) {
            let added = cluster.add(&document.api_version, &document.kind, &in_namespace(&document.json), &known);
            unmeasured.extend(added.err().map(|error| document.unreadable(&error)));
        }
        cluster.complete();
        let misshapen = misshapen.iter().map(|(document, error)| document.misshapen(error)).collect();
        Self { known, cluster, misshapen, unmeasured }
    }

    /// Like [`FileCluster::of`], but `None` without nodes. Adds only unmeasured objects to `unreadable`: the caller
    /// reports wrong shapes.
    pub fn with_nodes<'a>(
        documents: impl Iterator<Item = &'a Document> + Clone,
        ignored: IgnoredResources,
        unreadable: &mut Vec<Unreadable>,
    ) -> Option<Self> {
        let mut cluster = documents.clone().any(|document| document.is(NODE)).then(|| Self::of(documents, ignored))?;
        unreadable.append(&mut cluster.unmeasured);
        Some(cluster)
    }

    /// Returns the group that an object carries.
    pub fn group(&self, document: &Document) -> Option<Group> {
        read_group(document.carrier_kind()?, &document.stored(), &self.known.world).ok()
    }

    /// Returns the batches of a group that fit.
    pub fn fit(&self, group: &Group) -> Vec<Fitted> {
        fit(group, &self.layers(group), &self.cluster, usize::MAX)
    }

    /// Returns the nodes, and the pods of a group, for a simulation.
    pub fn site(&self, group: &Group) -> Site {
        self.cluster.site(group, self.layers(group))
    }

    /// Returns the node label of each known layer that a coordination names.
    pub(super) fn layers(&self, group: &Group) -> DomainKeys {
        domain_keys(group, |topology, layer| self.known.world.layer_key(topology, layer))
    }
}
