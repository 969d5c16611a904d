//! One look at the cluster: everything that groups are planned from, listed once into an index of its own.

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::Client;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use crate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use crate::api::definition::Definition;
use crate::api::pod::POD;
use crate::api::pod_group::POD_GROUP;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::{ConditionedObject, ObjectKind};
use crate::cluster::failure::{forbidden, unless};
use crate::cluster::index::{Change, Index, Readable, SourceId};
use crate::cluster::objects::api;
use crate::cluster::watch::sources::{CARRIERS, Reader, add_cluster_scoped, add_groups, add_trees};
use crate::cluster::watch::watched::Text;
use crate::model::{AwaitedKind, Serving};
use crate::rules::decode::decode;

#[derive(Debug)]
pub struct ClusterListing {
    pub index: Index,
    /// Kinds that may not be read: their objects are unknown.
    pub forbidden: Vec<ObjectKind>,
}

impl ClusterListing {
    /// Reports whether no kind that carries groups is served: rolegate is not installed.
    pub fn lacks_groups(&self) -> bool {
        CARRIERS.iter().all(|kind| self.index.is_served(*kind) == Some(false))
    }
}

impl ClusterListing {
    /// Lists the objects that groups wait for, of the kinds that the loop watches. Where they may not be listed, groups are shown as
    /// the loop has found them.
    async fn list_awaited(
        &mut self,
        client: &Client,
        namespace: Option<&str>,
        kinds: Vec<ObjectKind>,
    ) -> kube::Result<()> {
        self.index.await_no_kinds();
        let asked = self.index.waited_for();
        for kind in kinds.into_iter().filter(|kind| asked.contains(&AwaitedKind::of(*kind))) {
            self.index.await_kind(kind, namespace);
            let change = match api::<ConditionedObject>(client, kind, namespace).list(&ListParams::default()).await {
                Ok(list) => Change::Listed(list.items),
                Err(kube::Error::Api(status)) if status.code == 404 => Change::NotServed,
                Err(error) if forbidden(&error).is_some() => {
                    self.forbidden.push(kind);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.index.awaited_change(kind, namespace, change);
        }
        Ok(())
    }
}

/// Lists everything that groups and KAI PodGroups are planned from, in one namespace or in all. `serving` decides how
/// namespaces are served. Fails when pods may not be read.
pub async fn list_cluster(
    client: &Client,
    namespace: Option<&str>,
    serving: impl Future<Output = Serving>,
) -> kube::Result<ClusterListing> {
    let mut index = Index::default();
    index.definition_change(definitions(client).await?);
    let unread = CARRIERS.iter().copied().filter(|kind| index.reads(*kind) == Some(false)).collect();
    let mut lister = Lister { client: client.clone(), next: 0, unread, reads: Vec::new() };
    add_groups(&mut lister, namespace);
    add_trees(&mut lister, &[namespace], &[namespace]);
    add_cluster_scoped(&mut lister);
    let mut seen = ClusterListing { index, forbidden: Vec::new() };
    let (serving, reads) = tokio::join!(serving, join_all(lister.reads));
    let ready_kinds = serving.ready_kinds.clone();
    seen.index.serve(serving);
    for read in reads {
        match read? {
            Read::Take(take) => take(&mut seen.index),
            Read::Forbidden(kind) => seen.forbidden.push(kind),
        }
    }
    if let Some(kinds) = ready_kinds {
        seen.list_awaited(client, namespace, kinds).await?;
    }
    seen.forbidden.sort_unstable();
    seen.forbidden.dedup();
    Ok(seen)
}

/// Reads the definitions of RoleBasedGroup, which is read in several versions, and of PodGroup, which tells the meaning of
/// its counts.
async fn definitions(client: &Client) -> kube::Result<Change<Definition>> {
    let all = api::<Definition>(client, CUSTOM_RESOURCE_DEFINITION, None);
    let (groups, pod_groups) = (ROLE_BASED_GROUP.crd_name(), POD_GROUP.crd_name());
    let found = unless(&[403], tokio::try_join!(all.get_opt(&groups), all.get_opt(&pod_groups)))?;
    Ok(found.map_or(Change::NotServed, |(groups, pod_groups)| {
        Change::Listed(groups.into_iter().chain(pod_groups).collect())
    }))
}

/// Collects the lists, to read all at the same time.
struct Lister {
    client: Client,
    next: SourceId,
    /// Versions of kinds that are read in another version.
    unread: Vec<ObjectKind>,
    reads: Vec<BoxFuture<'static, kube::Result<Read>>>,
}

/// Reads the objects of a list.
fn read<T: DeserializeOwned>(items: &[Text]) -> kube::Result<Vec<T>> {
    let objects = items.iter().map(|item| decode(item.json()));
    objects.collect::<Result<_, _>>().map_err(|error| kube::Error::SerdeError(serde::de::Error::custom(error)))
}

enum Read {
    Take(Box<dyn FnOnce(&mut Index) + Send>),
    Forbidden(ObjectKind),
}

impl Reader for Lister {
    fn add<T: Readable>(
        &mut self,
        kind: ObjectKind,
        scope: Option<&str>,
        selector: Option<String>,
        take: impl Fn(&mut Index, SourceId, Change<T>) + Send + Sync + 'static,
    ) {
        let source = self.next;
        self.next += 1;
        let api = api::<Text>(&self.client, kind, scope);
        let params = ListParams { label_selector: selector, ..ListParams::default() };
        if self.unread.contains(&kind) {
            let read = Read::Take(Box::new(move |index: &mut Index| take(index, source, Change::NotServed)));
            return self.reads.push(async { Ok(read) }.boxed());
        }
        let read = async move {
            let change = match api.list(&params).await {
                Ok(list) => Change::Listed(read(&list.items)?),
                Err(kube::Error::Api(status)) if status.code == 404 => Change::NotServed,
                // Without the right to read pods there is nothing to show.
                Err(error) if kind != POD && forbidden(&error).is_some() => return Ok(Read::Forbidden(kind)),
                Err(error) => return Err(error),
            };
            Ok(Read::Take(Box::new(move |index: &mut Index| take(index, source, change))))
        };
        self.reads.push(read.boxed());
    }
}
