//! Everything that is watched, and where it goes in the index.

use std::collections::HashSet;
use std::sync::Arc;

use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::index::{Index, SharedIndex, SourceId};
use super::watch::{Change, watch};
use super::watched::{Guarded, api};
use crate::api::pod::POD;
use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI};
use crate::api::workload::{STATEFUL_SET, StatefulSet};
use crate::api::{Meta, Object, ObjectKind, Pod, RoleBasedGroup};
use crate::model::{Group, names};

/// Kinds that carry groups.
pub const CARRIERS: &[ObjectKind] = &[ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI];

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
            sources.add::<StatefulSet>(STATEFUL_SET, scope, None, Index::stateful_set_change);
            for kind in CARRIERS.iter().copied() {
                sources.add::<Guarded<RoleBasedGroup>>(kind, scope, None, move |index, source, change| {
                    index.group_change(source, kind, change.map(|rbg| read_rbg(kind, &rbg)));
                });
            }
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

/// A group as a watch reports it; one that cannot be read is left as it was known.
pub fn read_rbg(kind: ObjectKind, rbg: &Guarded<RoleBasedGroup>) -> Option<Group> {
    match &rbg.read {
        Ok(rbg) => Some(Group::from_rbg(kind, rbg)),
        Err(error) => {
            let (namespace, name) = (rbg.meta().namespace(), rbg.meta().display_name());
            tracing::warn!(namespace, name, kind = kind.kind, %error, "object does not have the expected shape");
            None
        }
    }
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
