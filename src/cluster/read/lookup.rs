//! The group that a pod names: from the index, else by one live read.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join_all;
use kube::Client;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::pod_group::POD_GROUP;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::workload::{STATEFUL_SET, StatefulSet};
use crate::api::{Object, ObjectKind, PodGroup};
use crate::cluster::failure::short;
use crate::cluster::index::{CarrierObject, Index, LookedUp, SeenWorkload, SharedIndex, version};
use crate::cluster::read::slots::{Last, Slots};
use crate::cluster::watch::sources::{
    CARRIERS, CLIQUE_SETS, NAMESPACE, Named, ROLE_BASED_GROUPS, read_clique_set, read_coordination, read_pod_group,
    read_rbg, read_topology,
};
use crate::cluster::watch::watched::{Guarded, api};
use crate::model::object_name::{label_fault, subdomain_fault};
use crate::model::{CliqueSet, GangTree, Group, GroupKey, Layers, Stance, WorkloadKey, WorkloadKind};

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

    /// A ClusterTopology, or `None` when a live read says that there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn topology(&self, name: &str, deadline: Instant) -> Result<Option<Arc<Layers>>, LookupError> {
        let key = GroupKey::new("", name);
        self.named(&key, CLUSTER_TOPOLOGIES, deadline, |index| index.topology(name), read_topology).await
    }

    /// A Grove set, or `None` when a live read says that there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn clique_set(&self, key: &GroupKey, deadline: Instant) -> Result<Option<Arc<CliqueSet>>, LookupError> {
        self.named(key, CLIQUE_SETS, deadline, |index| index.clique_set(key), read_clique_set).await
    }

    /// A KAI PodGroup, or `None` when a live read says that there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn pod_group(&self, key: &GroupKey, deadline: Instant) -> Result<Option<Arc<GangTree>>, LookupError> {
        self.named(key, &[POD_GROUP], deadline, |index| index.pod_group(key), |_, object| read_pod_group(object)).await
    }

    /// An object of the first of these kinds that has it: from the index, else by one live read.
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

    /// Makes sure that StatefulSets of a namespace are known before pods are numbered by their `spec.ordinals.start`, or find
    /// each other by their Services. A set that cannot be read numbers from 0: its pods are held all the same. True when
    /// some were not known before.
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
        // All of the namespace, where it is more than one.
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

    /// How a namespace is served, by a live read: one that its watch has not told of yet, or whose labels may have changed since.
    /// Where it cannot be read the flags count.
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
            // What may be listed need not be read one by one as well.
            let named = ListParams::default().fields(&format!("metadata.name={namespace}"));
            let found = api::<Named>(&self.client, NAMESPACE, None).list(&named).await?.items;
            Ok::<_, kube::Error>(found.first().map(|found| {
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

    /// True when a live read says that the group is gone, and that its kind could be seen if it were there: a deleted
    /// CustomResourceDefinition takes every object with it, and must not open every hold. `carrier` is the kind that
    /// carried it, when that is known.
    ///
    /// # Errors
    ///
    /// When the API server fails.
    pub async fn is_gone(&self, key: &GroupKey, carrier: Option<ObjectKind>) -> Result<bool, LookupError> {
        let error =
            |source| LookupError::Read { kind: "CustomResourceDefinition", key: key.clone(), source: Box::new(source) };
        // What carried it may be read in another version since.
        let candidates = carrier.filter(|kind| self.reads(*kind)).map_or_else(|| CARRIERS.to_vec(), |kind| vec![kind]);
        let mut established = false;
        for kind in candidates.into_iter().filter(|kind| self.reads(*kind)) {
            let is_established = self.is_established(kind).await.map_err(error)?;
            if is_established && self.index.read().is_served(kind) == Some(false) {
                // It came back just now: the watch has not listed yet, and whoever brings the groups may need a moment.
                return Ok(false);
            }
            established |= is_established;
        }
        if !established {
            return Ok(false);
        }
        // Not what the watches know: they notice only after a while that a kind is served again.
        self.read_carriers(key, |_| true).await?;
        Ok(self.index.read().group(key).is_none())
    }

    /// True when a live read says that a KAI PodGroup is not there, and its kind is.
    ///
    /// # Errors
    ///
    /// When the API server fails.
    pub async fn is_pod_group_gone(&self, key: &GroupKey) -> Result<bool, LookupError> {
        let error = |source| LookupError::Read { kind: POD_GROUP.kind, key: key.clone(), source: Box::new(source) };
        let is_established = self.is_established(POD_GROUP).await.map_err(error)?;
        // It may have come back just now, and whoever brings the objects needs a moment.
        if !is_established || self.index.read().is_served(POD_GROUP) == Some(false) {
            return Ok(false);
        }
        let pod_groups = api::<PodGroup>(&self.client, POD_GROUP, Some(&key.namespace));
        match pod_groups.get_metadata(&key.name).await {
            Ok(_) => Ok(false),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            Err(source) => Err(error(source)),
        }
    }

    /// True when the API server defines the kind in the version that is read, and is not about to remove it.
    ///
    /// # Errors
    ///
    /// When the API server fails.
    pub async fn is_established(&self, kind: ObjectKind) -> Result<bool, kube::Error> {
        use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
        let crds: kube::Api<CustomResourceDefinition> = kube::Api::all(self.client.clone());
        let Some(crd) = crds.get_opt(&kind.crd_name()).await? else { return Ok(false) };
        let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
        let established = conditions.iter().any(|c| c.type_ == "Established" && c.status == "True");
        let served = crd.spec.versions.iter().any(|version| version.name == kind.version && version.served);
        Ok(established && served && crd.metadata.deletion_timestamp.is_none())
    }
}
