//! The reader of other objects: the group that a pod names, objects by name, and what rules look up. The index suffices where
//! the latest state is not needed; all else is read live.

mod answers;
mod gone;
mod named;
mod reads;
mod slots;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join_all;
use kube::Client;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::api::ObjectKind;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::cluster::index::{CarrierObject, Readable, SharedIndex};
use crate::cluster::objects::api;
use crate::cluster::read::lookup::slots::{Fresh, Slots};
use crate::cluster::watch::sources::{CARRIERS, ROLE_BASED_GROUPS, read_coordination, read_rbg};
use crate::cluster::watch::watched::Guarded;
use crate::model::object_name::subdomain_fault;
use crate::model::{Group, GroupKey, Stance};
use crate::rules::Options;

/// Concurrent reads of reviews: for the objects that pods name, and again for rules, which must not delay pods. The loop does
/// not wait for them.
const AT_A_TIME: usize = 16;

/// A failed read. The request must not be answered from ignorance.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error("reading {what}: {source}")]
    Read {
        /// Kind or object that was read.
        what: String,
        source: Box<kube::Error>,
    },
    #[error("{0} does not have the expected shape")]
    Shape(String),
    #[error("reading {0}: no answer in time")]
    Timeout(String),
    /// Not read.
    #[error("reading {0}: there are too many")]
    TooMany(String),
}

impl LookupError {
    fn read(what: impl Into<String>, source: kube::Error) -> Self {
        Self::Read { what: what.into(), source: Box::new(source) }
    }
}

/// What a lookup finds out.
pub type Looked<T> = Result<T, LookupError>;

/// Result of a live read.
enum LiveRead<T> {
    Found(T),
    Absent,
    /// A kind that is not served has no objects.
    NotServed,
}

/// How a namespace is served; `None` for a missing one, and for the other subjects of shared reads.
type Served = Option<Stance>;

/// Subject of a shared read: the kinds that may have it, and its name.
type Subject = (&'static [ObjectKind], GroupKey);

/// Looks up groups, named objects, and what rules need.
#[derive(Clone)]
pub struct Lookup {
    pub(in crate::cluster::read) client: Client,
    index: SharedIndex,
    options: Options,
    slots: Slots<Subject, Served>,
    /// Limit of concurrent reads for rules.
    for_rules: Arc<Semaphore>,
}

impl Lookup {
    /// Returns the options of rules.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns a lookup in this index, with this client for live reads, and these options of rules. Clones share one budget.
    pub fn new(client: Client, index: SharedIndex, options: Options) -> Self {
        Self { client, index, options, slots: Slots::new(AT_A_TIME), for_rules: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    pub fn index(&self) -> &SharedIndex {
        &self.index
    }

    /// Returns the number of live reads that are remembered.
    pub fn remembered(&self) -> usize {
        self.slots.remembered()
    }

    /// Returns what is `known`, else the result of the last live read if it is fresh enough, else that of `read`. Concurrent
    /// callers share one read.
    async fn once(
        &self,
        subject: Subject,
        fresh: Fresh,
        known: impl FnOnce() -> Option<Served>,
        read: impl Future<Output = Looked<Served>>,
        deadline: Instant,
    ) -> Looked<Served> {
        let late = LookupError::Timeout(subject.1.to_string());
        timeout_at(deadline, self.slots.once(subject, fresh, known, read)).await.unwrap_or(Err(late))
    }

    /// Returns the group, or `None` when a live read proves that it does not exist. Live reads end by `deadline`, here and
    /// below.
    pub async fn group(&self, key: &GroupKey, deadline: Instant) -> Looked<Option<Arc<Group>>> {
        let known = self.index.read().group(key);
        if known.is_some() {
            return Ok(known);
        }
        let known = || self.index.read().group(key).map(|_| None);
        // Boxed, here and below: most lookups need no read, and every caller would carry the state of one.
        Box::pin(self.read_group(key, Fresh::Young, known, deadline)).await
    }

    /// Returns the group by a live read that began at `since` or later. The watch may be behind the pod that asks, and must
    /// not free it.
    pub async fn group_since(&self, key: &GroupKey, since: Instant, deadline: Instant) -> Looked<Option<Arc<Group>>> {
        Box::pin(self.read_group(key, Fresh::Since(since), || None, deadline)).await
    }

    async fn read_group(
        &self,
        key: &GroupKey,
        fresh: Fresh,
        known: impl FnOnce() -> Option<Served>,
        deadline: Instant,
    ) -> Looked<Option<Arc<Group>>> {
        let read = async { self.read_live(key).await.map(|()| None) };
        self.once((CARRIERS, key.clone()), fresh, known, read, deadline).await?;
        Ok(self.index.read().group(key))
    }

    /// Reads the objects that may carry a group into the index, and removes missing ones: RoleBasedGroups of its name, the
    /// RoleCoordination that one of them names, the RoleCoordination of its name, and RoleCoordinations known to name it.
    pub async fn read_live(&self, key: &GroupKey) -> Looked<()> {
        let index = self.index.clone();
        self.read_carriers(key, |kind| index.read().is_served(kind) != Some(false)).await
    }

    /// Reads the kinds for which `ask_for` is true. A kind that is not served has no objects.
    async fn read_carriers(&self, key: &GroupKey, ask_for: impl Fn(ObjectKind) -> bool) -> Looked<()> {
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
    async fn carrier<T: Readable>(
        &self,
        kind: ObjectKind,
        key: &GroupKey,
        name: &str,
        read: impl Fn(&Guarded<T>) -> Option<CarrierObject>,
    ) -> Looked<Option<CarrierObject>> {
        let known = self.index.read().carrier(kind, &key.namespace, name);
        let found = match self.get::<Guarded<T>>(kind, key, name).await? {
            LiveRead::Found(found) => found,
            LiveRead::Absent => {
                known.iter().for_each(|known| self.index.write(|index| index.carrier_gone(known)));
                return Ok(None);
            }
            // The same objects may come back with their kind.
            LiveRead::NotServed => return Ok(None),
        };
        let carrier = read(&found).ok_or_else(|| LookupError::Shape(format!("{} {key}", kind.kind)))?;
        if known.is_none_or(|known| !known.is_same(&carrier)) {
            self.index.write(|index| index.apply_carrier(None, carrier.clone()));
        }
        Ok(Some(carrier))
    }

    async fn get<T: Readable>(&self, kind: ObjectKind, key: &GroupKey, name: &str) -> Looked<LiveRead<T>> {
        // Skip names that no object can have.
        if subdomain_fault(name).is_some() {
            return Ok(LiveRead::Absent);
        }
        match api::<T>(&self.client, kind, Some(&key.namespace)).get(name).await {
            Ok(found) => Ok(LiveRead::Found(found)),
            Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Ok(LiveRead::Absent),
            // The answer for an unserved kind is a text, no Status.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(LiveRead::NotServed),
            Err(source) => Err(LookupError::read(format!("{} {key}", kind.kind), source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::api::rbg::ROLE_BASED_GROUP;
    use crate::build::{self, typed, with};

    #[tokio::test]
    async fn a_group_whose_kind_is_not_served_may_come_back_with_it() {
        let absent = json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound" }).to_string();
        for (text, stays) in [(absent.as_str(), false), ("404 page not found\n", true)] {
            let body = text.as_bytes().to_vec();
            let service = tower::service_fn(move |_: Request<Body>| {
                let answer = Response::builder().status(404).body(Body::from(body.clone()));
                std::future::ready(Ok::<_, std::convert::Infallible>(answer.unwrap()))
            });
            let (index, key) = (SharedIndex::default(), GroupKey::new("ns", "pd"));
            let metadata = json!({ "namespace": "ns", "uid": "pd", "resourceVersion": "1" });
            let group = with(build::group("pd", &[], &json!([])), &json!({ "metadata": metadata }));
            index.write(|index| index.apply_carrier(None, CarrierObject::rbg(ROLE_BASED_GROUP, &typed(group))));
            let lookup = Lookup::new(Client::new(service, "ns"), index.clone(), Options::default());
            lookup.read_live(&key).await.unwrap();
            assert_eq!(index.read().group(&key).is_some(), stays, "{text}");
        }
    }
}
