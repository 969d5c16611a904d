//! The group that a pod names, and other objects looked up by name: from the index, else by one live read.

mod gone;
mod named;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join_all;
use kube::Client;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::{Object, ObjectKind};
use crate::cluster::index::{CarrierObject, SharedIndex};
use crate::cluster::read::slots::{Last, Slots};
use crate::cluster::watch::sources::{ROLE_BASED_GROUPS, read_coordination, read_rbg};
use crate::cluster::watch::watched::{Guarded, api};
use crate::model::object_name::subdomain_fault;
use crate::model::{Group, GroupKey, Stance};

/// Concurrent reads of reviews.
const AT_A_TIME: usize = 16;

/// A failed read. The request must not be answered from ignorance.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error("reading {kind} {key}: {source}")]
    Read {
        kind: &'static str,
        /// Group or object that was looked up.
        key: GroupKey,
        source: Box<kube::Error>,
    },
    #[error("{kind} {key} does not have the expected shape")]
    Shape {
        kind: &'static str,
        /// Group or object that was looked up.
        key: GroupKey,
    },
    #[error("reading {0}: no answer in time")]
    Timeout(GroupKey),
}

/// Result of a live read.
enum Got<T> {
    Found(T),
    Absent,
    /// A kind that is not served has no objects.
    NotServed,
}

/// Looks up groups and named objects.
#[derive(Clone)]
pub struct Lookup {
    client: Client,
    index: SharedIndex,
    groups: Slots<GroupKey>,
    /// Objects other than groups, by the kinds that may have them.
    named: Slots<(&'static [ObjectKind], GroupKey)>,
    /// How namespaces are served; `None` for a missing namespace.
    namespaces: Slots<String, Option<Stance>>,
}

impl Lookup {
    /// Returns a lookup in this index, with this client for live reads.
    pub fn new(client: Client, index: SharedIndex) -> Self {
        // Only for reviews: the loop does not wait for them.
        let budget = Arc::new(Semaphore::new(AT_A_TIME));
        let (groups, named, namespaces) = (Slots::new(&budget), Slots::new(&budget), Slots::new(&budget));
        Self { client, index, groups, named, namespaces }
    }

    pub fn index(&self) -> &SharedIndex {
        &self.index
    }

    /// Returns the number of live reads that are remembered.
    pub fn remembered(&self) -> usize {
        self.groups.remembered() + self.named.remembered() + self.namespaces.remembered()
    }

    /// Returns the group, or `None` when a live read proves that it does not exist. Live reads end by `deadline`, here and
    /// below.
    ///
    /// # Errors
    ///
    /// When it cannot be read: absence is not proven.
    pub async fn group(&self, key: &GroupKey, deadline: Instant) -> Result<Option<Arc<Group>>, LookupError> {
        if let Some(group) = self.index.read().group(key) {
            return Ok(Some(group));
        }
        let enough = |last: Option<&Last<()>>| {
            (self.index.read().group(key).is_some() || last.is_some_and(Last::is_young)).then_some(())
        };
        // Boxed, here and below: most lookups need no read, and every caller would carry the state of one.
        Box::pin(self.read_once(key, deadline, enough)).await
    }

    /// Returns the group by a live read that began at `since` or later. The watch may be behind the pod that asks, and must
    /// not free it.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn group_since(
        &self,
        key: &GroupKey,
        since: Instant,
        deadline: Instant,
    ) -> Result<Option<Arc<Group>>, LookupError> {
        Box::pin(self.read_once(key, deadline, |last| last.and_then(|last| last.since(since)))).await
    }

    /// Reads the group live unless the index, or the last live read, is `enough`. Concurrent callers share one read.
    async fn read_once(
        &self,
        key: &GroupKey,
        deadline: Instant,
        enough: impl FnOnce(Option<&Last<()>>) -> Option<()>,
    ) -> Result<Option<Arc<Group>>, LookupError> {
        let read = async {
            self.groups.once(key.clone(), enough, self.read_live(key)).await?;
            Ok(self.index.read().group(key))
        };
        tokio::time::timeout_at(deadline, read).await.unwrap_or_else(|_| Err(LookupError::Timeout(key.clone())))
    }

    /// Reads the objects that may carry a group into the index, and removes missing ones: RoleBasedGroups of its name, the
    /// RoleCoordination that one of them names, the RoleCoordination of its name, and RoleCoordinations known to name it.
    ///
    /// # Errors
    ///
    /// When the API server fails, or an object does not have the expected shape.
    pub async fn read_live(&self, key: &GroupKey) -> Result<(), LookupError> {
        let index = self.index.clone();
        self.read_carriers(key, |kind| index.read().is_served(kind) != Some(false)).await
    }

    /// Reads the kinds for which `ask_for` is true. A kind that is not served has no objects.
    async fn read_carriers(&self, key: &GroupKey, ask_for: impl Fn(ObjectKind) -> bool) -> Result<(), LookupError> {
        let rbgs = ROLE_BASED_GROUPS.iter().copied().filter(|kind| self.reads(*kind) && ask_for(*kind));
        let rbgs = rbgs.map(|kind| self.carrier(kind, key, &key.name, move |found| read_rbg(kind, found)));
        let coordination =
            |name: Arc<str>| async move { self.carrier(ROLE_COORDINATION, key, &name, read_coordination).await };
        let asked = ask_for(ROLE_COORDINATION);
        let mut known = self.index.read().coordinations_of(key);
        known.insert(key.name.clone());
        let coordinations = known.iter().filter(|_| asked).cloned().map(coordination);
        let (rbgs, _) = tokio::try_join!(try_join_all(rbgs), try_join_all(coordinations))?;
        // An annotation may have been written just now.
        let named = rbgs.into_iter().flatten().filter_map(|carrier| match carrier {
            CarrierObject::Rbg(group) => group.coordinated_by.as_deref().map(Arc::<str>::from),
            CarrierObject::Coordination(_) => None,
        });
        let named: BTreeSet<_> = named.filter(|name| asked && !known.contains(name)).collect();
        try_join_all(named.into_iter().map(coordination)).await?;
        Ok(())
    }

    /// Reports whether a kind is read in its version.
    fn reads(&self, kind: ObjectKind) -> bool {
        self.index.read().reads(kind) != Some(false)
    }

    /// Reads an object that may carry a group into the index. Removes a missing one, unless it was created again meanwhile.
    async fn carrier<T>(
        &self,
        kind: ObjectKind,
        key: &GroupKey,
        name: &str,
        read: impl Fn(&Guarded<T>) -> Option<CarrierObject>,
    ) -> Result<Option<CarrierObject>, LookupError>
    where
        T: Object + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let known = self.index.read().carrier(kind, &key.namespace, name);
        let found = match self.get::<Guarded<T>>(kind, key, name).await? {
            Got::Found(found) => found,
            Got::Absent => {
                known.iter().for_each(|known| self.index.write(|index| index.carrier_gone(known)));
                return Ok(None);
            }
            // The same objects may come back with their kind.
            Got::NotServed => return Ok(None),
        };
        let carrier = read(&found).ok_or_else(|| LookupError::Shape { kind: kind.kind, key: key.clone() })?;
        if known.is_none_or(|known| !known.is_same(&carrier)) {
            self.index.write(|index| index.apply_carrier(None, carrier.clone()));
        }
        Ok(Some(carrier))
    }

    async fn get<T>(&self, kind: ObjectKind, key: &GroupKey, name: &str) -> Result<Got<T>, LookupError>
    where
        T: Object + Clone + std::fmt::Debug + DeserializeOwned,
    {
        // Skip names that no object can have.
        if subdomain_fault(name).is_some() {
            return Ok(Got::Absent);
        }
        match api::<T>(&self.client, kind, Some(&key.namespace)).get(name).await {
            Ok(found) => Ok(Got::Found(found.object)),
            Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Ok(Got::Absent),
            // The answer for an unserved kind is a text, no Status.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Got::NotServed),
            Err(source) => Err(LookupError::Read { kind: kind.kind, key: key.clone(), source: Box::new(source) }),
        }
    }
}
