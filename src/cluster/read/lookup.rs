//! The group that a pod names: from the index, else by one live read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::api::cluster_topology::{CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75};
use crate::api::pod_group::POD_GROUP;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::workload::{STATEFUL_SET, StatefulSet};
use crate::api::{Object, ObjectKind, RoleBasedGroup, RoleCoordination};
use crate::cluster::index::{CarrierObject, Index, LookedUp, SeenWorkload, SharedIndex};
use crate::cluster::watch::sources::{
    CARRIERS, CLIQUE_SETS, ROLE_BASED_GROUPS, read_clique_set, read_coordination, read_pod_group, read_rbg,
    read_topology,
};
use crate::cluster::watch::watched::{Guarded, api};
use crate::model::{CliqueSet, GangTree, Group, GroupKey, Layers, WorkloadKey, WorkloadKind};

/// How long an absent group is not read again: the hundreds of pods of one new workload ask together.
const ABSENT_FOR: Duration = Duration::from_millis(500);

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

/// Looks groups up.
#[derive(Clone)]
pub struct Lookup {
    client: Client,
    index: SharedIndex,
    absent: Arc<Mutex<HashMap<GroupKey, Arc<Slot>>>>,
}

/// When the group was last found absent. The lock is held during the read, so that the others wait for its result.
type Slot = tokio::sync::Mutex<Option<Instant>>;

impl Lookup {
    /// Looks up in this index, else with this client.
    pub fn new(client: Client, index: SharedIndex) -> Self {
        Self { client, index, absent: Arc::default() }
    }

    /// The index behind it.
    pub fn index(&self) -> &SharedIndex {
        &self.index
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
        let slot = self.slot(key);
        let read = async {
            let mut absent_since = slot.lock().await;
            if let Some(group) = self.index.read().group(key) {
                return Ok(Some(group));
            }
            if absent_since.is_some_and(|since| since.elapsed() < ABSENT_FOR) {
                return Ok(None);
            }
            self.read_live(key).await?;
            let group = self.index.read().group(key);
            if group.is_none() {
                *absent_since = Some(Instant::now());
            }
            Ok(group)
        };
        tokio::time::timeout_at(deadline, read).await.unwrap_or_else(|_| Err(LookupError::Timeout(key.clone())))
    }

    fn slot(&self, key: &GroupKey) -> Arc<Slot> {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        // Slots of groups that came into being, or that nobody asked for lately, are not kept.
        absent.retain(|other, slot| {
            other == key
                || Arc::strong_count(slot) > 1
                || slot.try_lock().is_ok_and(|since| since.is_some_and(|since| since.elapsed() < ABSENT_FOR))
        });
        absent.entry(key.clone()).or_default().clone()
    }

    /// A ClusterTopology, or `None` when a live read says that there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn topology(&self, name: &str, deadline: Instant) -> Result<Option<Arc<Layers>>, LookupError> {
        let key = GroupKey::new("", name);
        let kinds = [CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75];
        self.named(&key, &kinds, deadline, |index| index.topology(name), read_topology).await
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
        kinds: &[ObjectKind],
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
        let live = async {
            for kind in kinds.iter().copied() {
                let Some(found) = self.get::<Guarded<A>>(kind, key, &key.name).await? else { continue };
                let object = read(kind, &found).ok_or(LookupError::Shape { kind: kind.kind, key: key.clone() })?;
                self.index.write_quietly(|index| index.read_outside((&key.namespace, &key.name), object));
                break;
            }
            Ok(known(&self.index.read()))
        };
        tokio::time::timeout_at(deadline, live).await.unwrap_or_else(|_| Err(LookupError::Timeout(key.clone())))
    }

    /// Reads what may carry a group: RoleBasedGroups of its name, the RoleCoordination that one of them names, and the
    /// RoleCoordination of its name. What is there goes into the index.
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
        let mut coordinations = vec![key.name.to_string()];
        for kind in ROLE_BASED_GROUPS.iter().copied().filter(|kind| ask_for(*kind)) {
            let Some(found) = self.get::<Guarded<RoleBasedGroup>>(kind, key, &key.name).await? else { continue };
            let carrier = read_rbg(kind, &found).ok_or(LookupError::Shape { kind: kind.kind, key: key.clone() })?;
            if let CarrierObject::Rbg(group) = &carrier {
                coordinations.extend(group.coordinated_by.clone());
            }
            self.index.write(|index| index.apply_carrier(None, carrier));
        }
        for name in coordinations.into_iter().filter(|_| ask_for(ROLE_COORDINATION)) {
            let found = self.get::<Guarded<RoleCoordination>>(ROLE_COORDINATION, key, &name).await?;
            if let Some(found) = found {
                let shape = || LookupError::Shape { kind: ROLE_COORDINATION.kind, key: key.clone() };
                let carrier = read_coordination(&found).ok_or_else(shape)?;
                self.index.write(|index| index.apply_carrier(None, carrier));
            }
        }
        Ok(())
    }

    /// One live read; a kind that is not served has no objects.
    async fn get<T>(&self, kind: ObjectKind, key: &GroupKey, name: &str) -> Result<Option<T>, LookupError>
    where
        T: Object + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let read = api::<T>(&self.client, kind, Some(&key.namespace)).get(name).await;
        match read {
            Ok(found) => Ok(Some(found.object)),
            // Also for a kind that is not served, where the answer is a text and no Status.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(source) => Err(LookupError::Read { kind: kind.kind, key: key.clone(), source: Box::new(source) }),
        }
    }

    /// Makes sure that a StatefulSet's `spec.ordinals.start` is known before its pods are numbered. A set that cannot be
    /// read numbers from 0: its pods are held all the same. True when it was not known before.
    pub async fn stateful_set(&self, namespace: &str, name: &str, deadline: Instant) -> bool {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let key = WorkloadKey { namespace, kind: WorkloadKind::StatefulSet, name };
        if self.index.read().knows_workload(&key) {
            return false;
        }
        let api = api::<StatefulSet>(&self.client, STATEFUL_SET, Some(&key.namespace));
        match tokio::time::timeout_at(deadline, api.get_opt(&key.name)).await {
            Ok(Ok(Some(set))) => self.index.write(|index| index.apply_workload(None, SeenWorkload::of(&set.object))),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::warn!(%key, %error, "StatefulSet cannot be read"),
            Err(_) => tracing::warn!(%key, "StatefulSet cannot be read in time"),
        }
        true
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
        let candidates: Vec<_> = carrier.map_or_else(|| CARRIERS.to_vec(), |kind| vec![kind]);
        let mut established = false;
        for kind in candidates {
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
