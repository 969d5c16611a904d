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
use crate::cluster::failure::unless;
use crate::cluster::index::{Change, Index, Readable, SourceId};
use crate::cluster::objects::{Objects, api};
use crate::cluster::watch::Selection;
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
            let all = api::<Text>(client, kind, namespace);
            match unless(&[403], listed::<ConditionedObject>(&all, &ListParams::default()).await)? {
                Some(change) => self.index.awaited_change(kind, namespace, change),
                None => self.forbidden.push(kind),
            }
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
    let mut lister = Lister { client: client.clone(), unread, lists: Vec::new() };
    add_groups(&mut lister, namespace);
    add_trees(&mut lister, &[namespace], &[namespace]);
    add_cluster_scoped(&mut lister);
    let mut seen = ClusterListing { index, forbidden: Vec::new() };
    let (serving, reads) = tokio::join!(serving, join_all(lister.lists));
    let ready_kinds = serving.ready_kinds.clone();
    seen.index.serve(serving);
    for (kind, list) in reads {
        match list? {
            Some(apply) => apply(&mut seen.index),
            None => seen.forbidden.push(kind),
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
    /// Versions of kinds that are read in another version.
    unread: Vec<ObjectKind>,
    lists: Vec<BoxFuture<'static, (ObjectKind, kube::Result<Option<ApplyList>>)>>,
}

/// Puts a list into the index.
type ApplyList = Box<dyn FnOnce(&mut Index) + Send>;

/// Lists a kind, as its watch would report it.
async fn listed<T: DeserializeOwned>(all: &Objects<Text>, params: &ListParams) -> kube::Result<Change<T>> {
    let Some(list) = unless(&[404], all.list(params).await)? else { return Ok(Change::NotServed) };
    let objects = list.items.iter().map(|item| decode(item.json()));
    let objects = objects.collect::<Result<_, _>>();
    objects.map(Change::Listed).map_err(|error| kube::Error::SerdeError(serde::de::Error::custom(error)))
}

impl Reader for Lister {
    fn add<T: Readable>(
        &mut self,
        Selection { kind, namespace, selector }: Selection<'_>,
        take: impl Fn(&mut Index, SourceId, Change<T>) + Send + Sync + 'static,
    ) {
        let (source, is_unread) = (self.lists.len(), self.unread.contains(&kind));
        let all = api::<Text>(&self.client, kind, namespace);
        let params = ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default() };
        let list = async move {
            let list = if is_unread { Ok(Change::NotServed) } else { listed(&all, &params).await };
            // Without the right to read pods there is nothing to show.
            let list = unless(if kind == POD { &[] } else { &[403] }, list);
            (
                kind,
                list.map(|list| list.map(|change| -> ApplyList { Box::new(move |index| take(index, source, change)) })),
            )
        };
        self.lists.push(list.boxed());
    }
}
