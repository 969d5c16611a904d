//! Running pods of a group: a live list before existing pods count for a group that has never committed anything. Pods known
//! to the watch may belong to an earlier group of the same name.

use std::collections::HashSet;

use kube::Client;
use kube::api::ListParams;

use crate::api::Pod;
use crate::api::pod::POD;
use crate::cluster::index::version;
use crate::cluster::objects::api;
use crate::model::{GroupKey, names};

/// Pods that exist and are not being deleted.
#[derive(Debug)]
pub struct RunningPods {
    pub uids: HashSet<String>,
    /// The lowest version at which they were listed.
    pub at: Option<u64>,
}

/// Lists the pods of a group under each label scheme.
pub async fn list(client: &Client, group: &GroupKey) -> kube::Result<RunningPods> {
    let pods = api::<Pod>(client, POD, Some(&group.namespace));
    let mut found = RunningPods { uids: HashSet::new(), at: None };
    for (label, _) in names::pod_schemes().filter(|_| names::is_label_value(&group.name)) {
        let list = pods.list_metadata(&ListParams::default().labels(&format!("{label}={}", group.name))).await?;
        let at = list.metadata.resource_version.as_deref();
        found.at = found.at.or_else(|| version(at)).min(version(at));
        let there = list.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        found.uids.extend(there.filter_map(|pod| pod.metadata.uid));
    }
    Ok(found)
}
