//! The replicas that keep a batch from going, with their unready pods.

use std::sync::Arc;

use serde::Serialize;

use super::Picture;
use crate::model::Queued;
use crate::plan::{Held, Missing, PodFacts, waits_for};

/// A replica that a coordination waits for.
#[derive(Debug, Serialize)]
pub struct Awaited {
    pub role: String,
    pub ordinal: u32,
    pub state: &'static str,
    /// Pods of the replica that are not ready.
    pub pods: Vec<String>,
}

impl Awaited {
    /// Returns the replicas that the coordination of this hold waits for.
    pub fn all_of(picture: &Picture, held: &Held) -> Vec<Self> {
        let Some((group, coordination)) = picture.group().zip(held.coordination.as_ref()) else { return Vec::new() };
        let missing = waits_for(group, &picture.seen.view, &picture.seen.decision.targets, coordination.index);
        let of = |missing: Missing| {
            let is_of = |pod: &&Arc<PodFacts>| {
                pod.identity.role.as_deref() == Some(&missing.role) && pod.identity.ordinal == Some(missing.ordinal)
            };
            let pods: Vec<_> = picture.snapshot.pods.iter().filter(is_of).filter(|pod| !pod.ready).collect();
            let state = match missing.replica {
                None => "does not exist",
                Some(replica) if replica.pods < replica.size => "lacks pods",
                Some(replica) if replica.held > 0 => "is held",
                Some(_) if pods.iter().any(|pod| pod.queued == Queued::Waits) => "waits for Kueue",
                Some(replica) if replica.scheduled < replica.size => "has no node",
                Some(_) => "is not ready",
            };
            let pods = pods.into_iter().map(|pod| pod.pod.name.to_string()).collect();
            Self { role: missing.role, ordinal: missing.ordinal, state, pods }
        };
        missing.into_iter().map(of).collect()
    }
}
