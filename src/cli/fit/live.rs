//! Reads groups of a live cluster and the room for them.

use super::{Asked, FittedGroup};
use crate::cli::connection::{Connection, Failure};
use crate::cli::live;
use crate::cli::progress::Progress;
use crate::fit::domain_keys;
use crate::model::IgnoredResources;

/// Returns what fits of groups by name; reads nodes, pods, and the groups' workloads.
pub(super) async fn read(
    connection: &Connection,
    names: &[String],
    asked: Asked<'_>,
    ignored: IgnoredResources,
) -> Result<Vec<FittedGroup>, Failure> {
    let _progress = Progress::of("listing nodes and pods");
    let seen = live::list(connection, Some(&connection.namespace)).await?;
    let room = live::room(connection, ignored).await.map_err(Failure::Other)?;
    let mut groups = Vec::new();
    for name in names {
        let picture = live::named(&seen.index, &connection.namespace, name)?;
        let group = picture.group().cloned();
        let group = group.ok_or_else(|| Failure::Other(format!("only pods name group {name:?}: it is not there")))?;
        let cluster = live::cluster(connection, &group, &picture.snapshot, &room).await?;
        let keys = domain_keys(&group, |topology, layer| seen.index.layer_key(topology, layer));
        groups.push(FittedGroup::new(group, picture.snapshot.faults.to_vec(), &keys, &cluster, asked));
    }
    Ok(groups)
}
