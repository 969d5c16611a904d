//! The group that a pod names, and what is looked up beside groups: from the index, else by one live read.

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

/// Reads of reviews at a time.
const AT_A_TIME: usize = 16;

/// A group could not be read; the request must not be answered from ignorance.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The API server refused or failed.
    #[error("reading {kind} {key}: {source}")]
    Read {
        /// Kind that was read.
        kind: &'static str,
        /// Group that was looked for.
        key: GroupKey,
        /// What went wrong.
        source: Box<kube::Error>,
    },
    /// The object is there and does not have the expected shape.
    #[error("{kind} {key} does not have the expected shape")]
    Shape {
        /// Kind that was read.
        kind: &'static str,
        /// Group that was looked for.
        key: GroupKey,
    },
    /// No answer in time.
    #[error("reading {0}: no answer in time")]
    Timeout(GroupKey),
}

/// What a live read has found.
enum Got<T> {
    Found(T),
    Absent,
    /// A kind that is not served has no objects.
    NotServed,
}

/// Looks groups up.
#[derive(Clone)]
pub struct Lookup {
    client: Client,
    index: SharedIndex,
    groups: Slots<GroupKey>,
    /// What is looked up by name beside groups, by the kinds that may have it.
    named: Slots<(&'static [ObjectKind], GroupKey)>,
    /// How namespaces are served; `None` where there is none.
    namespaces: Slots<String, Option<Stance>>,
}

impl Lookup {
    /// Looks up in this index, else with this client.
    pub fn new(client: Client, index: SharedIndex) -> Self {
        // For reviews: the loop does not wait for them.
        let budget = Arc::new(Semaphore::new(AT_A_TIME));
        let (groups, named, namespaces) = (Slots::new(&budget), Slots::new(&budget), Slots::new(&budget));
        Self { client, index, groups, named, namespaces }
    }

    /// The index behind it.
    pub fn index(&self) -> &SharedIndex {
        &self.index
    }

    /// Live reads that are remembered.
    pub fn remembered(&self) -> usize {
        self.groups.remembered() + self.named.remembered() + self.namespaces.remembered()
    }

    /// The group, or `None` when a live read says that there is none. A live read ends by `deadline`, here and below.
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
        // Boxed, here and below: nearly all that is asked is known, and who asks would carry the room for a read.
        Box::pin(self.read_once(key, deadline, enough)).await
    }

    /// The group as it is now: by a live read that began at `since` or later. What a watch knows may be older than the pod
    /// that asks, and must not free it.
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

    /// Reads the group live unless the index, or the last live read, is `enough`. Those who ask together wait for one read.
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

    /// Reads what may carry a group: RoleBasedGroups of its name, the RoleCoordination that one of them names, the
    /// RoleCoordination of its name, and those that are known to speak of it. What is there goes into the index, what is gone
    /// out of it.
    ///
    /// # Errors
    ///
    /// When the API server fails, or an object does not have the expected shape.
    pub async fn read_live(&self, key: &GroupKey) -> Result<(), LookupError> {
        let index = self.index.clone();
        self.read_carriers(key, |kind| index.read().is_served(kind) != Some(false)).await
    }

    /// Reads the kinds that are worth asking for: one that is not served has no objects.
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
        // An annotation that was written just now.
        let named = rbgs.into_iter().flatten().filter_map(|carrier| match carrier {
            CarrierObject::Rbg(group) => group.coordinated_by.as_deref().map(Arc::<str>::from),
            CarrierObject::Coordination(_) => None,
        });
        let named: BTreeSet<_> = named.filter(|name| asked && !known.contains(name)).collect();
        try_join_all(named.into_iter().map(coordination)).await?;
        Ok(())
    }

    /// False for a version of a kind that is read in another one.
    fn reads(&self, kind: ObjectKind) -> bool {
        self.index.read().reads(kind) != Some(false)
    }

    /// Reads an object that may carry a group into the index; one that is not there goes out of it, unless it was made again
    /// meanwhile.
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

    /// One live read.
    async fn get<T>(&self, kind: ObjectKind, key: &GroupKey, name: &str) -> Result<Got<T>, LookupError>
    where
        T: Object + Clone + std::fmt::Debug + DeserializeOwned,
    {
        // What cannot be there is not asked for.
        if subdomain_fault(name).is_some() {
            return Ok(Got::Absent);
        }
        match api::<T>(&self.client, kind, Some(&key.namespace)).get(name).await {
            Ok(found) => Ok(Got::Found(found.object)),
            Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Ok(Got::Absent),
            // The answer is a text and no Status.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Got::NotServed),
            Err(source) => Err(LookupError::Read { kind: kind.kind, key: key.clone(), source: Box::new(source) }),
        }
    }
}
