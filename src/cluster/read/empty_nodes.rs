//! The nodes as if no pod ran on them: what does not fit there fits nowhere. One bounded list now and then tells it, where a watch of
//! nodes and of all pods would cost more than the answer is worth.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::api::Node;
use crate::api::node::NODE;
use crate::cluster::objects::api;
use crate::model::IgnoredResources;
use crate::plan::devices::DeviceSight;
use crate::plan::placement::Capacity;

/// Largest number of nodes that are listed; beyond it nothing is told.
const MOST_NODES: u32 = 500;
/// Time for which an answer holds, also that nodes may not be listed.
const FRESH: Duration = Duration::from_secs(60);

/// The last answer and its time.
type Last = Option<(Instant, Option<Arc<Capacity>>)>;

/// Lists the nodes. Clones share one answer.
#[derive(Clone, Debug, Default)]
pub(super) struct EmptyNodes(Arc<Mutex<Last>>);

impl EmptyNodes {
    /// Returns the nodes without their pods and cordons; `None` if there are none or too many, or if they cannot be listed.
    pub(super) async fn get(&self, client: &Client, ignored: IgnoredResources) -> Option<Arc<Capacity>> {
        let mut last = self.0.lock().await;
        if let Some((at, known)) = &*last
            && at.elapsed() < FRESH
        {
            return known.clone();
        }
        // It holds as well if this review is given up meanwhile: the next one does not begin anew at once.
        *last = Some((Instant::now(), None));
        let known = list(client, ignored).await.map(Arc::new);
        *last = Some((Instant::now(), known.clone()));
        known
    }
}

async fn list(client: &Client, ignored: IgnoredResources) -> Option<Capacity> {
    let found = api::<Node>(client, NODE, None).list(&ListParams::default().limit(MOST_NODES)).await.ok()?;
    let has_more = found.metadata.continue_.is_some_and(|next| !next.is_empty());
    if has_more || found.items.is_empty() {
        return None;
    }
    let mut capacity = Capacity::ignoring(ignored);
    for node in &found.items {
        capacity.apply_node(node).ok()?;
    }
    let mut capacity = Capacity::of(capacity.room().without_cordons());
    // Devices are not read: whether a class gives a resource that no node has is not known.
    capacity.change_devices(|devices| {
        devices.sight = DeviceSight::Awaited;
        false
    });
    Some(capacity)
}
