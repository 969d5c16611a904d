//! All watches, and the part of the index that each one feeds.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;

use kube::Client;
use kube::api::ListParams;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use crate::api::definition::Definition;
use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::pod::POD;
use crate::api::pod_group::{POD_GROUP, TOPOLOGY};
use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::webhook_configuration::{MUTATING_WEBHOOK_CONFIGURATION, MutatingWebhookConfiguration};
use crate::api::{ConditionedObject, Meta, Object, ObjectKind, RoleBasedGroup, RoleCoordination};
use crate::cluster::failure::forbidden;
pub use crate::cluster::index::NAMESPACE;
use crate::cluster::index::{
    CarrierObject, Change, Index, KaiLevels, LookedUp, Readable, Report, SeenWorkload, SharedIndex, SourceId, version,
};
use crate::cluster::objects::api;
use crate::cluster::watch::watched::Guarded;
use crate::cluster::watch::{Selection, watch};
pub use crate::model::CARRIERS;
use crate::model::workload_object::WithType;
use crate::model::{CliqueSet, GangTree, Layers, WorkloadKind, WorkloadObject, names};

/// Kinds of RoleBasedGroup: two that can carry coordinations, and one that has only roles. Of two versions of one kind only
/// the stored one is read.
pub const ROLE_BASED_GROUPS: &[ObjectKind] = &[ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2];

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Named {
    metadata: Meta,
}

impl Object for Named {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The running watches; a drop ends them.
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
        // The webhook looks up PodGroups of all namespaces.
        let mut sources = Self::planned(client, index, namespaces, &[None]);
        add_looked_up::<CliqueSet>(&mut sources, None);
        sources
    }

    /// Starts only the watches that groups and PodGroups of these namespaces are planned from.
    pub fn of_groups(client: &Client, index: &SharedIndex, namespaces: &[String]) -> Self {
        Self::planned(client, index, namespaces, &scopes(namespaces))
    }

    fn planned(client: &Client, index: &SharedIndex, namespaces: &[String], pod_groups: &[Option<&str>]) -> Self {
        let mut sources = Self {
            tasks: JoinSet::new(),
            client: client.clone(),
            index: index.clone(),
            recheck: Arc::new(Notify::new()),
            next: 0,
        };
        for scope in scopes(namespaces) {
            add_groups(&mut sources, scope);
        }
        add_trees(&mut sources, &scopes(namespaces), pod_groups);
        add_cluster_scoped(&mut sources);
        sources.add_crds();
        sources
    }

    /// Watches for installations other than `own`, which hold pods in unselected namespaces. Startup does not wait for the
    /// list; until it arrives no pod there is let go.
    pub fn add_others(&mut self, own: &str) {
        let (client, index, own) = (self.client.clone(), self.index.clone(), own.to_owned());
        self.tasks.spawn(async move {
            let take = |change: Change<MutatingWebhookConfiguration>| {
                index.write(|index| index.others_change(&own, change));
            };
            watch(&client, Selection::all(MUTATING_WEBHOOK_CONFIGURATION), &Notify::new(), take).await;
        });
    }

    /// Watches the kinds whose objects groups wait for. Startup does not wait for their lists: until one arrives, or where the
    /// kind may not be listed, groups that name its objects wait and say so.
    pub fn add_awaited(&mut self, kinds: &'static [ObjectKind], namespaces: &[String]) {
        self.index.write(Index::await_no_kinds);
        for (kind, scope) in
            kinds.iter().flat_map(|kind| scopes(namespaces).into_iter().map(move |scope| (*kind, scope)))
        {
            self.index.write(|index| index.await_kind(kind, scope));
            let (client, index, scope) = (self.client.clone(), self.index.clone(), scope.map(str::to_owned));
            self.tasks.spawn(async move {
                let take = |change: Change<ConditionedObject>| {
                    index.write(|index| index.awaited_change(kind, scope.as_deref(), change));
                };
                watch(&client, Selection::within(scope.as_deref(), kind), &Notify::new(), take).await;
            });
        }
    }

    /// Watches CustomResourceDefinitions, which tell the version of a kind that is read. A new one wakes the watches that
    /// wait for their kind.
    fn add_crds(&mut self) {
        let others = [POD_CLIQUE_SET, POD_GANG_SET, POD_GROUP, TOPOLOGY];
        let awaited = CARRIERS.iter().chain(CLUSTER_TOPOLOGIES).chain(&others);
        let awaited: HashSet<_> = awaited.map(ObjectKind::crd_name).collect();
        let (client, index, recheck) = (self.client.clone(), self.index.clone(), self.recheck.clone());
        self.tasks.spawn(async move {
            let never = Notify::new();
            let take = |change: Change<Definition>| {
                let concerns_us = match &change {
                    Change::Applied(crd) | Change::Deleted(crd) => awaited.contains(crd.metadata.display_name()),
                    Change::Listed(_) | Change::NotServed => true,
                };
                if concerns_us {
                    if let Change::Deleted(crd) = &change {
                        let definition = crd.metadata.display_name();
                        tracing::warn!(
                            definition,
                            "a CustomResourceDefinition was deleted: its objects are not there any more"
                        );
                    }
                    index.write(|index| index.definition_change(change));
                    recheck.notify_waiters();
                }
            };
            // Without the right to read them, every version is tried.
            let definitions = api::<Definition>(&client, CUSTOM_RESOURCE_DEFINITION, None);
            let first = definitions.list_metadata(&ListParams::default().limit(1)).await;
            if first.as_ref().err().and_then(forbidden).is_some() {
                take(Change::NotServed);
            }
            watch(&client, Selection::all(CUSTOM_RESOURCE_DEFINITION), &never, take).await;
        });
    }
}

/// Returns each of these namespaces or, when none is given, one scope of all.
fn scopes(namespaces: &[String]) -> Vec<Option<&str>> {
    if namespaces.is_empty() { vec![None] } else { namespaces.iter().map(|name| Some(name.as_str())).collect() }
}

/// Reads kinds into the index, by a watch or once.
pub(in crate::cluster) trait Reader {
    fn add<T: Readable>(
        &mut self,
        selection: Selection<'_>,
        take: impl Fn(&mut Index, SourceId, Change<T>) + Send + Sync + 'static,
    );
}

impl Reader for Sources {
    fn add<T: Readable>(
        &mut self,
        selection: Selection<'_>,
        take: impl Fn(&mut Index, SourceId, Change<T>) + Send + Sync + 'static,
    ) {
        let source = self.next;
        self.next += 1;
        self.index.write(|index| index.expect(source));
        let (client, index, recheck) = (self.client.clone(), self.index.clone(), self.recheck.clone());
        let Selection { kind, namespace, selector } = selection;
        let (namespace, selector) = (namespace.map(str::to_owned), selector.map(str::to_owned));
        self.tasks.spawn(async move {
            let selection = Selection { kind, namespace: namespace.as_deref(), selector: selector.as_deref() };
            let take = |change| index.write(|index| take(index, source, change));
            loop {
                let mut news = pin!(recheck.notified());
                news.as_mut().enable();
                let reads = index.read().reads(kind);
                match reads {
                    Some(true) => tokio::select! {
                        // The watch ends only where nothing can be watched.
                        () = watch(&client, selection, &recheck, &take) => news.await,
                        () = until_unread(&index, &recheck, kind) => {}
                    },
                    Some(false) => {
                        take(Change::NotServed);
                        news.await;
                    }
                    None => news.await,
                }
            }
        });
    }
}

/// Waits until objects of a kind are read in another version.
async fn until_unread(index: &SharedIndex, recheck: &Notify, kind: ObjectKind) {
    loop {
        let mut news = pin!(recheck.notified());
        news.as_mut().enable();
        if index.read().reads(kind) == Some(false) {
            return;
        }
        news.await;
    }
}

/// Adds the input of groups in a namespace: carriers, workloads, pods.
pub(in crate::cluster) fn add_groups(reader: &mut impl Reader, scope: Option<&str>) {
    for selector in pod_selectors() {
        reader.add(Selection { selector: Some(&selector), ..Selection::within(scope, POD) }, Index::pod_change);
    }
    for kind in WorkloadKind::ALL {
        kind.with_type(AddWorkloads { reader, scope });
    }
    for kind in ROLE_BASED_GROUPS.iter().copied() {
        reader.add::<Guarded<RoleBasedGroup>>(Selection::within(scope, kind), move |index, source, change| {
            index.carrier_change(source, kind, change.map(|rbg| read_rbg(kind, &rbg)));
        });
    }
    let coordinations = Selection::within(scope, ROLE_COORDINATION);
    reader.add::<Guarded<RoleCoordination>>(coordinations, |index, source, change| {
        index.carrier_change(source, ROLE_COORDINATION, change.map(|object| read_coordination(&object)));
    });
}

/// Adds the cluster-scoped input of groups: namespaces and ClusterTopologies.
pub(in crate::cluster) fn add_cluster_scoped(reader: &mut impl Reader) {
    reader.add::<Named>(Selection::all(NAMESPACE), Index::namespace_change);
    add_looked_up::<Layers>(reader, None);
}

/// Adds the input of KAI PodGroups that place their pods, beside the cluster-scoped input of groups.
pub(in crate::cluster) fn add_trees(reader: &mut impl Reader, scopes: &[Option<&str>], pod_groups: &[Option<&str>]) {
    for scope in pod_groups {
        add_looked_up::<GangTree>(reader, *scope);
    }
    add_looked_up::<KaiLevels>(reader, None);
    for scope in scopes {
        let placed = Selection { selector: Some(names::PLACED_BY), ..Selection::within(*scope, POD) };
        reader.add(placed, Index::tree_pod_change);
    }
}

/// Adds a kind of objects that are looked up by name.
fn add_looked_up<T: LookedUp>(reader: &mut impl Reader, scope: Option<&str>) {
    for kind in T::KINDS.iter().copied() {
        reader.add::<Guarded<T::Object>>(Selection::within(scope, kind), move |index, source, change| {
            index.looked_up_change(source, kind, change.map(|object| report::<T>(kind, &object)));
        });
    }
}

struct AddWorkloads<'a, R> {
    reader: &'a mut R,
    scope: Option<&'a str>,
}

impl<R: Reader> WithType for AddWorkloads<'_, R> {
    type Output = ();

    fn of<T: WorkloadObject>(self) {
        self.reader.add::<T>(Selection::within(self.scope, T::KIND.object_kind()), |index, source, change| {
            index.workload_change(source, T::KIND, change.map(|workload| SeenWorkload::of(&workload)));
        });
    }
}

/// Returns one selector for each label scheme; each pod matches only one of them.
fn pod_selectors() -> impl Iterator<Item = String> {
    names::pod_schemes().enumerate().map(|(position, (group, _))| {
        let earlier = names::pod_schemes().take(position).map(|(group, _)| format!(",!{group}"));
        std::iter::once(group.to_owned()).chain(earlier).collect()
    })
}

/// Converts an object that is looked up by name; `None` for an unreadable one.
pub(in crate::cluster) fn report<T: LookedUp>(kind: ObjectKind, object: &Guarded<T::Object>) -> Report<T> {
    let (meta, read) = (object.meta(), readable(kind, object).map(|object| T::OF(kind, object)));
    ((meta.namespace().into(), meta.display_name().into()), version(meta.resource_version.as_deref()), read)
}

/// Converts a RoleBasedGroup; `None` for an unreadable one, which keeps its known state.
pub fn read_rbg(kind: ObjectKind, rbg: &Guarded<RoleBasedGroup>) -> Option<CarrierObject> {
    readable(kind, rbg).map(|rbg| CarrierObject::rbg(kind, rbg))
}

/// Converts a RoleCoordination; `None` for an unreadable one, which keeps its known state.
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
