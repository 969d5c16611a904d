//! Groups of a live cluster, and all that says what room there is for them.

use std::sync::Arc;

use kube::api::ListParams;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::cluster::Cluster;
use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::{Meta, Object, ObjectKind};
use crate::cli::connection::{Connection, Failure};
use crate::cli::live;
use crate::cluster::index::Index;
use crate::cluster::watch::watched::api;
use crate::model::Group;
use crate::rules::Violation;

/// An object with all its fields.
#[derive(Clone, Debug)]
struct Whole {
    meta: Meta,
    object: Value,
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let meta = object.get("metadata").map(Meta::deserialize).transpose().map_err(serde::de::Error::custom)?;
        Ok(Self { meta: meta.unwrap_or_default(), object })
    }
}

impl Object for Whole {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Reads groups by name, and nodes, pods and the groups' workloads.
pub(super) async fn read(
    connection: &Connection,
    names: &[String],
) -> Result<(Vec<(Vec<Violation>, Arc<Group>)>, Index, Cluster), Failure> {
    let seen = live::list(connection, Some(&connection.namespace)).await?;
    let mut groups = Vec::new();
    for name in names {
        let picture = live::named(&seen.index, &connection.namespace, name)?;
        let group = picture.group().cloned();
        let group = group.ok_or_else(|| Failure::Other(format!("only pods name group {name:?}: it is not there")))?;
        groups.push((picture.snapshot.faults.to_vec(), group));
    }
    let mut cluster = Cluster::default();
    for kind in [NODE, POD] {
        let objects = api::<Whole>(&connection.client, kind, None).list(&ListParams::default()).await;
        for object in objects.map_err(|error| connection.failure(&error))?.items {
            add(&mut cluster, kind, object.object, &seen.index)?;
        }
    }
    for (_, group) in &groups {
        let workloads = group.roles.iter().filter_map(|role| role.workload.key.as_ref());
        let mut wanted: Vec<_> = workloads.map(|key| (key.kind.object_kind(), key.name.as_str())).collect();
        if group.carrier.kind.kind == ROLE_BASED_GROUP.kind {
            wanted.push((group.carrier.kind, &group.key.name));
        }
        for (kind, name) in wanted {
            let objects = api::<Whole>(&connection.client, kind, Some(&connection.namespace));
            // What is not there, or not served, makes no pods.
            match objects.get_opt(name).await {
                Ok(Some(object)) => add(&mut cluster, kind, object.object, &seen.index)?,
                Ok(None) => {}
                Err(error) => return Err(connection.failure(&error)),
            }
        }
    }
    cluster.number();
    Ok((groups, seen.index, cluster))
}

fn add(cluster: &mut Cluster, kind: ObjectKind, object: Whole, index: &Index) -> Result<(), Failure> {
    let unreadable =
        |error| Failure::Other(format!("{} {:?} cannot be read: {error}", kind.kind, object.meta.display_name()));
    cluster.add(&kind.api_version(), kind.kind, object.object, index).map_err(unreadable)
}
