//! Everything that is watched, and where it goes in the index.

use std::collections::HashSet;
use std::sync::Arc;

use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::index::{CarrierObject, Index, SeenWorkload, SharedIndex, SourceId};
use super::watch::{Change, watch};
use super::watched::{Guarded, api};
use crate::api::pod::POD;
use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::workload::{Deployment, LeaderWorkerSet, StatefulSet};
use crate::api::{Meta, Object, ObjectKind, Pod, RoleBasedGroup, RoleCoordination};
use crate::model::{Workload, WorkloadKind, names};

/// Kinds of RoleBasedGroup: those that can carry coordinations, and the one that has only roles.
pub const ROLE_BASED_GROUPS: &[ObjectKind] = &[ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2];

/// Kinds that carry groups.
pub const CARRIERS: &[ObjectKind] =
    &[ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2, ROLE_COORDINATION];

const NAMESPACE: ObjectKind =
    ObjectKind { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false };
const CRD: ObjectKind = ObjectKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
};

/// An object of which only the metadata is read.
#[derive(Clone, Debug, Default, Deserialize)]
struct Named {
    metadata: Meta,
}

impl Object for Named {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The running watches; dropping it ends them.
pub struct Sources {
    tasks: JoinSet<()>,
    client: Client,
    index: SharedIndex,
    recheck: Arc<Notify>,
    next: SourceId,
}

impl Sources {
    /// Starts all watches, in these namespaces or, when none is given, in all.
    pub fn start(client: &Client, index: &SharedIndex, namespaces: &[String]) -> Self {
        let mut sources = Self {
            tasks: JoinSet::new(),
            client: client.clone(),
            index: index.clone(),
            recheck: Arc::new(Notify::new()),
            next: 0,
        };
        let scopes: Vec<Option<&str>> = if namespaces.is_empty() {
            vec![None]
        } else {
            namespaces.iter().map(|name| Some(name.as_str())).collect()
        };
        for scope in scopes {
            for selector in pod_selectors() {
                sources.add::<Pod>(POD, scope, Some(selector), Index::pod_change);
            }
            sources.add_workloads::<StatefulSet>(scope, WorkloadKind::StatefulSet, seen_stateful_set);
            sources.add_workloads::<LeaderWorkerSet>(scope, WorkloadKind::LeaderWorkerSet, |set| SeenWorkload {
                workload: Workload::from_leader_worker_set(set),
                start: 0,
            });
            sources.add_workloads::<Deployment>(scope, WorkloadKind::Deployment, |deployment| SeenWorkload {
                workload: Workload::from_deployment(deployment),
                start: 0,
            });
            for kind in ROLE_BASED_GROUPS.iter().copied() {
                sources.add::<Guarded<RoleBasedGroup>>(kind, scope, None, move |index, source, change| {
                    index.carrier_change(source, kind, change.map(|rbg| read_rbg(kind, &rbg)));
                });
            }
            sources.add::<Guarded<RoleCoordination>>(ROLE_COORDINATION, scope, None, |index, source, change| {
                index.carrier_change(source, ROLE_COORDINATION, change.map(|object| read_coordination(&object)));
            });
        }
        sources.add::<Named>(NAMESPACE, None, Some(names::IGNORE.to_owned()), Index::ignored_change);
        sources.add_crds();
        sources
    }

    fn add<T>(
        &mut self,
        kind: ObjectKind,
        scope: Option<&str>,
        selector: Option<String>,
        take: impl Fn(&mut Index, SourceId, Change<T>) + Send + Sync + 'static,
    ) where
        T: Object + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        let source = self.next;
        self.next += 1;
        self.index.write(|index| index.expect(source));
        let (api, index, recheck) = (api::<T>(&self.client, kind, scope), self.index.clone(), self.recheck.clone());
        self.tasks.spawn(async move {
            watch(api, selector.as_deref(), &recheck, |change| index.write(|index| take(index, source, change))).await;
        });
    }

    fn add_workloads<T>(&mut self, scope: Option<&str>, kind: WorkloadKind, read: fn(&T) -> SeenWorkload)
    where
        T: Object + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        self.add::<T>(kind.object_kind(), scope, None, move |index, source, change| {
            index.workload_change(source, kind, change.map(|workload| read(&workload)));
        });
    }

    /// A new CustomResourceDefinition wakes the watches that wait for their kind.
    fn add_crds(&mut self) {
        let carriers: HashSet<_> = CARRIERS.iter().map(ObjectKind::crd_name).collect();
        let (api, recheck) = (api::<Named>(&self.client, CRD, None), self.recheck.clone());
        self.tasks.spawn(async move {
            let never = Notify::new();
            let wake = |change| {
                let Change::Applied(crd): Change<Named> = change else { return };
                if carriers.contains(crd.metadata.display_name()) {
                    recheck.notify_waiters();
                }
            };
            watch(api, None, &never, wake).await;
        });
    }
}

/// One selector for each label scheme, each pod under one of them only.
fn pod_selectors() -> impl Iterator<Item = String> {
    names::LABEL_SCHEMES.iter().enumerate().map(|(position, (group, _))| {
        let earlier = names::LABEL_SCHEMES.iter().take(position).map(|(group, _)| format!(",!{group}"));
        std::iter::once((*group).to_owned()).chain(earlier).collect()
    })
}

/// A StatefulSet as a watch reports it.
pub fn seen_stateful_set(set: &StatefulSet) -> SeenWorkload {
    SeenWorkload { workload: Workload::from_stateful_set(set), start: set.spec.ordinals.start }
}

/// A RoleBasedGroup as a watch reports it; one that cannot be read is left as it was known.
pub fn read_rbg(kind: ObjectKind, rbg: &Guarded<RoleBasedGroup>) -> Option<CarrierObject> {
    readable(kind, rbg).map(|rbg| CarrierObject::rbg(kind, rbg))
}

/// A RoleCoordination as a watch reports it; one that cannot be read is left as it was known.
pub fn read_coordination(object: &Guarded<RoleCoordination>) -> Option<CarrierObject> {
    readable(ROLE_COORDINATION, object).cloned().map(CarrierObject::coordination)
}

fn readable<T>(kind: ObjectKind, object: &Guarded<T>) -> Option<&T> {
    object
        .read
        .as_ref()
        .inspect_err(|error| {
            let (namespace, name) = (object.meta().namespace(), object.meta().display_name());
            tracing::warn!(namespace, name, kind = kind.kind, %error, "object does not have the expected shape");
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pod_is_watched_once() {
        let selectors: Vec<_> = pod_selectors().collect();
        assert_eq!(selectors[0], "rolegate.dev/group");
        assert_eq!(selectors[1], "rbg.workloads.x-k8s.io/group-name,!rolegate.dev/group");
        assert_eq!(
            selectors[2],
            "rolebasedgroup.workloads.x-k8s.io/name,!rolegate.dev/group,!rbg.workloads.x-k8s.io/group-name"
        );
    }
}
