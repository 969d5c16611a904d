//! Objects looked up by name beside groups: topologies, Grove sets, KAI PodGroups, StatefulSets, namespaces.

use std::sync::Arc;

use kube::api::ListParams;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{Got, Lookup, LookupError};
use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::pod_group::POD_GROUP;
use crate::api::workload::{STATEFUL_SET, StatefulSet};
use crate::api::{Object, ObjectKind};
use crate::cluster::failure::short;
use crate::cluster::index::{Index, LookedUp, SeenWorkload, version};
use crate::cluster::read::slots::Last;
use crate::cluster::watch::sources::{CLIQUE_SETS, NAMESPACE, Named, read_clique_set, read_pod_group, read_topology};
use crate::cluster::watch::watched::{Guarded, api};
use crate::model::object_name::{label_fault, subdomain_fault};
use crate::model::{CliqueSet, GangTree, GroupKey, Layers, Stance, WorkloadKey, WorkloadKind};

impl Lookup {
    /// Returns a ClusterTopology, or `None` when a live read proves that it does not exist.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn topology(&self, name: &str, deadline: Instant) -> Result<Option<Arc<Layers>>, LookupError> {
        let key = GroupKey::new("", name);
        self.named(&key, CLUSTER_TOPOLOGIES, deadline, |index| index.topology(name), read_topology).await
    }

    /// Returns a Grove set, or `None` when a live read proves that it does not exist.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn clique_set(&self, key: &GroupKey, deadline: Instant) -> Result<Option<Arc<CliqueSet>>, LookupError> {
        self.named(key, CLIQUE_SETS, deadline, |index| index.clique_set(key), read_clique_set).await
    }

    /// Returns a KAI PodGroup, or `None` when a live read proves that it does not exist.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn pod_group(&self, key: &GroupKey, deadline: Instant) -> Result<Option<Arc<GangTree>>, LookupError> {
        self.named(key, &[POD_GROUP], deadline, |index| index.pod_group(key), |_, object| read_pod_group(object)).await
    }

    /// Returns an object of the first of these kinds that has it, from the index, else by one live read.
    async fn named<T, A>(
        &self,
        key: &GroupKey,
        kinds: &'static [ObjectKind],
        deadline: Instant,
        known: impl Fn(&Index) -> Option<Arc<T>>,
        read: impl Fn(ObjectKind, &Guarded<A>) -> Option<LookedUp>,
    ) -> Result<Option<Arc<T>>, LookupError>
    where
        A: Object + Clone + std::fmt::Debug + DeserializeOwned,
    {
        if let Some(found) = known(&self.index.read()) {
            return Ok(Some(found));
        }
        let asked = Instant::now();
        let enough = |last: Option<&Last<()>>| {
            known(&self.index.read()).map(|_| ()).or_else(|| last.and_then(|last| last.since(asked)))
        };
        let read = async {
            for kind in kinds.iter().copied() {
                let Got::Found(found) = self.get::<Guarded<A>>(kind, key, &key.name).await? else { continue };
                let object = read(kind, &found).ok_or(LookupError::Shape { kind: kind.kind, key: key.clone() })?;
                let at = version(found.meta().resource_version.as_deref());
                self.index.write_quietly(|index| index.read_outside((&key.namespace, &key.name), at, object));
                break;
            }
            Ok(())
        };
        let live = async {
            self.named.once((kinds, key.clone()), enough, read).await?;
            Ok(known(&self.index.read()))
        };
        Box::pin(tokio::time::timeout_at(deadline, live))
            .await
            .unwrap_or_else(|_| Err(LookupError::Timeout(key.clone())))
    }

    /// Reads unknown StatefulSets of a namespace, so that pods can be numbered by their `spec.ordinals.start` and found by
    /// their Services. The pods of an unreadable set are numbered from 0, and held all the same. Returns true when some sets
    /// were unknown before.
    pub async fn stateful_sets(&self, namespace: &str, names: &[&str], deadline: Instant) -> bool {
        let is_unknown = |name: &str| {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let key = WorkloadKey { namespace, kind: WorkloadKind::StatefulSet, name };
            subdomain_fault(&key.name).is_none() && !self.index.read().knows_workload(&key)
        };
        let unknown: Vec<_> = names.iter().copied().filter(|name| is_unknown(name)).collect();
        if unknown.is_empty() {
            return false;
        }
        // One set is read by name, several by a list of the namespace.
        let sets_of = GroupKey::new(namespace, if let [name] = *unknown { name } else { "" });
        let asked = Instant::now();
        let enough = |last: Option<&Last<()>>| {
            let are_known = !unknown.iter().any(|name| is_unknown(name));
            are_known.then_some(()).or_else(|| last.and_then(|last| last.since(asked)))
        };
        let read = async {
            let sets = api::<StatefulSet>(&self.client, STATEFUL_SET, Some(namespace));
            let found = if let [name] = *unknown {
                sets.get_opt(name).await?.into_iter().collect()
            } else {
                sets.list(&ListParams::default()).await?.items
            };
            self.index.write(|index| {
                let found = found.iter().map(|set| SeenWorkload::of(&set.object));
                found.for_each(|seen| index.apply_workload(None, seen));
            });
            Ok::<_, kube::Error>(())
        };
        let read = self.named.once((&[STATEFUL_SET], sets_of), enough, read);
        match Box::pin(tokio::time::timeout_at(deadline, read)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(namespace, sets = unknown.len(), error = short(&error), "StatefulSets cannot be read");
            }
            Err(_) => tracing::warn!(namespace, sets = unknown.len(), "StatefulSets cannot be read in time"),
        }
        true
    }

    /// Returns how a namespace is served, by a live read: its watch has not reported it yet, or is behind its labels. The
    /// flags decide where it cannot be read.
    pub async fn stance(&self, namespace: &str, deadline: Instant) -> Stance {
        let flags = || self.index.read().stance("").unwrap_or_default();
        if label_fault(namespace).is_some() {
            return flags();
        }
        let asked = Instant::now();
        let enough = |last: Option<&Last<Option<Stance>>>| {
            let known = self.index.read().stance(namespace).filter(|stance| stance.out.is_none());
            known.map(Some).or_else(|| last.and_then(|last| last.since(asked)))
        };
        let read = async {
            let found = api::<Named>(&self.client, NAMESPACE, None).find(namespace).await?;
            Ok::<_, kube::Error>(found.map(|found| {
                self.index.write(|index| index.namespace_read(&found.object));
                self.index.read().stance_of(&found.object)
            }))
        };
        let stance = self.namespaces.once(namespace.to_owned(), enough, read);
        match Box::pin(tokio::time::timeout_at(deadline, stance)).await {
            Ok(Ok(stance)) => stance.unwrap_or_else(flags),
            Ok(Err(error)) => {
                tracing::warn!(
                    namespace,
                    error = short(&error),
                    "namespace cannot be read: it is served as --mode says"
                );
                flags()
            }
            Err(_) => {
                tracing::warn!(namespace, "namespace cannot be read in time: it is served as --mode says");
                flags()
            }
        }
    }
}
