//! Whether the batches of a reviewed group fit into the room of the nodes.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::api::Node;
use crate::api::node::NODE;
use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::SharedIndex;
use crate::cluster::objects::api;
use crate::cluster::read::templates::{add_templates, workloads};
use crate::fit::{Cluster, domain_keys, fit, shortages};
use crate::model::{CARRIERS, GroupKey, IgnoredResources};
use crate::plan::Sight;
use crate::plan::devices::DeviceSight;
use crate::plan::placement::Capacity;
use crate::rules::question::Question;
use crate::rules::{Operation, Shortage, World, read_group};

/// Concurrent reviews that ask; further ones get no answer.
const AT_A_TIME: usize = 2;
/// Longest wait of a review for the lists of nodes and pods.
const LISTED_WITHIN: Duration = Duration::from_secs(1);
/// Largest number of batches without a node that are checked.
const MOST_BATCHES: usize = 100;

/// Largest number of workloads that are read for a group whose batches share no domain.
const MOST_MAKERS: usize = 8;

/// Largest number of pods of the workloads of a group: each is expanded for a moment.
const MOST_PODS: u64 = 5_000;

/// Finds the batches of groups that do not fit.
#[derive(Clone)]
pub struct Shortages {
    client: Client,
    index: SharedIndex,
    /// `None` where nothing is placed.
    capacity: Option<SharedCapacity>,
    empty: EmptyNodes,
    budget: Arc<Semaphore>,
}

impl Shortages {
    /// Returns a finder that reads workloads with this client, and pods from this index.
    pub fn new(client: Client, index: SharedIndex, capacity: Option<SharedCapacity>) -> Self {
        Self { client, index, capacity, empty: EmptyNodes::default(), budget: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Returns the shortages of a group that is created or changed, as far as known in time: its pods or their makers exist, and nodes
    /// and pods are listed. Where its batches share no domain, and nodes and pods are not watched anyway, they are counted on empty
    /// nodes. All reads end by `deadline`.
    pub async fn of(
        &self,
        question: Question<'_>,
        world: &World,
        deadline: Instant,
    ) -> Option<(GroupKey, Vec<Shortage>)> {
        let capacity = self.capacity.as_ref()?;
        if question.operation == Operation::Delete || !CARRIERS.contains(&question.kind) {
            return None;
        }
        let group = read_group(question.kind, question.object, world).ok()?;
        let is_placed = group.batched().any(|(_, batching)| batching.placed_in().is_some());
        let makers = group.roles.iter().filter(|role| role.workload.key.is_some()).count();
        if group.deleting || group.batched().next().is_none() || (!is_placed && makers > MOST_MAKERS) {
            return None;
        }
        let object: Value = serde_json::from_str(question.object).ok()?;
        let before = question.old.and_then(|old| serde_json::from_str::<Value>(old).ok());
        if before.is_some_and(|before| before.get("spec") == object.get("spec")) {
            return None;
        }
        let _turn = self.budget.try_acquire().ok()?;
        let within = deadline.min(Instant::now() + LISTED_WITHIN);
        let mut empty = None;
        if is_placed {
            capacity.ask();
            timeout_at(within, capacity.listed()).await.ok()?;
        } else if !capacity.is_listed() {
            empty = Some(timeout_at(within, self.empty.get(&self.client, capacity.ignored())).await.ok()??);
        }
        let mut templates = timeout_at(deadline, workloads(&self.client, &group)).await.ok()?.ok()?;
        templates.push((question.kind, object));
        let domain_keys = domain_keys(&group, |topology, layer| world.layer_key(topology, layer));
        let (capacity, pods) = (capacity.clone(), self.index.read().snapshot(&group.key).pods);
        let key = group.key.clone();
        let found = tokio::task::spawn_blocking(move || {
            let seen = |capacity: &Capacity| Cluster::seen(capacity, &group.key, &pods, MOST_PODS);
            let mut cluster = match &empty {
                Some(nodes) => seen(nodes),
                None => {
                    capacity.look(|sight| if let Sight::Known(known) = sight { Some(seen(known)) } else { None })?
                }
            };
            add_templates(&mut cluster, &templates).ok()?;
            let found = shortages(&fit(&group, &domain_keys, &cluster, MOST_BATCHES)).into_iter();
            Some(found.map(|one| Shortage { on_empty_nodes: empty.is_some(), ..one }).collect())
        });
        Some((key, timeout_at(deadline, found).await.ok()?.ok()??))
    }
}

/// Largest number of nodes that are listed; beyond it nothing is told.
const MOST_NODES: u32 = 500;
/// Time for which an answer holds, also that nodes may not be listed.
const FRESH: Duration = Duration::from_secs(60);

/// The last answer and its time.
type RecentList = Option<(Instant, Option<Arc<Capacity>>)>;

/// Lists the nodes as if no pod ran on them: what does not fit there fits nowhere. One bounded list now and then tells it, where a
/// watch of nodes and of all pods would cost more than the answer is worth. Clones share one answer.
#[derive(Clone, Debug, Default)]
struct EmptyNodes(Arc<Mutex<RecentList>>);

impl EmptyNodes {
    /// Returns the nodes without their pods and cordons; `None` if there are none or too many, or if they cannot be listed.
    async fn get(&self, client: &Client, ignored: IgnoredResources) -> Option<Arc<Capacity>> {
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
