//! Objects with the pod templates of a group: the workloads of its roles, and the RoleBasedGroup with templates in its roles.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;
use serde_json::Value;

use crate::api::ObjectKind;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::workload::STATEFUL_SET;
use crate::cluster::objects;
use crate::fit::Cluster;
use crate::model::{Group, OrdinalStarts};

/// Concurrent requests.
const AT_ONCE: usize = 8;

/// Returns the existing workloads of a group as JSON.
pub async fn workloads(client: &Client, group: &Group) -> kube::Result<Vec<(ObjectKind, Value)>> {
    let keys = group.roles.iter().filter_map(|role| role.workload.key.as_ref());
    read(client, group, keys.map(|key| (key.kind.object_kind(), key.name.clone())).collect()).await
}

/// Returns the workloads of a group, and the RoleBasedGroup that carries it.
pub async fn templates(client: &Client, group: &Group) -> kube::Result<Vec<(ObjectKind, Value)>> {
    let mut templates = workloads(client, group).await?;
    if group.carrier.kind.kind == ROLE_BASED_GROUP.kind {
        templates.extend(read(client, group, vec![(group.carrier.kind, group.key.name.to_string())]).await?);
    }
    Ok(templates)
}

async fn read(
    client: &Client,
    group: &Group,
    wanted: Vec<(ObjectKind, String)>,
) -> kube::Result<Vec<(ObjectKind, Value)>> {
    let read = wanted.into_iter().map(async |(kind, name)| {
        let object = objects::read(client, kind, &group.key.namespace, &name).await?;
        Ok::<_, kube::Error>(object.map(|object| (kind, object)))
    });
    let found: Vec<_> = stream::iter(read).buffered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// `spec.ordinals.start` of StatefulSets, by name.
struct Starts(BTreeMap<String, i64>);

impl OrdinalStarts for Starts {
    fn start(&self, _: &str, stateful_set: &str) -> i64 {
        self.0.get(stateful_set).copied().unwrap_or_default()
    }
}

/// Adds objects with templates to the cluster, and numbers their pods. Fails with the kind of an object that cannot be read, and why.
pub fn add_templates(cluster: &mut Cluster, templates: &[(ObjectKind, Value)]) -> Result<(), String> {
    let start = |(kind, object): &(ObjectKind, Value)| {
        let start = object.pointer("/spec/ordinals/start").and_then(Value::as_i64).filter(|_| *kind == STATEFUL_SET)?;
        Some((object.pointer("/metadata/name")?.as_str()?.to_owned(), start))
    };
    let starts = Starts(templates.iter().filter_map(start).collect());
    for (kind, object) in templates {
        let added = cluster.add(&kind.api_version(), kind.kind, object, &starts);
        added.map_err(|error| format!("{} cannot be read: {error}", kind.kind))?;
    }
    cluster.complete();
    Ok(())
}
