//! Maintains ClusterTopologies: their status, and their finalizer until nothing refers to them (KEP-75, Resource Protection).

use std::time::Duration;

use kube::api::Patch;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::cluster_topology::{CLUSTER_TOPOLOGIES, ClusterTopologyStatus};
use crate::api::review::UserInfo;
use crate::api::{ClusterTopology, Object, ObjectKind};
use crate::cluster::failure::unless;
use crate::cluster::index::Change;
use crate::cluster::objects::{Objects, api};
use crate::cluster::read::lookup::Lookup;
use crate::cluster::watch::watched::Guarded;
use crate::cluster::watch::{Selection, watch as watch_kind};
use crate::cluster::write::writer::{Writer, params};
use crate::model::{Layers, Mode};
use crate::mutate::topology::{add_finalizer, remove_finalizer};
use crate::rules::question::Question;
use crate::rules::{Operation, judge_json, topology_is_valid};

/// Interval of checks of a deleted topology that is still referred to.
const RECHECK: Duration = Duration::from_secs(2);

/// Answers of a missing object, and of one that changed: the watch reports it again.
const MISSED: &[u16] = &[404, 409];

type Topologies = Objects<Guarded<ClusterTopology>>;

/// Maintains ClusterTopologies of both API groups.
pub struct TopologyKeeper {
    writer: Writer,
    lookup: Lookup,
    leader: watch::Receiver<bool>,
    /// False in mode `observe`: no topology gets a status or a finalizer, but an existing finalizer is still removed.
    writes: bool,
    recheck: std::sync::Arc<tokio::sync::Notify>,
}

impl TopologyKeeper {
    /// Returns a keeper that works while this replica leads.
    pub fn new(writer: Writer, lookup: Lookup, leader: watch::Receiver<bool>, mode: Mode) -> Self {
        Self { writer, lookup, leader, writes: mode != Mode::Observe, recheck: std::sync::Arc::default() }
    }

    pub async fn run(mut self, stop: CancellationToken) {
        let (seen, mut changes) = mpsc::unbounded_channel();
        let mut watches = JoinSet::new();
        for kind in CLUSTER_TOPOLOGIES.iter().copied() {
            let (client, seen, recheck) = (self.writer.client.clone(), seen.clone(), self.recheck.clone());
            watches.spawn(async move {
                let take = |change: Change<Guarded<ClusterTopology>>| {
                    change.into_there().into_iter().for_each(|one| _ = seen.send((kind, one)));
                };
                watch_kind(&client, Selection::all(kind), &recheck, take).await;
            });
        }
        // Unfinished topologies are tried again; all are when this replica becomes leader.
        let mut open: Vec<(ObjectKind, Guarded<ClusterTopology>)> = Vec::new();
        loop {
            let leads = *self.leader.borrow();
            let later = async {
                if open.is_empty() || !leads { std::future::pending().await } else { tokio::time::sleep(RECHECK).await }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = self.leader.changed() => {}
                Some((kind, topology)) = changes.recv() => {
                    let same = |(other, known): &(ObjectKind, Guarded<ClusterTopology>)| {
                        *other == kind && known.meta().name == topology.meta().name
                    };
                    open.retain(|known| !same(known));
                    open.push((kind, topology));
                }
                () = later => {}
            }
            if *self.leader.borrow() {
                let mut left = Vec::new();
                for (kind, topology) in open {
                    if !self.keep(kind, &topology).await {
                        left.push((kind, topology));
                    }
                }
                open = left;
            }
        }
    }

    /// Returns true when nothing is left to do until the topology changes.
    async fn keep(&self, kind: ObjectKind, guarded: &Guarded<ClusterTopology>) -> bool {
        let Ok(topology) = &guarded.read else { return true };
        let name = topology.metadata.display_name();
        let api: Topologies = api(&self.writer.client, kind, None);
        let keep = async {
            if topology.metadata.is_deleting() {
                self.let_go(&api, kind, topology).await
            } else if self.writes {
                self.say_status(&api, kind, topology).await.map(|()| true)
            } else {
                Ok(true)
            }
        };
        self.writer.in_time(keep).await.unwrap_or_else(|error| {
            tracing::warn!(topology = name, %error, "ClusterTopology cannot be kept, will retry");
            false
        })
    }

    /// Removes the finalizer when a live read shows that nothing refers to the topology.
    async fn let_go(&self, api: &Topologies, kind: ObjectKind, topology: &ClusterTopology) -> kube::Result<bool> {
        let meta = &topology.metadata;
        let Some(patch) = remove_finalizer(&meta.finalizers, meta.resource_version.as_deref()) else { return Ok(true) };
        // The rule that refuses a DELETE decides.
        let object = serde_json::to_string(topology).unwrap_or_default();
        let question = Question { kind, operation: Operation::Delete, object: &object, old: None };
        let deadline = Instant::now() + self.writer.timeout;
        let world = match self.lookup.world(question, &UserInfo::default(), deadline).await {
            Ok(Ok(world)) => world,
            Ok(Err(_)) => return Ok(true),
            Err(error) => {
                tracing::warn!(%error, "cannot tell whether a ClusterTopology is referred to");
                return Ok(false);
            }
        };
        let judged = judge_json(&kind.api_version(), kind.kind, Operation::Delete, &object, None, &world);
        let free = matches!(judged, Some(Ok(judged)) if judged.is_allowed() && judged.notes.is_empty());
        if free {
            unless(MISSED, api.patch(meta.display_name(), &params(), &Patch::Merge(patch)).await)?;
        }
        Ok(free)
    }

    /// Writes the status, and the finalizer of a topology that was created while the webhook was down.
    async fn say_status(&self, api: &Topologies, kind: ObjectKind, topology: &ClusterTopology) -> kube::Result<()> {
        let meta = &topology.metadata;
        let name = meta.display_name();
        if let Some(patch) = add_finalizer(&meta.finalizers, meta.resource_version.as_deref()) {
            unless(MISSED, api.patch(name, &params(), &Patch::Merge(patch)).await)?;
        }
        let layers = Layers::parse(kind, topology);
        let status = ClusterTopologyStatus {
            current_topology_level: layers.current_topology_level(),
            validate: Some(topology_is_valid(&layers)),
        };
        if status != topology.status {
            unless(MISSED, api.patch_status(name, &params(), &Patch::Merge(json!({ "status": status }))).await)?;
        }
        Ok(())
    }
}
