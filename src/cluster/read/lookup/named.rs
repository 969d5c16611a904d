//! Objects looked up by name beside groups: topologies, Grove sets, KAI PodGroups, StatefulSets, namespaces.

use std::sync::Arc;

use kube::api::ListParams;
use tokio::time::Instant;

use super::slots::Fresh;
use super::{LiveRead, Looked, Lookup, LookupError};
use crate::api::workload::{STATEFUL_SET, StatefulSet};
use crate::cluster::index::{LookedUp, SeenWorkload};
use crate::cluster::objects::api;
use crate::cluster::watch::sources::{NAMESPACE, Named, report};
use crate::cluster::watch::watched::Guarded;
use crate::model::object_name::{label_fault, subdomain_fault};
use crate::model::{GroupKey, Stance, WorkloadKey, WorkloadKind};

impl Lookup {
    /// Returns an object by its name, from the index, else by one live read of its kinds; `None` when that proves that it does
    /// not exist. The namespace is empty for cluster-scoped kinds.
    pub async fn looked_up<T: LookedUp>(&self, key: &GroupKey, deadline: Instant) -> Looked<Option<Arc<T>>> {
        let known = || self.index.read().looked_up::<T>(key);
        if let Some(found) = known() {
            return Ok(Some(found));
        }
        let read = async {
            for kind in T::KINDS.iter().copied() {
                let LiveRead::Found(found) = self.get::<Guarded<T::Object>>(kind, key, &key.name).await? else {
                    continue;
                };
                let (name, at, object) = report::<T>(kind, &found);
                let object = object.ok_or_else(|| LookupError::Shape(format!("{} {key}", kind.kind)))?;
                self.index.write_quietly(|index| index.read_outside(kind, name, at, object));
                break;
            }
            Ok(None)
        };
        let is_known = || known().map(|_| None);
        Box::pin(self.once((T::KINDS, key.clone()), Fresh::now(), is_known, read, deadline)).await?;
        Ok(known())
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
        let are_known = || (!unknown.iter().any(|name| is_unknown(name))).then_some(None);
        let read = async {
            let sets = api::<StatefulSet>(&self.client, STATEFUL_SET, Some(namespace));
            let found = if let [name] = *unknown {
                sets.get_opt(name).await.map(|set| set.into_iter().collect())
            } else {
                sets.list(&ListParams::default()).await.map(|list| list.items)
            };
            let found = found.map_err(|source| LookupError::read(STATEFUL_SET.plural, source))?;
            self.index.write(|index| {
                let found = found.iter().map(SeenWorkload::of);
                found.for_each(|seen| index.apply_workload(None, seen));
            });
            Ok(None)
        };
        let read = self.once((&[STATEFUL_SET], sets_of), Fresh::now(), are_known, read, deadline);
        if let Err(error) = Box::pin(read).await {
            tracing::warn!(namespace, sets = unknown.len(), %error, "StatefulSets cannot be read");
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
        let known = || self.index.read().stance(namespace).filter(|stance| stance.out.is_none()).map(Some);
        let read = async {
            let found = api::<Named>(&self.client, NAMESPACE, None).find(namespace).await;
            let found = found.map_err(|source| LookupError::read(NAMESPACE.kind, source))?;
            Ok(found.map(|found| {
                self.index.write(|index| index.namespace_read(&found));
                self.index.read().stance_of(&found)
            }))
        };
        let read = self.once((&[NAMESPACE], GroupKey::new("", namespace)), Fresh::now(), known, read, deadline);
        let stance = Box::pin(read).await.unwrap_or_else(|error| {
            tracing::warn!(namespace, %error, "namespace cannot be read: it is served as --mode says");
            None
        });
        stance.unwrap_or_else(flags)
    }
}
