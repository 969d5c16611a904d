//! Whether the batches of a reviewed group fit into the room of the nodes.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::SharedIndex;
use crate::cluster::read::templates::{add_templates, workloads};
use crate::fit::{Cluster, domain_keys, fit, shortages};
use crate::model::{CARRIERS, GroupKey};
use crate::plan::Sight;
use crate::rules::question::Question;
use crate::rules::{Operation, Shortage, World, read_group};

/// Concurrent reviews that ask; further ones get no answer.
const AT_A_TIME: usize = 2;
/// Longest wait of a review for the lists of nodes and pods.
const LISTED_WITHIN: Duration = Duration::from_secs(1);
/// Largest number of batches without a node that are checked.
const MOST_BATCHES: usize = 100;

/// Largest number of pods of the workloads of a group: each is expanded for a moment.
const MOST_PODS: u64 = 5_000;

/// Finds the batches of groups that do not fit.
#[derive(Clone)]
pub struct Shortages {
    client: Client,
    index: SharedIndex,
    /// `None` where nothing is placed.
    capacity: Option<SharedCapacity>,
    budget: Arc<Semaphore>,
}

impl Shortages {
    /// Returns a finder that reads workloads with this client, and pods from this index.
    pub fn new(client: Client, index: SharedIndex, capacity: Option<SharedCapacity>) -> Self {
        Self { client, index, capacity, budget: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Returns the shortages of a group that is created or changed, as far as known in time: its batches share domains, nodes
    /// and pods are listed, and its pods or their makers exist. All reads end by `deadline`.
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
        if group.deleting || !is_placed {
            return None;
        }
        let object: Value = serde_json::from_str(question.object).ok()?;
        let before = question.old.and_then(|old| serde_json::from_str::<Value>(old).ok());
        if before.is_some_and(|before| before.get("spec") == object.get("spec")) {
            return None;
        }
        let _turn = self.budget.try_acquire().ok()?;
        capacity.ask();
        timeout_at(deadline.min(Instant::now() + LISTED_WITHIN), capacity.listed()).await.ok()?;
        let mut templates = timeout_at(deadline, workloads(&self.client, &group)).await.ok()?.ok()?;
        templates.push((question.kind, object));
        let domain_keys = domain_keys(&group, |topology, layer| world.layer_key(topology, layer));
        let (capacity, pods) = (capacity.clone(), self.index.read().snapshot(&group.key).pods);
        let key = group.key.clone();
        let found = tokio::task::spawn_blocking(move || {
            let mut cluster = capacity.look(|sight| match sight {
                Sight::Known(capacity) => Some(Cluster::seen(capacity, &group.key, &pods, MOST_PODS)),
                _ => None,
            })?;
            add_templates(&mut cluster, &templates).ok()?;
            Some(shortages(&fit(&group, &domain_keys, &cluster, MOST_BATCHES)))
        });
        Some((key, timeout_at(deadline, found).await.ok()?.ok()??))
    }
}
